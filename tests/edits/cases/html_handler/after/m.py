from html.parser import HTMLParser
class Links(HTMLParser):
    found = ()
    def handle_starttag(self, tag, attrs):
        self.found = (*self.found, tag * 2)
def f():
    links = Links()
    links.feed("<a><b>")
    return links.found
