"""Sweeps: an experiment over a grid of inputs, on a Dask cluster, into a Parquet data set.

A sweep's points are cut into batches by their place in the grid. A batch is a task, and a file of the data set once
it is done: who computed it, in what order and beside how many others is not in its bytes. A sweep begins with what
the data set already holds, so a crashed or a longer one goes on. A worker keeps each finished point in its cache as
well, so that of a batch that dies with its worker only the points in the middle run again.
"""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native, cluster, settings, tables
from .errors import Error
from .own import OwnExperiment, Policy, Service
from .studies import Experiment, Progress

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from distributed import Client

__all__ = ["Sweep", "sweep"]

#: Points of a batch: enough that a task's own price does not count, few enough that many workers have some.
BATCH = 100


@dataclass(frozen=True)
class Request:
    """What every batch of a sweep has in common."""

    #: The experiment: its name, or the pickled definition of one that is written in Python.
    experiment: str | bytes
    quick: bool
    seed: int
    repeat: int | None
    #: The folder that workers keep finished points in.
    cache: str | None
    #: What computes the points: workers with another version are refused.
    version: str


#: Settings with the first point of their plan and the one behind the last.
Part = tuple[tuple[tuple[str, Any], ...], int, int]


@functools.lru_cache(maxsize=64)
def experiment_of(experiment: str | bytes) -> Experiment:
    """An experiment on a worker, made once."""
    if isinstance(experiment, str):
        return Experiment(experiment)
    definition, version = pickle.loads(experiment)
    return Experiment(definition, version)


@functools.lru_cache(maxsize=4096)
def plan_of(request: Request, given: tuple[tuple[str, Any], ...]) -> _native.Plan:
    """The points of some settings."""
    experiment = experiment_of(request.experiment)
    return experiment.plan(dict(given), quick=request.quick, seed=request.seed, repeat=request.repeat)


def compute(request: Request, batch: Sequence[Part]) -> tuple[bytes, int]:
    """Computes a batch, on a worker: a file of the data set, and how many of its points came from the cache."""
    if request.version != _native.VERSION:
        raise Error(f"the worker has sidestep {_native.VERSION}, and the sweep is of {request.version}")
    parts = [(plan_of(request, given), first, end) for given, first, end in batch]
    return _native.run_parts(parts, request.cache)


class Sweep:
    """A sweep, which is run by `run` and can be asked meanwhile how far it is."""

    def __init__(
        self,
        experiment: str | OwnExperiment | Policy | Service | Experiment,
        grid: Mapping[str, Any],
        *,
        into: str | Path | None = None,
        quick: bool = False,
        seed: int = 1,
        repeat: int | None = None,
        batch: int = BATCH,
        cache: str | Path | bool | None = True,
    ) -> None:
        self.experiment = experiment if isinstance(experiment, Experiment) else Experiment(experiment)
        self.folder = Path(into if into is not None else f"{self.experiment.name}.points")
        kept = settings.cache_folder() if cache is True else (cache or None)
        of = self.experiment.of
        self.request = Request(
            experiment=of if isinstance(of, str) else by_value(of),
            quick=quick,
            seed=seed,
            repeat=repeat,
            cache=None if kept is None else os.path.abspath(kept),
            version=_native.VERSION,
        )
        self.plans = [(given, plan_of(self.request, given)) for given in self.combinations(grid)]
        is_measured = any(plan.is_measured for _, plan in self.plans)
        #: Whether points measure real time: they run one by one, and one at a time on a host.
        self.is_measured = is_measured
        self.batch = 1 if is_measured else batch
        self.keys = [key for _, plan in self.plans for key in plan.keys()]
        self.present: set[str] = set()
        self.computed = 0
        self.cancelled = threading.Event()

    def combinations(self, grid: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], ...]]:
        """The settings of each plan: one for each combination of what is no axis of the experiment, with the axes
        whole."""
        inputs = self.experiment.inputs
        values: dict[str, tuple[Any, ...]] = {}
        for key, given in grid.items():
            several = isinstance(given, Iterable) and not isinstance(given, (str, os.PathLike))
            values[key.replace("_", "-")] = tuple(given) if several else (given,)
        if empty := [key for key, of in values.items() if not of]:
            raise Error(f"the grid has no value for `{empty[0]}`")
        listed = {key for key, of in inputs.items() if of["axis"]}
        axes = tuple((key, of) for key, of in values.items() if key in listed)
        others = {key: of for key, of in values.items() if key not in listed}
        for combination in itertools.product(*others.values()):
            yield tuple(zip(others, map(hashable, combination), strict=True)) + axes

    @property
    def total(self) -> int:
        """How many points it has."""
        return len(self.keys)

    @property
    def done(self) -> int:
        """How many of them are in the data set."""
        return sum(key in self.present for key in self.keys)

    def parts(self) -> list[Path]:
        """The files of the data set."""
        return sorted(self.folder.glob("part-*.parquet"))

    def missing(self) -> Iterator[tuple[str, list[Part]]]:
        """The batches that the data set lacks, each with the name of its file."""
        positions = [(index, point) for index, (_, plan) in enumerate(self.plans) for point in range(plan.points)]
        for start in range(0, len(positions), self.batch):
            numbers = [at for at in range(start, min(start + self.batch, len(positions)))]
            left = [at for at in numbers if self.keys[at] not in self.present]
            if left:
                yield f"part-{self.keys[left[0]][:32]}-{len(left)}.parquet", self.joined([positions[at] for at in left])

    def joined(self, points: Sequence[tuple[int, int]]) -> list[Part]:
        """Points as parts of plans, those that follow each other together."""
        parts: list[Part] = []
        for index, point in points:
            given = self.plans[index][0]
            if parts and parts[-1][0] is given and parts[-1][2] == point:
                parts[-1] = (given, parts[-1][1], point + 1)
            else:
                parts.append((given, point, point + 1))
        return parts

    def look(self) -> None:
        """Looks what the data set holds."""
        self.present = {key for part in self.parts() for key in _native.dataset_keys(part)}

    def keep(self, name: str, content: bytes) -> None:
        """Adds a file to the data set, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write(self.folder / name, content)
        self.present.update(_native.dataset_keys(self.folder / name))

    def cancel(self) -> None:
        """Has `run` come back, from another thread; what is finished stays."""
        self.cancelled.set()

    def run(
        self,
        on: Client | str | int | None = None,
        *,
        retries: int = 3,
        progress: Progress | None = None,
    ) -> Sweep:
        """Computes what the data set lacks, and comes back when it is there or the sweep was cancelled.

        `on` is a Dask client, a scheduler's address (`tcp://host:8786`), or how many workers a cluster on this
        machine has (as many as there are cores). A batch whose worker dies or fails is tried again so often. Ctrl-C
        ends the sweep.
        """
        self.look()
        tell = progress or shown
        tell(self.done, self.total)
        if self.done < self.total:
            with cluster.connected(on, self.is_measured) as client:
                self.distribute(client, retries, tell)
        return self

    def distribute(self, client: Client, retries: int, tell: Progress) -> None:
        """Hands out batches and keeps what comes back."""

        def keep(name: str, result: tuple[bytes, int]) -> None:
            before = len(self.present)
            self.keep(name, result[0])
            self.computed += len(self.present) - before
            tell(begun + self.computed, self.total)

        begun = self.done - self.computed
        tasks = ((name, (self.request, batch)) for name, batch in self.missing())
        try:
            cluster.distribute(client, compute, tasks, keep, retries, self.is_measured, self.cancelled)
        except cluster.GaveUp as error:
            kept = f"{self.done} of {self.total} points are kept in {self.folder}; the same sweep goes on from there"
            raise Error(f"{error}. {kept}.") from error.__cause__

    def to_arrow(self) -> pyarrow.Table:
        """The points of this sweep that are finished, in the order of the grid: a row each."""
        library = tables.arrow()
        import pyarrow.parquet

        parts = [pyarrow.parquet.read_table(part) for part in self.parts()]
        if not parts:
            raise Error(f"{self.folder}: holds no point yet")
        table = library.concat_tables(parts, promote_options="permissive")
        row_of = {key: row for row, key in enumerate(table.column("key").to_pylist())}
        table = table.take([row_of[key] for key in self.keys if key in row_of])
        # Columns of other experiments in the same data set.
        return table.select([name for name in table.column_names if table.column(name).null_count < len(table)])

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a data frame."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<sidestep.Sweep {self.experiment.name}: {self.done} of {self.total} points in {self.folder}>"


def sweep(
    experiment: str | OwnExperiment | Policy | Service | Experiment,
    grid: Mapping[str, Any],
    *,
    on: Client | str | int | None = None,
    into: str | Path | None = None,
    quick: bool = False,
    seed: int = 1,
    repeat: int | None = None,
    batch: int = BATCH,
    cache: str | Path | bool | None = True,
    retries: int = 3,
    progress: Progress | None = None,
) -> Sweep:
    """Runs an experiment at every combination of a grid's values, and answers the finished sweep.

    The data set is the folder `into`, named after the experiment unless something else is said. Inputs that the grid
    does not name keep their defaults. See `Sweep.run` for `on`, `retries` and `progress`.
    """
    made = Sweep(experiment, grid, into=into, quick=quick, seed=seed, repeat=repeat, batch=batch, cache=cache)
    return made.run(on, retries=retries, progress=progress)


def hashable(value: Any) -> Any:
    """A value of the grid as part of a request."""
    return tuple(value) if isinstance(value, (list, set)) else value


def by_value(definition: OwnExperiment | Policy | Service) -> bytes:
    """A definition as workers get it: with its code where that is the notebook's or the script's, and with the version
    of its source, which cannot be read there."""
    given = definition, definition.source_version()
    try:
        import cloudpickle  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return pickle.dumps(given)
    pickled: bytes = cloudpickle.dumps(given)
    return pickled


def shown(done: int, total: int) -> None:
    """Progress on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} points", end=end, file=sys.stderr, flush=True)


def fill(requests: Sequence[Mapping[str, Any]], folder: Path, on: str, retries: int = 3) -> None:
    """Has a cluster compute what a cache lacks, for a command that then finds it there.

    Requests are those of `sidestep compare`: `experiment`, `settings`, `quick`, `seed`, `repetitions`. Points that
    measure real time are left to the command.
    """
    tasks = []
    for of in requests:
        experiment = experiment_of(of["experiment"])
        asked = (tuple(of["settings"]), of["quick"], of["seed"], of["repetitions"])
        plan = experiment.study.plan(list(asked[0]), *asked[1:], False)
        if plan.is_measured:
            continue
        points = [any(not (folder / file).exists() for file in files) for files in plan.entries()]
        lacking = [point for point, lacks in enumerate(points) if lacks]
        for start in range(0, len(lacking), BATCH):
            batch = lacking[start : start + BATCH]
            name = f"fill-{plan.keys()[batch[0]][:32]}-{len(batch)}"
            tasks.append((name, (of["experiment"], asked, batch, _native.VERSION)))
    total, done = sum(len(arguments[2]) for _, arguments in tasks), 0

    def keep(_: str, entries: Mapping[str, bytes]) -> None:
        nonlocal done
        for file, content in entries.items():
            write(folder / file, content)
        done += len(entries)
        shown(min(done, total), total)

    if tasks:
        folder.mkdir(parents=True, exist_ok=True)
        with cluster.connected(on, False) as client:
            try:
                cluster.distribute(client, compute_entries, tasks, keep, retries, False, threading.Event())
            except cluster.GaveUp as error:
                raise Error(f"{error}. What is finished is kept: give the same command again.") from error.__cause__


def compute_entries(name: str, asked: tuple[Any, ...], points: Sequence[int], version: str) -> dict[str, bytes]:
    """Computes points on a worker; answers their entries of a cache, by name."""
    if version != _native.VERSION:
        raise Error(f"the worker has sidestep {_native.VERSION}, and the command is {version}")
    given, quick, seed, repetitions = asked
    plan = experiment_of(name).study.plan(list(given), quick, seed, repetitions, False)
    with tempfile.TemporaryDirectory() as place:
        folder = settings.cache_folder() or Path(place)
        _native.run_parts([(plan, point, point + 1) for point in points], folder)
        entries = plan.entries()
        files = [folder / file for point in points for file in entries[point]]
        # A point that failed has none: the command says why.
        return {file.name: file.read_bytes() for file in files if file.exists()}


def write(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    with written.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
