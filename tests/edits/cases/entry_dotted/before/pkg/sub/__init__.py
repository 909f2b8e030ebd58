from .. import SCALE
