from app import app
app.route("/", 2)
