"""Suites that use what another one makes."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def neighbour(name):
    """The script of another suite, as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(Path(__file__).resolve().parent / name / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
