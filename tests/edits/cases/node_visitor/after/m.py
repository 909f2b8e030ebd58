import ast
class Names(ast.NodeVisitor):
    def __init__(self):
        self.seen = []
    def visit_Name(self, node):
        self.seen.append(node.id.upper())
def f():
    v = Names()
    v.visit(ast.parse("a + b"))
    return v.seen
