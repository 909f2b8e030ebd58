class Model:
    class Meta:
        table = "cells"
    def name(self):
        return self.Meta.table
def f():
    return Model().name()
