"""A Dask cluster: connected to or started, and tasks handed out to it a few at a time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from .errors import Error, needs

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["GaveUp", "connected", "distribute"]

#: How many tasks a worker has before it, so that it never waits for the next.
AHEAD = 3


class GaveUp(Exception):
    """The cluster has given up a task: its workers died too often, or the scheduler is gone."""


def distribute(
    client: Client,
    work: Callable[..., Any],
    tasks: Iterable[tuple[str, tuple[Any, ...]]],
    keep: Callable[[str, Any], None],
    retries: int,
    is_measured: bool,
    cancelled: threading.Event,
) -> None:
    """Has workers do tasks, each with a name and its arguments, and keeps each result as it comes.

    Tasks that measure real time are given to one worker of each host, one at a time.
    """
    import distributed

    left = iter(tasks)
    running: dict[Any, tuple[str, Sequence[str] | None]] = {}
    finished = distributed.as_completed(loop=client.loop)

    def submit(workers: Sequence[str] | None) -> None:
        for name, arguments in left:
            # Named for what it computes: a cluster that still has its result gives that.
            key = f"sidestep-{name}"
            future = client.submit(work, *arguments, key=key, retries=retries, workers=workers)
            running[future] = name, workers
            finished.add(future)
            return

    try:
        for workers in places(client, is_measured):
            submit(workers)
        while running and not cancelled.is_set():
            future = next(finished)
            name, workers = running.pop(future)
            keep(name, result_of(future))
            submit(workers)
    finally:
        if running:
            client.cancel(list(running))


class connected:
    """A client of the cluster that is asked for; what was started for it ends with it."""

    def __init__(self, on: Client | str | int | None, is_measured: bool) -> None:
        try:
            import distributed
        except ImportError as error:
            raise needs("dask[distributed]", "sweeps", "a sweep") from error
        self.opened = ExitStack()
        if on is not None and not isinstance(on, (str, int)):
            self.client = on
            return
        target: Any = on
        if not isinstance(on, str):
            # Points that measure real time have the machine for themselves.
            workers = 1 if is_measured else on or os.cpu_count() or 1
            self.opened.enter_context(script_left_alone())
            target = self.opened.enter_context(
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0", processes=True
                )
            )
        try:
            self.client = self.opened.enter_context(distributed.Client(target, set_as_default=False))
        except OSError as error:
            self.opened.close()
            raise Error(f"{on}: no scheduler answers there: {error}") from error

    def __enter__(self) -> Client:
        return self.client

    def __exit__(self, *_: object) -> None:
        self.opened.close()


@contextmanager
def script_left_alone() -> Iterator[None]:
    """Workers that are started meanwhile, or again after they died, do not run the caller's script.

    A process that Python spawns runs its parent's main module anew, for the definitions in it. A sweep at the end of a
    script would so start a cluster in each worker. Here definitions travel by value: workers need no main module.
    """
    main = sys.modules["__main__"]
    names = [name for name in ("__file__", "__spec__") if hasattr(main, name)]
    kept = {name: getattr(main, name) for name in names}
    vars(main).pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(kept)


def places(client: Client, is_measured: bool) -> list[Sequence[str] | None]:
    """Where the first batches go: a few for each thread, or where time is measured one for each host."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not is_measured:
        return [None] * (AHEAD * max(1, sum(of["nthreads"] for of in workers.values())))
    hosts = {of["host"]: address for address, of in sorted(workers.items())}
    if not hosts:
        raise Error("the cluster has no workers, and points that measure real time are given to one by one")
    return [[address] for address in hosts.values()]


def result_of(future: Any) -> Any:
    """What a task came to."""
    try:
        return future.result()
    except (Error, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise GaveUp(f"the cluster has given up a batch ({type(error).__name__}: {error})") from error
