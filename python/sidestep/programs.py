"""Linux/ia64 programs: run to their end on a model or without, or step by step."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native, remote, tables
from .errors import Error

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Debugged", "Process", "Program", "Registers", "Run", "Stop"]

Stop = remote.Stop

#: What the process of a program executes: this library without the package around it.
GUEST = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
sys.exit(native.run_program(sys.orig_argv[:sys.orig_argv.index(sys.argv[1]) + 1], sys.argv[2:]))
"""
#: Exit statuses of the process when a program could not be started, and when it reached its bound.
NOT_STARTED = (125, 126, 127)
LIMIT_REACHED = 124

#: The columns of samples, with Arrow's types.
SAMPLE_COLUMNS = {
    "process": "int64",
    "thread": "int64",
    "event": "string",
    "cycle": "uint64",
    "ip": "uint64",
    "slot": "uint8",
    "weight": "uint64",
    "address": "uint64",
    "latency": "uint64",
    "translated": "string",
    "target": "uint64",
    "wrong_path": "bool",
    "wrong_target": "bool",
}


@dataclass(frozen=True)
class Process:
    """What one process of a run counted, as the run of one program."""

    number: int
    program: Path
    #: What the model counted, by the names of events; empty without a model.
    counters: Mapping[str, int]
    #: What was sampled, a row a sample.
    samples: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Run:
    """A run of a program."""

    #: Its exit status; 128 and the signal's number where a signal ended it.
    status: int
    stdout: bytes | None
    stderr: bytes | None
    processes: Sequence[Process]
    #: Whether it was ended by its bound on instructions.
    reached_limit: bool

    @property
    def counters(self) -> dict[str, int]:
        """What the model counted in all processes, by the names of events."""
        total: dict[str, int] = {}
        for process in self.processes:
            for event, count in process.counters.items():
                total[event] = total.get(event, 0) + count
        return total

    @property
    def cycles(self) -> int:
        """Cycles of the model."""
        return self.counters.get("CPU_CYCLES", 0)

    @property
    def instructions(self) -> int:
        """Instructions that retired, as the model counted them."""
        return self.counters.get("IA64_INST_RETIRED", 0)

    def samples(self) -> pyarrow.Table:
        """The samples as an Arrow table."""
        rows = [dict(row) for process in self.processes for row in process.samples]
        return tables.from_rows(rows, SAMPLE_COLUMNS)


class Program:
    """A Linux/ia64 program with its arguments and environment."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        environment: Mapping[str, str] | None = None,
        sysroot: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = Path(path)
        self.arguments = [os.fspath(argument) for argument in arguments]
        self.environment = environment
        self.sysroot = sysroot

    def run(
        self,
        *,
        timing: str | None = None,
        events: Sequence[str] = (),
        samples_a_second: int = 4000,
        max_instructions: int | None = None,
        stdin: bytes | None = None,
        capture: bool = True,
        timeout: float | None = None,
    ) -> Run:
        """Runs it to its end.

        `timing` names the processor whose model it runs on, `itanium2`; `events` are sampled: every so many
        (`NAME:PERIOD`) or as often as `samples_a_second` of the processor's time says. Its output comes back in the
        result, unless `capture` is false: then it goes where this process's goes. Ctrl-C ends it.
        """
        parts = _native.Parts()
        asked = []
        if timing is None and events:
            raise Error("events are counted by a model: name its processor, timing='itanium2'")
        if timing is not None:
            asked += [f"timing={timing}", f"parts={parts.path}"]
            # Unknown names are said before anything runs.
            kept = _native.check_events(timing, list(events), samples_a_second)
            if events:
                asked.append(f"kept={kept}")
        if max_instructions is not None:
            asked.append(f"instructions={max_instructions}")
        pipe = subprocess.PIPE if capture else None
        process = self.start(asked, stdin=subprocess.PIPE if stdin is not None else None, stdout=pipe, stderr=pipe)
        try:
            out, error = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        status = self.status_of(process.returncode, error)
        processes = [process_of(*left) for left in parts.read()]
        reached = max_instructions is not None and status == LIMIT_REACHED
        return Run(status, out, error, processes, reached)

    def debug(self) -> Debugged:
        """Starts it under control: it stands before its first instruction."""
        own, other = socket.socketpair()
        with other:
            process = self.start([f"debugger={other.fileno()}"], pass_fds=[other.fileno()])
        return Debugged(self, process, own)

    def start(self, asked: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Starts the process that it runs in."""
        if self.sysroot is not None:
            asked = [*asked, f"sysroot={os.path.abspath(self.sysroot)}"]
        command = [sys.executable, "-I", "-S", "-c", GUEST, str(_native.__file__), *asked]
        return subprocess.Popen([*command, "--", str(self.path), *self.arguments], env=self.environment, **how)

    def status_of(self, code: int, error: bytes | None) -> int:
        """The exit status of a process; an error where the program could not be started."""
        said = (error or b"").decode(errors="replace").strip().removeprefix("sidestep: ")
        if code in NOT_STARTED and said.startswith(str(self.path)):
            raise Error(said)
        return code if code >= 0 else 128 - code

    def __repr__(self) -> str:
        return f"<sidestep.Program {' '.join([str(self.path), *self.arguments])}>"


def process_of(number: int, program: str, counters: list[tuple[str, int]], kept: str | None) -> Process:
    events = json.loads(kept).get("samples", []) if kept else []
    rows = [sample_row(number, of["event"], sample) for of in events for sample in of["samples"]]
    return Process(number, Path(program), dict(counters), rows)


def sample_row(process: int, event: str, sample: Mapping[str, Any]) -> dict[str, Any]:
    branch = sample.get("branch") or {}
    plain = {column: sample.get(column) for column in SAMPLE_COLUMNS}
    return plain | {"process": process, "event": event, "thread": sample.get("thread", 0)} | dict(branch)


class Registers(MutableMapping[str, int]):
    """Registers by their names: `r8`, `f6`, `b0`, `pr`, `ip`, `psr`, `cfm`, `pfs`, and others.

    A floating-point register is 128 bits, as it is spilled.
    """

    def __init__(self, of: Any) -> None:
        self.of = of

    def __getitem__(self, name: str) -> int:
        return int(self.of.register(name))

    def __setitem__(self, name: str, value: int) -> None:
        self.of.set_register(name, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"the register {name} cannot be taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(remote.REGISTERS)

    def __len__(self) -> int:
        return len(remote.REGISTERS)


class Debugged:
    """A program under control. It stands still except within `step` and `go`; use it in a `with` statement."""

    def __init__(self, program: Program, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self.program = program
        self.process = process
        try:
            self.remote = remote.Remote(connection)
        except Error:
            status = process.wait()
            raise Error(f"{program.path}: cannot be started, status {status}") from None
        self.ended: Stop | None = None
        #: The signal that it stopped for, which it gets when it goes on.
        self.pending = 0

    @property
    def registers(self) -> Registers:
        """The registers of the thread that stopped, which can be changed."""
        return Registers(self.remote)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of its memory."""
        return self.remote.read(address, size)

    def write(self, address: int, content: bytes) -> None:
        """Changes its memory."""
        self.remote.write(address, content)

    def step(self, instructions: int = 1) -> Stop:
        """Executes instructions one by one; answers why it stopped."""
        stop = Stop("step")
        for _ in range(instructions):
            stop = self.wait(steps=True)
            if stop.reason != "step":
                break
        return stop

    def go(self, *addresses: int, watch: tuple[int, int, str] | None = None) -> Stop:
        """Runs until it is at one of these addresses, its watched memory is used, a signal comes, or it ends.

        `watch` is an address, a size and `write`, `read` or `access`. Ctrl-C stops it.
        """
        for address in addresses:
            self.remote.breakpoint(address, True)
        if watch:
            self.remote.watchpoint(*watch, True)
        stop = self.wait(steps=False)
        if self.ended is None:
            for address in addresses:
                self.remote.breakpoint(address, False)
            if watch:
                self.remote.watchpoint(*watch, False)
        return stop

    def wait(self, steps: bool) -> Stop:
        if self.ended is not None:
            raise Error(f"{self.program.path}: has ended ({self.ended.reason} {self.ended.number})")
        self.remote.resume(steps, self.pending)
        self.pending = 0
        try:
            stop = self.remote.stopped()
        except KeyboardInterrupt:
            self.remote.interrupt()
            self.remote.stopped()
            raise
        if stop.reason in ("exited", "killed"):
            self.ended = stop
            self.close()
        elif stop.reason == "signal":
            self.pending = stop.number
        return stop

    def close(self) -> None:
        """Ends it."""
        self.remote.connection.close()
        if self.ended is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Debugged:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
