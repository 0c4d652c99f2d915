"""Programs: run on a model or without, sampled, stepped, changed."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
from conftest import GUESTS

import sidestep


def test_a_program_runs_to_its_end() -> None:
    run = sidestep.Program(GUESTS / "tour").run()
    assert run.status == 0 and run.stdout is not None
    assert run.stdout.endswith(b"all right\n")
    assert run.counters == {}


def test_a_model_counts_and_samples() -> None:
    program = sidestep.Program(GUESTS / "sieve")
    how: dict[str, Any] = {
        "timing": "itanium2",
        "events": ["CPU_CYCLES:100000", "DATA_EAR_CACHE_LAT4"],
        "max_instructions": 5_000_000,
    }
    run = program.run(**how)
    assert run.cycles > 0 and run.instructions == run.counters["IA64_INST_RETIRED"] > run.cycles
    samples = run.samples()
    cycles = [row for row in samples.to_pylist() if row["event"] == "CPU_CYCLES"]
    assert len(cycles) == run.cycles // 100_000
    assert all(row["latency"] >= 4 for row in samples.to_pylist() if row["event"] == "DATA_EAR_CACHE_LAT4")
    again = program.run(**how)
    drop = samples.drop(["process"])
    assert again.samples().drop(["process"]).equals(drop), "the model is deterministic"


def test_errors_are_the_commands() -> None:
    with pytest.raises(sidestep.Error, match="^/no/such: cannot be opened: No such file"):
        sidestep.Program("/no/such").run()
    with pytest.raises(sidestep.Error, match="unknown processor `itanium3`; the nearest are itanium2"):
        sidestep.Program(GUESTS / "tour").run(timing="itanium3")
    with pytest.raises(sidestep.Error, match="unknown event `CPU_CYCLE`; the nearest are CPU_CYCLES"):
        sidestep.Program(GUESTS / "tour").run(timing="itanium2", events=["CPU_CYCLE"])
    with pytest.raises(sidestep.Error, match="are counted by a model"):
        sidestep.Program(GUESTS / "tour").run(events=["CPU_CYCLES"])
    with pytest.raises(sidestep.Error, match="/no/such: cannot be started"):
        sidestep.Program("/no/such").debug()


def test_a_bound_on_instructions_ends_it() -> None:
    run = sidestep.Program(GUESTS / "sieve").run(max_instructions=1000)
    assert run.reached_limit


def test_ctrl_c_ends_a_program() -> None:
    program = sidestep.Program(GUESTS / "nbody", "1000000000")
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        program.run()


def test_a_program_is_stepped_looked_at_and_changed() -> None:
    with sidestep.Program(GUESTS / "tour").debug() as tour:
        entry = tour.registers["ip"]
        assert len(tour.read(entry, 16)) == 16
        assert tour.step().reason == "step"
        assert tour.registers["psr"] >> 41 & 3 == 1, "the second slot of the bundle"
        tour.registers["r14"] = 77
        tour.registers["f6"] = 1 << 80 | 5
        assert (tour.registers["r14"], tour.registers["f6"]) == (77, 1 << 80 | 5)
        stack = tour.registers["r12"]
        tour.write(stack - 3000, bytes(range(256)) * 8)
        assert tour.read(stack - 3000, 2048) == bytes(range(256)) * 8
        tour.step(30)
        later = tour.registers["ip"]
        with pytest.raises(sidestep.Error, match="there is no register r200"):
            tour.registers["r200"]
        with pytest.raises(sidestep.Error, match="0x7000000000000000: the program has no memory there"):
            tour.read(7 << 60, 1)
    with sidestep.Program(GUESTS / "tour").debug() as tour:
        stop = tour.go(later)
        assert (stop.reason, tour.registers["ip"]) == ("breakpoint", later)


def test_watched_memory_stops_a_program() -> None:
    with sidestep.Program(GUESTS / "tour").debug() as tour:
        stop = tour.go(watch=(tour.registers["r12"] - 4096, 4096, "write"))
        assert stop.reason == "watchpoint" and stop.address is not None


def test_a_program_under_control_gets_its_signals_and_ends(capfd: pytest.CaptureFixture[str]) -> None:
    with sidestep.Program(GUESTS / "tour").debug() as tour:
        stop = tour.go()
        signals = 0
        while stop.reason == "signal":
            signals += 1
            stop = tour.go()
        assert (stop, signals > 0) == (sidestep.Stop("exited", 0), True)
        with pytest.raises(sidestep.Error, match="has ended"):
            tour.step()
    assert capfd.readouterr().out.endswith("all right\n")


def test_an_interrupt_stops_a_program_that_can_go_on() -> None:
    with sidestep.Program(GUESTS / "nbody", "1000000000").debug() as program:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            program.go()
        assert program.step().reason == "step"
    deadline = time.monotonic() + 10
    while program.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert program.process.poll() is not None, "it ends with its session"
