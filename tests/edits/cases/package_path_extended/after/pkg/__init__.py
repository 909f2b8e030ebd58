import os
__path__.append(os.path.join(os.path.dirname(__path__[0]), "extra"))
