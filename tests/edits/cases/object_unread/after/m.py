from app import app
def tokenize(text):
    return text.split()
app.route("/", 2)
def f():
    return tokenize("a b")
