from app import app
def tokenize(text):
    return text.split()
app.route("/", 1)
def f():
    return tokenize("a b")
