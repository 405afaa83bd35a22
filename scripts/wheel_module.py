"""Sluice trains LibTorch models on TPUs, GPUs and CPUs. This package holds the program `sluice` and its C++ library.

cmake_prefix is the folder for CMAKE_PREFIX_PATH, with which find_package(sluice CONFIG) finds the library.
"""

import importlib.metadata
import os
import sys

cmake_prefix = os.path.dirname(os.path.abspath(__file__))
__version__ = importlib.metadata.version("sluice")


def main():
    """The command `sluice`: becomes the program, with this process's arguments."""
    program = os.path.join(cmake_prefix, "bin", "sluice")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sluice: cannot start {program}: {error.strerror}; install the wheel again")
