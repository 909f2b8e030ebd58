import os
HERE = os.path.dirname(os.path.abspath(__file__))

from xml.etree import ElementTree
def f():
    return ElementTree.parse(os.path.join(HERE, "a.xml")).getroot().get("n")
