"""What tests share: the repository's guests, and a cache of each test's own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUESTS = ROOT / "guests" / "ia64" / "bin"
EXAMPLES = ROOT / "examples"

# A shell's background job starts with interrupts ignored, and tests that interrupt would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that finished points are kept in: empty, and the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "caches" / "sidestep"
