"""Settings as Python values: from keyword arguments to the command's `key=value`."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _native

__all__ = ["CostTable", "cache_folder", "texts"]


@dataclass(frozen=True)
class CostTable:
    """What transitions cost on a host: a preset with other cycles for some of them.

    A value for the inputs that name such a table, `host-file` for one: `CostTable("xeon", {"exit": 900})`. Costs have
    the keys of the tables, `cache-line` or `cache_line`; `source` says where the numbers come from.
    """

    preset: str
    cycles: Mapping[str, int]
    source: str = "chosen: set in Python"

    def __hash__(self) -> int:
        return hash((self.preset, tuple(sorted(self.cycles.items())), self.source))

    def to_toml(self) -> str:
        """The table as a file holds it."""
        changes = [(key.replace("_", "-"), cycles) for key, cycles in sorted(self.cycles.items())]
        return _native.cost_table(self.preset, changes, self.source)

    def file(self) -> Path:
        """A file that holds the table, named by its content."""
        content = self.to_toml().encode()
        folder = Path(tempfile.gettempdir()) / f"sidestep-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.toml"
        if not path.exists() or path.read_bytes() != content:
            written = path.with_suffix(f".{os.getpid()}")
            written.write_bytes(content)
            written.replace(path)
        return path


def text(value: Any) -> str:
    """A value as the command reads it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, CostTable):
        return str(value.file())
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Iterable):
        return ",".join(text(each) for each in value)
    return str(value)


def texts(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the command reads them; `cache_line` is `cache-line`."""
    return [f"{key.replace('_', '-')}={text(value)}" for key, value in settings.items()]


def cache_folder() -> Path | None:
    """Where the command keeps finished points, unless it is told another place."""
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if caches.startswith("/"):
        return Path(caches) / "sidestep"
    home = os.environ.get("HOME", "")
    return Path(home) / ".cache" / "sidestep" if home.startswith("/") else None
