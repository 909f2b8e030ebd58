from base import show
@show.register(int)
def _(x):
    return "integer"
