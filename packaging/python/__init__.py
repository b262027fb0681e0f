"""Helenus, a wide-column database in one program, which this package installs as the command `helenus`."""

import os
import sys
import sysconfig


def binary():
    """The path of the program, in the environment that this package is installed in."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.path.join(sys.prefix, "bin")]
    for folder in folders:
        path = os.path.join(folder, "helenus")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"no helenus in {', '.join(folders)}; install this package again")
