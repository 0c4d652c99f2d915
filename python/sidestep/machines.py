"""Machines and hosts with virtual machines, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native, tables
from .programs import Registers
from .remote import located

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Host", "Machine", "Processor", "Stopped"]


@dataclass(frozen=True)
class Stopped:
    """Why a run came back.

    `exit` (with the exit code), `reset`, `panic`, `limit`, `address` or `callback` (with the processor), `text`,
    `deadlock`, or `stopped` by another thread.
    """

    reason: str
    number: int = 0


class Processor:
    """A processor of a machine that stands still."""

    def __init__(self, machine: _native.Machine, number: int) -> None:
        self.machine = machine
        self.number = number

    @property
    def registers(self) -> Registers:
        """Its registers, which can be changed."""
        return Registers(self)

    def register(self, name: str) -> int:
        """A register by its name."""
        return self.machine.register(self.number, located(name)[0])

    def set_register(self, name: str, value: int) -> None:
        """Changes a register."""
        self.machine.set_register(self.number, located(name)[0], value)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of memory at an address as it sees it."""
        return self.machine.read_memory(address, size, self.number)

    def write(self, address: int, content: bytes) -> None:
        """Changes memory at an address as it sees it."""
        self.machine.write_memory(address, content, self.number)

    @property
    def activity(self) -> str:
        """What it does: `running`, `waiting` for an interrupt, or `stopped`."""
        return self.machine.activity(self.number)

    @property
    def instructions(self) -> int:
        """Instructions so far."""
        return self.machine.instructions()[self.number]

    @property
    def counters(self) -> dict[str, int]:
        """What its model counted; empty without one."""
        return dict(self.machine.counters(self.number))


class Machine:
    """A machine that boots a kernel, or that a TOML file describes.

    It runs in virtual time: the same machine does the same each time, wherever it is stopped. With `timing`, the name
    of a processor, that processor's model is its time.
    """

    def __init__(
        self,
        kernel: str | Path | None = None,
        *,
        initrd: str | Path | None = None,
        append: str = "",
        smp: int = 1,
        memory: str = "1G",
        disks: Sequence[str | Path] = (),
        timing: str | None = None,
        native: _native.Machine | None = None,
    ) -> None:
        if native is None:
            if kernel is None:
                raise TypeError("a machine boots a kernel; from_toml and restore make others")
            table: dict[str, Any] = {
                "machine": {"processors": smp, "memory": memory},
                "kernel": {"file": str(kernel), "append": append},
                "disk": [{"file": str(disk)} for disk in disks],
            }
            if initrd is not None:
                table["kernel"]["initrd"] = str(initrd)
            native = _native.Machine.described("kernel", toml(table), Path(), timing)
        self.native = native

    @staticmethod
    def from_toml(path: str | Path, *, timing: str | None = None) -> Machine:
        """The machine that a file describes, as `sidestep run` takes it."""
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        return Machine(native=_native.Machine.described(str(path), text, path.parent, timing))

    @staticmethod
    def restore(file: str | Path, *, accept_changed_disks: bool = False, timing: str | None = None) -> Machine:
        """The machine that `save` put into a file."""
        return Machine(native=_native.Machine.restored(file, accept_changed_disks, timing))

    def boot(self, *, until: str | bytes | None = None, instructions: int | None = None) -> Machine:
        """Runs it, until it has printed a text or has ended; answers the machine."""
        self.run(until=until, instructions=instructions)
        return self

    def run(
        self,
        *addresses: int,
        until: str | bytes | None = None,
        instructions: int | None = None,
        on_block: Callable[[int, int], Any] | None = None,
        on_interruption: Callable[[int, str, int, int], Any] | None = None,
    ) -> Stopped:
        """Runs until one of these comes first: a processor is at one of the addresses, the machine has printed a text
        since `read_output` was called last, so many instructions of all processors have retired, or it has ended.
        Ctrl-C stops it; it can be run on.

        `on_block` is called before each block with the processor's number and the address of the next instruction,
        `on_interruption` with the number, the interruption in words, the address that was interrupted and the
        handler's. What answers true stops the machine. Without them nothing is paid for them.
        """
        text = until.encode() if isinstance(until, str) else until
        return Stopped(*self.native.run(instructions, set(addresses), text, on_block, on_interruption))

    def step(self, instructions: int = 1) -> Stopped:
        """Executes so many instructions of all processors together."""
        return self.run(instructions=instructions)

    @property
    def processors(self) -> list[Processor]:
        """Its processors."""
        return [Processor(self.native, number) for number in range(self.native.processors)]

    @property
    def registers(self) -> Registers:
        """The registers of the first processor."""
        return self.processors[0].registers

    def read(self, address: int, size: int) -> bytes:
        """Bytes of memory at a physical address."""
        return self.native.read_memory(address, size, None)

    def write(self, address: int, content: bytes) -> None:
        """Changes memory at a physical address."""
        self.native.write_memory(address, content, None)

    @property
    def counters(self) -> dict[str, int]:
        """What the models of all processors counted; empty without models."""
        return dict(self.native.counters(None))

    @property
    def instructions(self) -> int:
        """Instructions of all processors so far."""
        return sum(self.native.instructions())

    @property
    def ticks(self) -> int:
        """Its time: instructions, or cycles of the model."""
        return self.native.ticks

    @property
    def output(self) -> str:
        """Everything that it has printed."""
        return self.native.output().decode(errors="replace")

    def read_output(self) -> str:
        """What it has printed since the last time."""
        return self.native.take_output().decode(errors="replace")

    def type(self, text: str | bytes) -> None:
        """Types at its console."""
        self.native.type_input(text.encode() if isinstance(text, str) else text)

    def stop(self) -> None:
        """Has `run` come back, from another thread."""
        self.native.request_stop()

    @property
    def panic(self) -> str | None:
        """Why its kernel panicked, if it has."""
        return self.native.panic()

    def save(self, file: str | Path) -> None:
        """Saves it in a file, for `restore` and `sidestep run --restore`."""
        self.native.save(file)


class Host:
    """A modelled multicore host with virtual machines."""

    def __init__(self, native: _native.Host) -> None:
        self.native = native

    @staticmethod
    def from_toml(path: str | Path, *, timing: str | None = None, trace: bool = False) -> Host:
        """The host that a file describes, as `sidestep run` takes it. `trace` records its timeline."""
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        return Host(_native.Host.described(str(path), text, path.parent, timing, trace))

    def run(self, cycles: int = 1 << 42) -> str:
        """Runs until its virtual machines have ended or so many cycles have passed: `ended`, `deadlock`, `time`."""
        return self.native.run(self.cycles + cycles)

    @property
    def cycles(self) -> int:
        """Its time."""
        return self.native.cycles

    @property
    def report(self) -> dict[str, Any]:
        """What happened, as `sidestep run --format json` writes it."""
        report: dict[str, Any] = json.loads(self.native.report())
        return report

    def output(self, machine: int = 0) -> str:
        """What a virtual machine has printed."""
        return self.native.output(machine).decode(errors="replace")

    @property
    def counters(self) -> list[dict[str, int]]:
        """What each core's model counted; empty without models."""
        return [dict(core) for core in self.native.counters()]

    def timeline(self) -> pyarrow.Table:
        """Who was on which core when, an Arrow table; empty unless it was traced."""
        columns = {"track": "string", "name": "string", "start_ns": "uint64", "duration_ns": "uint64"}
        rows = [dict(zip(columns, span, strict=True)) for span in self.native.spans()]
        return tables.from_rows(rows, columns)


def toml(tables: Mapping[str, Any]) -> str:
    """A description as a TOML file has it: tables of texts and numbers, and lists of such tables."""
    lines = []
    for name, content in tables.items():
        several = isinstance(content, list)
        for table in content if several else [content]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            # JSON's texts and numbers are TOML's.
            lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"
