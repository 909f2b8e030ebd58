import routes
from app import app
def f():
    return app.routes["/"]
