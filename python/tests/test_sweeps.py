"""Sweeps: distributed, gone on with, killed, alike whoever computes them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from conftest import ROOT
from distributed import Client, LocalCluster
from own import Counter, Ferry, Measured, Turns

import sidestep

TESTS = Path(__file__).parent
COMMAND = str(ROOT / "target" / "release" / "sidestep")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers; they find what tests define."""
    paths = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(TESTS)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client
    os.environ.pop("PYTHONPATH") if paths is None else os.environ.update(PYTHONPATH=paths)


def bytes_of(sweep: sidestep.Sweep) -> dict[str, str]:
    """The files of a data set, by name."""
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in sweep.parts()}


def test_a_sweep_has_every_point_once_in_the_order_of_the_grid(client: Client) -> None:
    told: list[tuple[int, int]] = []
    sweep = sidestep.sweep(
        "sidecore.calls",
        {"transfer": [100, 200, 300], "operation": ["null", "map"], "count": 10},
        on=client,
        batch=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert (sweep.done, sweep.total, len(sweep.parts()), told[-1]) == (6, 6, 3, (6, 6))
    rows = sweep.to_arrow().to_pylist()
    places = [(row["in.transfer"], row["at.operation"]) for row in rows]
    assert places == [(transfer, of) for transfer in ("100", "200", "300") for of in ("null", "map")]
    assert rows[0]["version"] == sidestep.__version__ and "machine" not in rows[0]
    alone = sidestep.experiments["sidecore.calls"].compare(transfer=100, operation="map", count=10)
    assert alone.rows[0]["ratio"] == rows[1]["ratio"]


def test_the_bytes_are_the_same_whatever_the_workers(client: Client) -> None:
    grid = {"transfer": range(100, 105), "count": 5}
    both = sidestep.sweep("sidecore.calls", grid, on=client, into="both", batch=3, cache=False)
    one = sidestep.sweep("sidecore.calls", grid, on=1, into="one", batch=3, cache=False)
    assert bytes_of(one) == bytes_of(both) and len(bytes_of(one)) == 7


def test_a_longer_sweep_goes_on_and_a_crashed_one_too(client: Client) -> None:
    short = sidestep.sweep("sidecore.calls", {"transfer": [1, 2], "count": 5}, on=client, batch=4)
    longer = sidestep.sweep("sidecore.calls", {"transfer": [1, 2, 3], "count": 5}, on=client, batch=4)
    assert (short.computed, longer.computed, longer.done) == (8, 4, 12)
    whole = bytes_of(longer)
    # As if the sweep had crashed before its second batch was there.
    longer.parts()[1].unlink()
    again = sidestep.sweep("sidecore.calls", {"transfer": [1, 2, 3], "count": 5}, on=client, batch=4)
    assert (again.computed, bytes_of(again)) == (4, whole)


def test_a_sweep_of_ones_own_experiment_keeps_failures_as_rows(client: Client) -> None:
    sweep = sidestep.sweep(Ferry(), {"cars": [1, 2, 300], "crossing": [3, 4]}, on=client)
    rows = sweep.to_arrow().to_pylist()
    assert [row["status"] for row in rows] == ["measured", "measured", "failed"] * 2
    assert rows[2]["error"] == "ValueError: 300 cars sink it"
    assert sweep.to_pandas()["ratio"][1] == 2


def test_a_service_a_policy_and_a_table_of_costs_work_in_a_sweep(client: Client) -> None:
    tables = [sidestep.CostTable("xeon", {"exit": exit}) for exit in (500, 2000)]
    served = sidestep.sweep(Counter(), {"host_file": tables, "between": [0], "count": 20}, on=client)
    cheap, dear = (row["baseline"] for row in served.to_arrow().to_pylist())
    assert dear - cheap == 1500, "a request by exit costs an exit"
    turned = sidestep.sweep(Turns(), {"cores": [4, 8], "kind": ["bulk"], "load": ["double"]}, on=client)
    assert turned.done == 2 and all(row["status"] == "measured" for row in turned.to_arrow().to_pylist())


def test_measured_points_run_one_by_one_on_a_host_and_name_the_machine(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sweep = sidestep.sweep(Measured(), {"cars": [1, 2, 3], "log": str(log)}, on=client, repeat=2)
    assert log.read_text().split() == ["1", "1", "2", "2", "3", "3"]
    assert all(socket.gethostname() in row["machine"] for row in sweep.to_arrow().to_pylist())


def test_a_sweep_is_cancelled_and_goes_on(client: Client) -> None:
    sweep = sidestep.Sweep("sidecore.calls", {"transfer": range(50), "count": 5}, batch=4)
    sweep.run(client, progress=lambda done, total: sweep.cancel() if done else None)
    assert 0 < sweep.done < sweep.total
    rest = sidestep.sweep("sidecore.calls", {"transfer": range(50), "count": 5}, on=client, batch=4)
    assert (rest.done, rest.computed) == (200, 200 - sweep.done)


def test_mistakes_are_said_before_anything_runs(client: Client) -> None:
    with pytest.raises(sidestep.Error, match="sidecore.calls has no input `transfers`"):
        sidestep.sweep("sidecore.calls", {"transfers": [1]}, on=client)
    with pytest.raises(sidestep.Error, match="the grid has no value for `count`"):
        sidestep.sweep("sidecore.calls", {"count": []}, on=client)
    soon = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with soon, pytest.raises(sidestep.Error, match="no scheduler answers there"):
        sidestep.sweep("sidecore.calls", {"count": [7]}, on="tcp://127.0.0.1:1")


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = [
        "import sidestep",
        "class Own(sidestep.OwnExperiment):",
        "    inputs, axes = {'at': [1]}, ['at']",
        "    def run(self, inputs, point, seed): return 2, point['at']",
        "print(sidestep.sweep(Own(), {'at': [1, 2]}, on=1, into='own').to_pandas()['ratio'].tolist(), __file__)",
    ]
    script.write_text("\n".join(lines))
    run = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"[2.0, 1.0] {script}\n", "")


class Cluster:
    """A scheduler and two workers as processes of their own."""

    def __init__(self, port: int) -> None:
        self.address = f"tcp://127.0.0.1:{port}"
        distributed = [sys.executable, "-m", "distributed.cli"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = subprocess.Popen(
            [*distributed[:2], f"distributed.cli.{scheduler[0]}", *scheduler[1:]], **quiet
        )
        worker = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "20"]
        command = [*distributed[:2], "distributed.cli.dask_worker", self.address, *worker]
        self.workers = [subprocess.Popen(command, **quiet) for _ in range(2)]

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in [self.scheduler, *self.workers]:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def when_there_are(cache: Path, entries: int, then: Any) -> threading.Thread:
    """Does something as soon as a cache has so many points."""

    def watch() -> None:
        while not cache.is_dir() or len(list(cache.glob("*.point"))) < entries:
            time.sleep(0.005)
        then()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_killed_worker_and_a_killed_scheduler_lose_nothing_and_repeat_nothing(own_cache: Path) -> None:
    grid = {"transfer": range(60), "count": 100}
    first_written: dict[str, int] = {}

    def note() -> None:
        for entry in own_cache.glob("*.point"):
            first_written.setdefault(entry.name, entry.stat().st_ino)

    with Cluster(free_port()) as cluster:

        def kill_worker() -> None:
            cluster.workers[0].send_signal(signal.SIGKILL)
            note()

        def kill_scheduler() -> None:
            cluster.scheduler.send_signal(signal.SIGKILL)

        killers = [when_there_are(own_cache, 40, kill_worker), when_there_are(own_cache, 120, kill_scheduler)]
        with pytest.raises(sidestep.Error, match="of 240 points are kept in .*; the same sweep goes on from there"):
            sidestep.sweep("sidecore.calls", grid, on=cluster.address, batch=20)
        for killer in killers:
            killer.join()
    note()
    assert 120 <= len(first_written) < 240
    # Every point that was finished before is still the same file: none has been computed again.
    sweep = sidestep.sweep("sidecore.calls", grid, on=2, batch=20)
    assert sweep.done == 240
    assert len(list(own_cache.glob("*.point"))) == 240
    assert {name: (own_cache / name).stat().st_ino for name in first_written} == first_written
    whole = sidestep.sweep("sidecore.calls", grid, on=2, batch=20, into="whole")
    assert bytes_of(whole) == bytes_of(sweep)


@pytest.mark.skipif(not Path(COMMAND).exists(), reason="the command is not built: cargo build --release")
def test_the_command_has_a_cluster_fill_its_cache(client: Client, own_cache: Path) -> None:
    address = client.scheduler.address
    command = [COMMAND, "compare", "sidecore.calls", "itanium.ipc", "--quick", "--on", address, "--format", "csv"]
    environment = os.environ | {"SIDESTEP_PYTHON": sys.executable}
    run = subprocess.run(command, env=environment, capture_output=True, check=True)
    without = subprocess.run(
        [*command[:5], "--no-cache", "--format", "csv"], env=environment, capture_output=True, check=True
    )
    assert run.stdout == without.stdout
    written = {entry: entry.stat().st_ino for entry in own_cache.glob("*.point")}
    assert len(written) == 4 + 5
    # With everything kept no cluster is needed.
    nowhere = [*command[:-3], "tcp://127.0.0.1:1", *command[-2:]]
    again = subprocess.run(nowhere, env=environment, capture_output=True, check=True)
    assert again.stdout == run.stdout
    wrong = subprocess.run([*command[:-4], "--seed", "2", *nowhere[-4:]], env=environment, capture_output=True)
    assert wrong.returncode == 0, "a seed changes nothing of what is deterministic"


@pytest.mark.skipif(not Path(COMMAND).exists(), reason="the command is not built: cargo build --release")
def test_the_command_asks_results(client: Client, tmp_path: Path) -> None:
    sidestep.sweep("sidecore.calls", {"transfer": [1, 2], "count": 5}, on=client, into="points")
    environment = os.environ | {"SIDESTEP_PYTHON": sys.executable}
    query = "SELECT count(*) AS n FROM points WHERE (inputs->>'transfer') = '2'"
    command = [COMMAND, "results", query, "--from", "points", "--output", "answer.json"]
    subprocess.run(command, env=environment, check=True)
    assert json.loads((tmp_path / "answer.json").read_text()) == [{"n": 4}]
    command = [COMMAND, "results", "diff", "0", "9"]
    asked = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert asked.returncode == 1 and "there are no points of version `9`" in asked.stderr
    nothing = subprocess.run([COMMAND, "results"], env=os.environ | {"SIDESTEP_PYTHON": "/none"}, capture_output=True)
    assert nothing.returncode == 1 and b"/none: cannot be started" in nothing.stderr
