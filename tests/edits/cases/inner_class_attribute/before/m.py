class Model:
    class Meta:
        table = "rows"
    def name(self):
        return self.Meta.table
def f():
    return Model().name()
