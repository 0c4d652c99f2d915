"""Machines and hosts: run, stopped, looked at, saved."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from conftest import EXAMPLES, ROOT

import sidestep

KERNEL = next((path for path in (folder / "shared/linux/vmlinux.xz" for folder in ROOT.parents) if path.exists()), None)
needs_kernel = pytest.mark.skipif(KERNEL is None, reason="there is no Linux/ia64 kernel")


def test_a_machine_runs_to_its_end() -> None:
    machine = sidestep.Machine.from_toml(EXAMPLES / "processors.toml")
    assert machine.run() == sidestep.Stopped("exit", 0)
    assert machine.output == "right\n"
    assert machine.counters == {}


def test_where_a_machine_is_stopped_changes_nothing() -> None:
    whole, stopped = (sidestep.Machine.from_toml(EXAMPLES / "processors.toml") for _ in range(2))
    whole.run()
    while stopped.step(1000).reason == "limit":
        pass
    assert [each.instructions for each in stopped.processors] == [each.instructions for each in whole.processors]
    assert stopped.ticks == whole.ticks


def test_a_machine_stops_at_an_address_and_is_changed_there() -> None:
    machine = sidestep.Machine.from_toml(EXAMPLES / "processors.toml")
    machine.step(500)
    address = machine.registers["ip"]
    fresh = sidestep.Machine.from_toml(EXAMPLES / "processors.toml")
    assert fresh.run(address).reason == "address"
    assert fresh.registers["ip"] == address
    bundle = fresh.processors[0].read(address, 16)
    assert fresh.read(address & ~(7 << 61), 16) == bundle
    fresh.registers["r14"] = 99
    assert fresh.registers["r14"] == 99
    # It goes on from where it stands, and comes by again or ends.
    assert fresh.run(address).reason in ("address", "exit")
    with pytest.raises(sidestep.Error, match="r0 cannot be set"):
        fresh.registers["r0"] = 1


def test_a_models_cycles_are_a_machines_time() -> None:
    machine = sidestep.Machine.from_toml(EXAMPLES / "processors.toml", timing="itanium2")
    with pytest.raises(sidestep.Error, match="does not stop at addresses"):
        machine.run(0x100000)
    assert machine.run().reason == "exit"
    assert machine.counters["CPU_CYCLES"] >= machine.processors[0].counters["CPU_CYCLES"] > 0


def test_functions_are_called_before_blocks_and_at_interruptions() -> None:
    plain, called = (sidestep.Machine.from_toml(EXAMPLES / "processors.toml") for _ in range(2))
    plain.run()
    blocks: set[tuple[int, int]] = set()
    interruptions: list[tuple[int, str, int, int]] = []
    ended = called.run(
        on_block=lambda *block: blocks.add(block), on_interruption=lambda *taken: interruptions.append(taken)
    )
    assert (ended.reason, called.instructions) == ("exit", plain.instructions), "who watches changes nothing"
    assert {processor for processor, _ in blocks} == {0, 1, 2, 3}
    assert len(interruptions) >= 1000 and all(said == "external interrupt" for _, said, _, _ in interruptions)

    again = sidestep.Machine.from_toml(EXAMPLES / "processors.toml")
    processor, address = max(blocks)
    assert again.run(on_block=lambda *block: block == (processor, address)) == sidestep.Stopped("callback", processor)
    assert again.processors[processor].registers["ip"] == address & ~0xF
    with pytest.raises(ZeroDivisionError):
        again.run(on_block=lambda *block: 1 // 0)
    with pytest.raises(sidestep.Error, match="stops at addresses or calls functions"):
        again.run(address, on_block=print)


def test_errors_are_the_commands(tmp_path: Path) -> None:
    with pytest.raises(sidestep.Error, match="kernel: /no/such: cannot be read"):
        sidestep.Machine("/no/such")
    machine = sidestep.Machine.from_toml(EXAMPLES / "processors.toml")
    with pytest.raises(sidestep.Error, match="no processor 4; the machine has 4"):
        machine.native.read_memory(0x100000, 1, 4)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[machine]\nprocessor = 2\n")
    with pytest.raises(sidestep.Error, match=r"wrong.toml:2:1: unknown"):
        sidestep.Machine.from_toml(wrong)
    with pytest.raises(sidestep.Error, match="a bare machine cannot be saved"):
        sidestep.Machine.from_toml(EXAMPLES / "processors.toml").save(tmp_path / "saved")


@needs_kernel
def test_linux_boots_and_a_saved_machine_goes_on_alike(tmp_path: Path) -> None:
    assert KERNEL is not None
    machine = sidestep.Machine(KERNEL, smp=2, memory="512M", append="console=ttyS0")
    assert machine.run(until="Linux version") == sidestep.Stopped("text")
    assert machine.read_output().endswith("Linux version")
    machine.save(tmp_path / "saved")
    restored = sidestep.Machine.restore(tmp_path / "saved")
    for each in (machine, restored):
        each.run(instructions=1_000_000)
    assert dict(restored.registers) == dict(machine.registers)
    assert restored.instructions == machine.instructions


@needs_kernel
def test_other_threads_run_meanwhile_and_ctrl_c_stops_a_machine() -> None:
    assert KERNEL is not None
    machine = sidestep.Machine(KERNEL)
    runner = threading.Thread(target=machine.run)
    runner.start()
    counted = sum(range(1000))
    machine.stop()
    runner.join()
    assert counted == 499500
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        machine.run()
    before = machine.instructions
    assert machine.step(1000).reason == "limit" and machine.instructions >= before + 1000


def test_a_host_reports_what_happened() -> None:
    host = sidestep.Host.from_toml(EXAMPLES / "sidecore-host.toml", trace=True)
    assert host.run() == "ended"
    assert all(machine["exit_code"] == 0 for machine in host.report["machines"])
    assert host.output().startswith("fault")
    timeline = host.timeline()
    assert timeline.num_rows > 0 and set(timeline.column("track").to_pylist()) >= {"core 0"}
    with pytest.raises(sidestep.Error, match="there is no virtual machine 9"):
        host.output(9)


def test_a_host_is_stopped_at_a_cycle() -> None:
    host = sidestep.Host.from_toml(EXAMPLES / "sidecore-host.toml", timing="itanium2")
    assert host.run(cycles=100_000) == "time"
    assert host.cycles >= 100_000
    assert host.counters[0]["CPU_CYCLES"] > 0
