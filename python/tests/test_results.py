"""Results: finished points as one table, asked, compared, exported."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from own import Ferry

import sidestep


def another_version(cache: Path, version: str, factor: int) -> None:
    """Writes every entry once more as of another version, with baselines so many times as large."""
    for entry in list(cache.glob("*.point")):
        content = json.loads(entry.read_text().split("\n", 1)[1])
        content["key"] = content["key"].replace(f"version {sidestep.__version__}", f"version {version}")
        whole, _, part = content["measurement"]["baseline"]["value"].partition("/")
        content["measurement"]["baseline"]["value"] = f"{int(whole) * factor}/{part or 1}"
        body = json.dumps(content, separators=(",", ":"))
        name = hashlib.sha256(content["key"].encode()).hexdigest()
        (cache / f"{name}.point").write_text(f"sidestep-point-1 {hashlib.sha256(body.encode()).hexdigest()}\n{body}")


def test_the_cache_is_a_table_to_be_asked() -> None:
    comparison = sidestep.experiments["sidecore.calls"].compare(quick=True, transfer=77)
    sidestep.Experiment(Ferry()).compare()
    found = sidestep.results()
    assert (len(found), found.problems) == (7, [])
    query = "SELECT point, ratio FROM points WHERE experiment = $name AND (inputs->>'transfer') = '77' ORDER BY point"
    rows = found.sql(query, name="sidecore.calls").to_pylist()
    expected = {f"operation={row['at']['operation']}": row["ratio"] for row in comparison.rows}
    assert {row["point"]: row["ratio"] for row in rows} == pytest.approx(expected)
    with pytest.raises(sidestep.Error, match="(?i)syntax error"):
        found.sql("SELEKT")


def test_a_damaged_entry_is_named_and_left_out(own_cache: Path) -> None:
    sidestep.experiments["itanium.ipc"].compare(quick=True)
    entry = next(own_cache.glob("*.point"))
    entry.write_bytes(entry.read_bytes()[:-1])
    found = sidestep.results()
    assert len(found) == 4
    assert found.problems == [f"{entry}: is left out: its checksum does not match"]


def test_versions_are_compared(own_cache: Path) -> None:
    sidestep.experiments["itanium.ipc"].compare(quick=True)
    another_version(own_cache, "9.0.0+abc", 2)
    found = sidestep.results()
    assert found.versions().column("points").to_pylist() == [5, 5]
    moved = found.diff(sidestep.__version__, "9.0").to_pylist()
    assert {row["quantity"] for row in moved} == {"baseline", "ratio"}
    assert all(row["relative"] == pytest.approx(1) for row in moved) and len(moved) == 10
    with pytest.raises(sidestep.Error, match="there are no points of version `8`; there are of 0.1"):
        found.diff("8", "9")


def test_a_table_is_exported(tmp_path: Path) -> None:
    sidestep.experiments["itanium.ipc"].compare(quick=True)
    found = sidestep.results()
    for name in ("points.parquet", "points.csv", "points.json"):
        found.export(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(sidestep.Error, match="`xlsx` is no format; there are parquet, csv, json"):
        found.export(tmp_path / "points.xlsx")
    with pytest.raises(sidestep.Error, match="is no folder of points"):
        sidestep.results(tmp_path / "nowhere")
