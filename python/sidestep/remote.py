"""A debugger's side of gdb's remote protocol: as much of it as driving a program takes.

The program's side is that of `sidestep exec --gdb`. A packet is `$body#sum`; `+` says that it came whole.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

from . import _native
from .errors import Error

__all__ = ["Remote", "Stop"]

#: The registers by name: number and size in bytes.
REGISTERS = {name: (number, size) for number, (name, size) in enumerate(_native.REGISTERS) if name}
#: Bytes of memory that one packet carries.
PART = 1024
INTERRUPT = b"\x03"


@dataclass(frozen=True)
class Stop:
    """Why a program stopped: `breakpoint`, `step`, `watchpoint`, `signal`, `exited` or `killed`."""

    reason: str
    #: The signal by gdb's number, or the exit status.
    number: int = 0
    #: The address that a watchpoint was hit at.
    address: int | None = None


class Remote:
    """A connection to a program that stands still, or was told to go on."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""
        #: The thread that stopped last, as the protocol names it.
        self.thread = "1"
        # As gdb asks: stops at breakpoints are to say so.
        self.ask("qSupported:swbreak+;hwbreak+")
        # It stands before its first instruction; which thread that is, is the answer.
        self.choose(self.ask("?"))

    def send(self, body: str) -> None:
        """Sends a packet."""
        self.connection.sendall(f"${body}#{sum(body.encode()) & 0xFF:02x}".encode())

    def receive(self) -> str:
        """The next packet."""
        while True:
            start = self.buffer.find(b"$")
            end = self.buffer.find(b"#", start)
            if start >= 0 and end >= 0 and len(self.buffer) >= end + 3:
                body = self.buffer[start + 1 : end]
                self.buffer = self.buffer[end + 3 :]
                # Whose program has ended may be gone with its last word, which needs no answer then.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.connection.sendall(b"+")
                return expanded(body).decode("latin-1")
            try:
                part = self.connection.recv(1 << 16)
            except ConnectionError:
                part = b""
            if not part:
                raise Error("the program's process is gone")
            self.buffer += part

    def ask(self, body: str) -> str:
        """What the program's side answers to a packet."""
        self.send(body)
        return self.receive()

    def demand(self, body: str, what: str) -> str:
        """The same, where an error is one."""
        answer = self.ask(body)
        if not answer or (answer.startswith("E") and len(answer) == 3):
            raise Error(what)
        return answer

    def interrupt(self) -> None:
        """Has a program that runs stop."""
        self.connection.sendall(INTERRUPT)

    def register(self, name: str) -> int:
        """A register's value; a floating-point register as it is spilled, 128 bits."""
        number, _ = located(name)
        answer = self.demand(f"p{number:x}", f"the register {name} cannot be read now")
        return int.from_bytes(bytes.fromhex(answer), "little")

    def set_register(self, name: str, value: int) -> None:
        """Changes a register."""
        number, size = located(name)
        if not 0 <= value < 1 << 8 * size:
            raise Error(f"{name}: {value:#x} is no number of {size} bytes")
        written = value.to_bytes(size, "little").hex()
        self.demand(f"P{number:x}={written}", f"the register {name} cannot be set to {value:#x}")

    def read(self, address: int, size: int) -> bytes:
        """Bytes of memory."""
        content = b""
        while len(content) < size:
            at, part = address + len(content), min(PART, size - len(content))
            answer = self.demand(f"m{at:x},{part:x}", f"{at:#x}: the program has no memory there")
            content += bytes.fromhex(answer)
        return content

    def write(self, address: int, content: bytes) -> None:
        """Changes bytes of memory."""
        for offset in range(0, len(content), PART):
            at, part = address + offset, content[offset : offset + PART]
            self.demand(f"M{at:x},{len(part):x}:{part.hex()}", f"{at:#x}: the program has no memory there")

    def breakpoint(self, address: int, is_set: bool) -> None:
        """Sets or clears a breakpoint at an instruction: its bundle's address, with the slot in the low bits."""
        self.demand(f"{'Z' if is_set else 'z'}0,{address:x},1", f"{address:#x}: no breakpoint can be there")

    def watchpoint(self, address: int, size: int, kind: str, is_set: bool) -> None:
        """Sets or clears a watchpoint: for `write`, `read` or both, `access`."""
        number = {"write": 2, "read": 3, "access": 4}[kind]
        self.demand(f"{'Z' if is_set else 'z'}{number},{address:x},{size:x}", f"{address:#x}: cannot be watched")

    def resume(self, steps: bool, pending: int = 0) -> None:
        """Has the program go on, by one instruction or until it stops; a pending signal reaches its thread."""
        action = "s" if steps else "c"
        if pending:
            action = f"{action.upper()}{pending:02x}"
        self.send(f"vCont;{action}:{self.thread};c")

    def stopped(self) -> Stop:
        """Waits until it has stopped."""
        answer = self.receive()
        while answer.startswith("O"):
            answer = self.receive()
        self.choose(answer)
        return stop_of(answer)

    def choose(self, answer: str) -> None:
        """Has registers be those of the thread that a stop reply names."""
        thread = details_of(answer).get("thread")
        if thread is not None:
            self.thread = thread
            self.demand(f"Hg{thread}", f"the program has no thread {thread}")


def located(name: str) -> tuple[int, int]:
    if name not in REGISTERS:
        raise Error(f"there is no register {name}")
    return REGISTERS[name]


def stop_of(answer: str) -> Stop:
    """What a stop reply says: `T05swbreak:;thread:1;`, `S05`, `W00`, `X09`."""
    kind, number = answer[:1], int(answer[1:3] or "0", 16)
    if kind == "W":
        return Stop("exited", number)
    if kind == "X":
        return Stop("killed", number)
    details = details_of(answer)
    watched = next((details[key] for key in ("watch", "rwatch", "awatch") if key in details), None)
    if watched is not None:
        return Stop("watchpoint", address=int(watched, 16))
    if {"swbreak", "hwbreak"} & details.keys():
        return Stop("breakpoint")
    return Stop("step") if number == 5 else Stop("signal", number)


def details_of(answer: str) -> dict[str, str]:
    """What a stop reply says beside its reason: the thread, the kind of stop."""
    return dict(part.split(":", 1) for part in answer[3:].split(";") if answer[:1] == "T" and ":" in part)


def expanded(body: bytes) -> bytes:
    """A packet's body without escapes (`}`) and runs (`*`)."""
    plain = bytearray()
    bytes_left = iter(body)
    for byte in bytes_left:
        if byte == ord("}"):
            plain.append(next(bytes_left) ^ 0x20)
        elif byte == ord("*"):
            plain.extend(plain[-1:] * (next(bytes_left) - 29))
        else:
            plain.append(byte)
    return bytes(plain)
