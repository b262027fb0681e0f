"""`python -m helenus ARGS` is `helenus ARGS`."""

import os
import sys

from . import binary

path = binary()
os.execv(path, [path, *sys.argv[1:]])
