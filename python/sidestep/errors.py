"""What goes wrong, with the command's own messages."""

from __future__ import annotations

from ._native import Error

__all__ = ["Error", "UnknownExperiment", "needs"]


class UnknownExperiment(Error, KeyError):
    """No experiment has such a name."""

    def __str__(self) -> str:
        return str(self.args[0])


def needs(library: str, extra: str, what: str) -> Error:
    """Says which library something needs, and how it is installed."""
    return Error(f"{what} needs {library}: pip install 'sidestep[{extra}]'")
