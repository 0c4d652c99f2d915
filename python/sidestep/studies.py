"""The laboratory: experiments by their names, comparisons to look at, ask and keep."""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native, figures, settings, tables
from .errors import Error, UnknownExperiment
from .own import OwnExperiment, Policy, Service, Versioned

if TYPE_CHECKING:
    import altair
    import pandas
    import pyarrow

__all__ = ["Comparison", "Experiment", "Experiments", "experiments"]

#: Told how many points are done, and of how many.
Progress = Callable[[int, int], None]


class Experiment:
    """A figure or table of a paper, or one of one's own: baseline against sidestep over a sweep."""

    def __init__(self, of: str | OwnExperiment | Policy | Service, version: str | None = None) -> None:
        """Of a name that ships, or of a definition; `version` is that of its source, where that cannot be read."""
        self.of = of
        if isinstance(of, Versioned) and version is None:
            version = of.source_version()
        if isinstance(of, str):
            try:
                self.study = _native.Study.named(of)
            except KeyError as error:
                raise UnknownExperiment(error.args[0]) from None
        elif isinstance(of, OwnExperiment):
            self.study = _native.Study.own(of, version)
        elif isinstance(of, Policy):
            self.study = _native.Study.governed(of.name, of, version)
        elif isinstance(of, Service):
            self.study = _native.Study.served(of.name, of, version)
        else:
            raise TypeError(f"{of!r} is no experiment: a name, an OwnExperiment, a Policy or a Service")

    @cached_property
    def description(self) -> dict[str, Any]:
        """What it says about itself, as `sidestep list --format json` does."""
        described: dict[str, Any] = json.loads(self.study.description())["experiments"][0]
        return described

    @property
    def name(self) -> str:
        """`area.experiment`."""
        return str(self.description["experiment"])

    @property
    def question(self) -> str:
        """What it asks."""
        return str(self.description["question"])

    @property
    def source(self) -> str:
        """The paper and the figure or table that it takes up."""
        return str(self.description["source"])

    @property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """What can be changed, by key: `default`, `source`, `about`, `values`, `unit`, whether it is an `axis`."""
        return {of["key"]: of for of in self.description["inputs"]}

    @property
    def defaults(self) -> dict[str, str]:
        """The values when nothing is set."""
        return {key: of["default"] for key, of in self.inputs.items()}

    def plan(
        self,
        given: Mapping[str, Any],
        *,
        quick: bool = False,
        seed: int = 1,
        repeat: int | None = None,
        trace: bool = False,
    ) -> _native.Plan:
        """Its points under some settings."""
        return self.study.plan(settings.texts(given), quick, seed, repeat, trace)

    def compare(
        self,
        given: Mapping[str, Any] | None = None,
        /,
        *,
        quick: bool = False,
        seed: int = 1,
        repeat: int | None = None,
        trace: bool = False,
        jobs: int | None = None,
        cache: str | Path | bool | None = True,
        progress: Progress | None = None,
        **further: Any,
    ) -> Comparison:
        """Runs it, as `sidestep compare` does, and keeps finished points where the command keeps them.

        Settings are keyword arguments, `cache_line=28` for `--set cache-line=28`, or a mapping. `cache` is another
        folder, or false for none. Ctrl-C ends the run; points that were finished are kept.
        """
        plan = self.plan({**(given or {}), **further}, quick=quick, seed=seed, repeat=repeat, trace=trace)
        folder = settings.cache_folder() if cache is True else (Path(cache) if cache else None)
        told = None if progress is None else lambda done: progress(done, plan.points)
        return Comparison(self, plan.run(folder, jobs or os.cpu_count() or 1, told))

    def __repr__(self) -> str:
        return f"<sidestep.Experiment {self.name}: {self.question}>"

    def __str__(self) -> str:
        return self.study.details(120)

    def _repr_html_(self) -> str:
        inputs = [(key, of["default"], of["unit"], of["about"], of["source"]) for key, of in self.inputs.items()]
        head = f"<h4>{html.escape(self.name)}</h4><p>{html.escape(self.question)}<br>{html.escape(self.source)}</p>"
        return head + html_table(["input", "default", "unit", "about", "source"], inputs)


class Experiments(Mapping[str, Experiment]):
    """The experiments that ship, by their names."""

    def __getitem__(self, name: str) -> Experiment:
        return Experiment(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_native.names())

    def __len__(self) -> int:
        return len(_native.names())

    def __repr__(self) -> str:
        return f"<sidestep.experiments: {', '.join(self)}>"


#: The experiments that ship, by their names.
experiments = Experiments()


class Comparison:
    """The outcome of an experiment: a row for each point, verdicts, figures."""

    def __init__(self, experiment: Experiment, native: _native.Comparison) -> None:
        self.experiment = experiment
        self.native = native

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it, as `sidestep compare --format json` writes one experiment."""
        document: dict[str, Any] = json.loads(self.native.json())["comparisons"][0]
        return document

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points: where (`at`), `baseline`, `sidestep`, `ratio`, `counters`, what is `stated`, the `verdict`."""
        points: list[dict[str, Any]] = self.document["points"]
        return points

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What holds of the sweep as a whole."""
        findings: list[dict[str, Any]] = self.document["findings"]
        return findings

    @property
    def verdicts(self) -> dict[str, int]:
        """How many verdicts, of points and of findings, are of a kind."""
        return dict(Counter(of["verdict"] for of in [*self.rows, *self.findings]))

    @property
    def from_cache(self) -> int:
        """How many repetitions of points came from the cache."""
        return self.native.from_cache

    @property
    def figures(self) -> list[figures.Picture]:
        """The report's pictures, as `sidestep compare --charts` writes them."""
        return [figures.Picture(name, svg) for name, svg in self.native.charts()]

    def charts(self) -> list[altair.Chart]:
        """The charts as Vega-Altair objects."""
        return [figures.chart(figure, self.rows) for figure in self.experiment.description["figures"]]

    def to_arrow(self) -> pyarrow.Table:
        """A row a point, the columns of `sidestep compare --format parquet`."""
        return tables.from_parquet(self.native.parquet())

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a data frame."""
        return self.to_arrow().to_pandas()

    def to_bytes(self, format: str) -> bytes:
        """It in one of the command's formats, the same bytes: json, csv, parquet, md, html, txt, trace."""
        writers: dict[str, Callable[[], str | bytes]] = {
            "json": self.native.json,
            "csv": self.native.csv,
            "parquet": self.native.parquet,
            "md": self.native.markdown,
            "html": self.native.html,
            "txt": lambda: self.native.table(120),
            "trace": self.native.trace,
        }
        if format not in writers:
            raise Error(f"`{format}` is no format; there are {', '.join(writers)}")
        written = writers[format]()
        return written.encode() if isinstance(written, str) else written

    def save(self, path: str | Path) -> None:
        """Writes it to a file; the end of its name says the format, as of `to_bytes`."""
        path = Path(path)
        path.write_bytes(self.to_bytes(path.suffix.removeprefix(".")))

    def __str__(self) -> str:
        return self.native.table(120)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        return f"<sidestep.Comparison {self.experiment.name}: {len(self.rows)} points; {verdicts}>"

    def _repr_html_(self) -> str:
        columns = ["baseline", "sidestep", "ratio", "verdict"]
        places = list(dict.fromkeys(key for row in self.rows for key in row["at"]))
        rows = [[*map(row["at"].get, places), *map(row.get, columns)] for row in self.rows]
        unit = self.document["unit"]
        named = [f"{column} ({unit})" if unit and column in columns[:2] else column for column in columns]
        pictures = "".join(f"<div>{picture.svg}</div>" for picture in self.figures)
        return f"<h4>{html.escape(self.experiment.question)}</h4>{html_table(places + named, rows)}{pictures}"


def cell(of: Any) -> str:
    """What a cell of a table shows."""
    return "" if of is None else html.escape(f"{of:.6g}" if isinstance(of, float) else str(of))


def html_table(heads: list[str], rows: list[Any]) -> str:
    """A table for a notebook."""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell(of)}</td>" for of in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
