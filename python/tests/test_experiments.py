"""Experiments: named, run, looked at; the same points and the same bytes as the command's."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import ROOT
from own import Counter, Ferry, Nobody, Turns

import sidestep

COMMAND = ROOT / "target" / "release" / "sidestep"
#: Those of the path that itanium.ipc runs.
VERSIONS = ["first", "scheduled", "stack", "listed", "measured"]


def test_experiments_are_a_mapping_with_inputs_defaults_and_sources() -> None:
    assert "itanium.ipc" in sidestep.experiments
    assert len(sidestep.experiments) == len(list(sidestep.experiments))
    calls = sidestep.experiments["sidecore.calls"]
    assert calls.defaults["host"] == "pentium-d"
    assert calls.inputs["operation"]["axis"] and not calls.inputs["host"]["axis"]
    assert "Sidecore II" in calls.inputs["host"]["source"]
    assert "What does a call" in repr(calls) and "transfer" in calls._repr_html_()


def test_what_does_not_exist_is_said_as_the_command_says_it() -> None:
    with pytest.raises(sidestep.UnknownExperiment, match=r"did you mean `itanium.ipc`\?"):
        sidestep.experiments["itanium.icp"]
    with pytest.raises(KeyError):
        sidestep.experiments["itanium"]
    with pytest.raises(sidestep.Error, match=r"input `host`: `xenon` is not .*did you mean `xeon`"):
        sidestep.experiments["sidecore.calls"].compare(host="xenon")


def test_a_comparison_has_rows_verdicts_and_figures() -> None:
    comparison = sidestep.experiments["itanium.ipc"].compare(quick=True)
    assert [row["at"]["version"] for row in comparison.rows] == VERSIONS
    assert sum(comparison.verdicts.values()) == len(comparison.rows) + len(comparison.findings)
    assert all(figure.svg.startswith("<svg") for figure in comparison.figures)
    page = comparison._repr_html_()
    assert "<table>" in page and "<svg" in page
    assert "cycles a message" in str(comparison)


def test_tables_and_charts_hold_the_rows() -> None:
    comparison = sidestep.experiments["itanium.ipc"].compare(quick=True)
    table = comparison.to_arrow()
    assert table.column("ratio").to_pylist() == [row["ratio"] for row in comparison.rows]
    assert list(comparison.to_pandas()["at.version"]) == VERSIONS
    (chart,) = comparison.charts()
    values = json.loads(chart.to_json())["data"]["values"]
    assert {"x", "y", "series"} == set(values[0])


def test_progress_is_told_and_points_are_kept() -> None:
    told: list[tuple[int, int]] = []
    ipc = sidestep.experiments["itanium.ipc"]
    first = ipc.compare(quick=True, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 5)
    assert (first.from_cache, ipc.compare(quick=True).from_cache) == (0, 5)
    assert ipc.compare(quick=True, cache=False).from_cache == 0


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built: cargo build --release")
def test_the_command_has_the_same_points_and_writes_the_same_bytes(own_cache: Path) -> None:
    given = ["compare", "sidecore.calls", "--quick", "--set", "transfer=77", "--format"]
    comparison = sidestep.experiments["sidecore.calls"].compare(quick=True, transfer=77)
    entries = {entry: entry.stat().st_mtime_ns for entry in own_cache.iterdir()}
    for format, ours in [("json", "json"), ("csv", "csv"), ("markdown", "md")]:
        written = subprocess.run([COMMAND, *given, format], check=True, capture_output=True).stdout
        assert written == comparison.to_bytes(ours)
    # The command has found every point and kept no other.
    assert {entry: entry.stat().st_mtime_ns for entry in own_cache.iterdir()} == entries


def test_an_experiment_of_ones_own_is_exact_and_kept() -> None:
    ferry = sidestep.Experiment(Ferry())
    comparison = ferry.compare(crossing=3, wait_time=Fraction(1, 3))
    assert [row["ratio"] for row in comparison.rows] == [1, 2, 4]
    assert [of["name"] for of in comparison.rows[0]["counters"]["sidestep"]] == ["cars", "load"]
    assert ferry.compare(crossing=3, wait_time=Fraction(1, 3)).from_cache == 3
    other = Ferry()
    other.version = "another"
    assert sidestep.Experiment(other).compare(crossing=3, wait_time=Fraction(1, 3)).from_cache == 0
    assert ferry.inputs["wait-time"]["unit"] == "min"


def test_what_a_point_raises_is_the_failure_of_that_point() -> None:
    rows = sidestep.Experiment(Ferry()).compare(cars=[2, 200]).rows
    assert [row["status"] for row in rows] == ["measured", "failed"]
    assert rows[1]["error"] == "ValueError: 200 cars sink it"


def test_a_policy_in_python_is_held_against_free_scheduling() -> None:
    turns = sidestep.Experiment(Turns())
    comparison = turns.compare(quick=True, kind="regular", load="double")
    assert comparison.rows[0]["ratio"] > 1.1, "coscheduling pays for programs that wait for each other"
    assert turns.compare(quick=True, kind="regular", load="double", cache=False).rows == comparison.rows


def test_a_service_in_python_is_asked_by_exit_and_by_sidecall() -> None:
    served = sidestep.Experiment(Counter())
    settings = {"transfer": 400, "cache_line": 10, "between": [0]}
    plain, lines = (served.compare(settings, quick=True, second=second).rows[0] for second in (0, 10))
    assert plain["ratio"] > 1
    assert lines["baseline"] - plain["baseline"] == 100
    assert abs(lines["sidestep"] - plain["sidestep"] - 4000) < 1
    # A bare answer costs no work of its own.
    free = sidestep.Experiment(Counter(0)).compare(settings, quick=True).rows[0]
    assert plain["baseline"] - free["baseline"] == 500
    wrong = served.compare(quick=True, third=3).rows[0]
    assert (wrong["status"], wrong["error"]) == ("failed", "guest `guest`: ValueError: request 2 is one too many")
    assert "What happened when" in served.compare(quick=True).to_bytes("html").decode()


def test_a_policys_impossible_decision_is_named() -> None:
    (row,) = sidestep.Experiment(Nobody()).compare(quick=True, kind="bulk", load="single").rows
    assert "the policy's decision: there is no task" in row["error"]


def test_a_cost_table_of_ones_own_changes_what_a_call_costs() -> None:
    calls = sidestep.experiments["sidecore.calls"]
    cheap, dear = (
        calls.compare(host_file=sidestep.CostTable("xeon", {"exit": cycles}), operation="null", count=10)
        for cycles in (100, 5000)
    )
    assert cheap.rows[0]["baseline"] < dear.rows[0]["baseline"]
    with pytest.raises(sidestep.Error, match="there is no cost `exti`; there are exit, entry"):
        sidestep.CostTable("xeon", {"exti": 1}).to_toml()
