"""Experiments, scheduling policies and services of sidecores that are written in Python."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from .settings import text

__all__ = ["Input", "OwnExperiment", "Policy", "Served", "Service", "Side", "Task"]

Number = int | float | Fraction


@dataclass(frozen=True)
class Input:
    """An input of an experiment: its default, and what is said of it.

    The default decides which values it takes: whole numbers, ratios (float or Fraction), switches (bool), texts; of
    an axis a list of them. `duration` makes whole numbers times in nanoseconds, which are set as `5us`.
    """

    default: Any
    about: str = ""
    unit: str = ""
    source: str = ""
    duration: bool = False


@dataclass(frozen=True)
class Side:
    """What one side of a point measured: a value, and counters that explain it, with units where they have one."""

    value: Number
    counters: Mapping[str, Number | tuple[Number, str]] = field(default_factory=dict)


def exact(number: Number) -> str:
    """A number without rounding, as results have it; a float is the decimal that it is written as."""
    fraction = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    return f"{fraction.numerator}/{fraction.denominator}"


class Versioned:
    """What is written in Python, with a version of its source.

    Points are kept under the version. Without one of its own it is a hash over the source of its class and its
    attributes; what those call is not in it, so whoever changes that says `version`.
    """

    version: str | None = None

    def source_version(self) -> str | None:
        """The version; none where neither says it nor has a source that can be read."""
        if self.version is not None:
            return f"{type(self).__qualname__} {self.version}"
        try:
            source = inspect.getsource(type(self))
            attributes = json.dumps(vars(self), sort_keys=True)
        except (OSError, TypeError, ValueError):
            return None
        return hashlib.sha256(f"{source}\n{attributes}".encode()).hexdigest()[:16]


class OwnExperiment(Versioned):
    """An experiment: baseline against sidestep at every point of its axes.

    A point depends on its inputs, its place and the seed alone, so that it can be kept and run anywhere.
    """

    #: `area.experiment`.
    name: str = "own.experiment"
    question: str = "Which of the two is better?"
    source: str = "none"
    setting: str = ""
    baseline: str = "baseline"
    sidestep: str = "sidestep"
    reading: str = ""
    #: What is compared: its name, its unit, and whether `lower` or `higher` is better.
    metric: tuple[str, str, str] = ("time", "", "lower")
    #: `deterministic`, `seeded` (repeated with other seeds), or `measured` (real time: points run alone).
    nature: str = "deterministic"
    #: What can be changed: defaults, or `Input`s.
    inputs: Mapping[str, Any] = {}
    #: The inputs that list what the sweep visits; the last is the fastest.
    axes: Sequence[str] = ()

    def run(
        self, inputs: Mapping[str, Any], point: Mapping[str, Any], seed: int
    ) -> tuple[Number | Side | None, Number | Side | None]:
        """Measures a point: baseline and sidestep, each a number, a `Side`, or none where it has no value."""
        raise NotImplementedError(f"{type(self).__name__}.run measures a point")

    def describe(self) -> str:
        """What it says about itself, as the library reads it."""
        name, unit, better = self.metric
        words = ("name", "question", "source", "setting", "baseline", "sidestep", "reading", "nature")
        declared = [described(key, value, key in self.axes) for key, value in self.inputs.items()]
        # Axes in the order of the sweep.
        declared.sort(key=lambda of: self.axes.index(of["key"]) if of["axis"] else -1)
        return json.dumps(
            {word: getattr(self, word) for word in words}
            | {"metric": {"name": name, "unit": unit, "better": better}, "inputs": declared}
        )

    def measure(
        self, inputs: Mapping[str, Any], point: Mapping[str, Any], seed: int
    ) -> tuple[Measured | None, Measured | None]:
        """A point as the library reads it."""
        names = {key.replace("_", "-"): key for key in self.inputs}
        as_declared = [{names[key]: value for key, value in of.items()} for of in (inputs, point)]
        baseline, sidestep = self.run(as_declared[0], as_declared[1], seed)
        return measured(baseline), measured(sidestep)


Measured = tuple[str, list[tuple[str, str, str]]]


def measured(side: Number | Side | None) -> Measured | None:
    """A side as the library reads it."""
    if side is None:
        return None
    if not isinstance(side, Side):
        side = Side(side)
    pairs = ((name, of if isinstance(of, tuple) else (of, "")) for name, of in side.counters.items())
    return exact(side.value), [(name, exact(value), unit) for name, (value, unit) in pairs]


def described(key: str, value: Any, axis: bool) -> dict[str, Any]:
    """The declaration of an input as the library reads it."""
    given = value if isinstance(value, Input) else Input(value)
    one = given.default[0] if axis else given.default
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "switch"),
        (int, "duration" if given.duration else "integer"),
        ((float, Fraction), "ratio"),
        (str, "text"),
    ]
    kind = next((name for of, name in kinds if isinstance(one, of)), None)
    if kind is None:
        raise TypeError(f"input `{key}`: {one!r} is no number, switch or text")
    unit = "ns" if kind == "duration" else ""
    elements = given.default if axis else [given.default]
    return {
        "key": key.replace("_", "-"),
        "kind": kind,
        "axis": axis,
        "default": ",".join(text(each) + unit for each in elements),
        "about": given.about,
        "unit": given.unit,
        "source": given.source or "chosen",
    }


class Task(NamedTuple):
    """What a policy knows of a task, a virtual processor."""

    number: int
    #: The virtual machine that it belongs to.
    program: int
    #: Whether it could run now; a spinning task can.
    runnable: bool
    #: Whether it has got an interrupt since it blocked last.
    signalled: bool
    #: When its last whole grant ended.
    served_ns: int
    #: Since when it has its core; none if it has none.
    granted_ns: int | None
    #: How far it is.
    progress_ns: int
    #: The core that it ran on last.
    core: int | None


class Policy(Versioned):
    """A scheduling policy: for a moment in time, which runnable task has which core.

    A pure function: it keeps nothing between calls.
    """

    #: The name of the experiment that holds it against free scheduling.
    name: str = "own.policy"

    def assign(self, now_ns: int, tasks: Sequence[Task], cores: int) -> tuple[Sequence[int | None], int]:
        """For each core the number of its task, none where it is idle; and when to ask again at the latest."""
        raise NotImplementedError(f"{type(self).__name__}.assign decides who runs")

    def decide(self, now_ns: int, tasks: list[tuple[Any, ...]], cores: int) -> tuple[list[int | None], int]:
        """A decision as the library asks for it."""
        grants, until_ns = self.assign(now_ns, [Task(*task) for task in tasks], cores)
        return list(grants), until_ns


class Served(NamedTuple):
    """What serving a request came to."""

    #: What the guest gets, of 64 bits.
    answer: int
    #: Cycles of work, on whichever core it is done.
    cycles: int = 0
    #: Cache lines of the guest's that are touched: near on the guest's own core, they come over to a sidecore.
    lines: int = 0


class Service(Versioned):
    """A service of a sidecore: what guests ask for, and what that costs.

    It may keep what it needs in its attributes: each run of a guest has a copy of it as it was given.
    """

    #: The name of the experiment that asks it by exit and by sidecall.
    name: str = "own.service"

    def serve(self, number: int, second: int, third: int) -> int | Served:
        """Answers a request with its arguments: its number, from 0 on, and the experiment's inputs of those names."""
        raise NotImplementedError(f"{type(self).__name__}.serve answers a request")

    def handle(self, number: int, second: int, third: int) -> Served:
        """An answer as the library asks for it."""
        served = self.serve(number, second, third)
        return served if isinstance(served, Served) else Served(served)
