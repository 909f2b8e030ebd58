import ast
class Names(ast.NodeVisitor):
    def __init__(self):
        self.seen = []
    def visit_Name(self, node):
        self.seen.append(node.id)
    def visit_Call(self, node):
        self.seen.append("call")

def f():
    v = Names()
    v.visit(ast.parse("g(a)"))
    return v.seen
