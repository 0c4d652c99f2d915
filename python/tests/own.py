"""Experiments and policies that tests define; workers of a cluster import them from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import sidestep


class Ferry(sidestep.OwnExperiment):
    """Does a bigger ferry pay?"""

    name = "own.ferry"
    question = "Does a bigger ferry pay?"
    metric = ("minutes a car", "min", "lower")
    inputs = {"crossing": 10, "wait_time": sidestep.Input(0.5, unit="min"), "cars": [1, 2, 4], "log": ""}
    axes = ["cars"]

    def run(self, inputs: Mapping[str, Any], point: Mapping[str, Any], seed: int) -> tuple[Fraction, sidestep.Side]:
        if inputs["log"]:
            with Path(inputs["log"]).open("a") as log:
                log.write(f"{point['cars']}\n")
        if point["cars"] > 100:
            raise ValueError(f"{point['cars']} cars sink it")
        crossing = inputs["crossing"] + inputs["wait_time"]
        return crossing, sidestep.Side(crossing / point["cars"], {"cars": point["cars"], "load": (1, "t")})


class Measured(Ferry):
    """The same as if it measured real time."""

    name = "own.measured"
    nature = "measured"


class Turns(sidestep.Policy):
    """The machines take turns, and what the one in turn leaves goes to the other."""

    SLOT_NS = 10_000_000

    def assign(self, now_ns: int, tasks: Sequence[sidestep.Task], cores: int) -> tuple[Sequence[int | None], int]:
        turn = now_ns // self.SLOT_NS
        runnable = [task for task in tasks if task.runnable]
        runnable.sort(key=lambda task: (task.program % 2 != turn % 2, task.number))
        return [task.number for task in runnable][:cores], (turn + 1) * self.SLOT_NS


class Nobody(sidestep.Policy):
    """Names a task that does not exist."""

    def assign(self, now_ns: int, tasks: Sequence[sidestep.Task], cores: int) -> tuple[Sequence[int | None], int]:
        return [len(tasks)], now_ns + 1


class Counter(sidestep.Service):
    """Counts what it is asked, and touches as many lines as the guest says."""

    name = "own.counter"

    def __init__(self, cycles: int = 500) -> None:
        self.cycles = cycles
        self.asked = 0

    def serve(self, number: int, second: int, third: int) -> int | sidestep.Served:
        assert number == self.asked, "each run has a service of its own, asked in order"
        self.asked += 1
        if number == third - 1:
            raise ValueError(f"request {number} is one too many")
        return sidestep.Served(self.asked, self.cycles, second) if self.cycles else self.asked
