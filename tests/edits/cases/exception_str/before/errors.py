class Bad(Exception):
    def __str__(self):
        return "bad"
