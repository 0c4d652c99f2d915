"""Every finished point as one table: of the cache, of data sets; asked in SQL, compared across versions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import settings, tables
from .errors import Error, UnknownExperiment, needs
from .studies import experiments

if TYPE_CHECKING:
    import duckdb
    import pandas
    import pyarrow

__all__ = ["Results", "results"]

#: The first word of an entry of the cache.
MAGIC = "sidestep-point-1"
#: The columns of the table, with Arrow's types. Inputs and counters are JSON: `(inputs->>'exit')` in SQL.
COLUMNS = {
    "origin": "string",
    "version": "string",
    "machine": "string",
    "experiment": "string",
    "point": "string",
    "inputs": "string",
    "seed": "int64",
    "repetitions": "int64",
    "status": "string",
    "baseline": "double",
    "sidestep": "double",
    "ratio": "double",
    "counters": "string",
}
#: How values that moved are found: points of both versions, with the relative change of each number.
DIFFERENCE = """
    SELECT old.experiment, old.point, old.inputs, old.seed, of.quantity, of.before, of.after,
           of.after - of.before AS difference,
           CASE WHEN of.before <> 0 THEN (of.after - of.before) / abs(of.before) END AS relative
    FROM (SELECT DISTINCT ON (experiment, point, inputs, seed, repetitions) *
          FROM points WHERE starts_with(version, $old)) AS old
    JOIN (SELECT DISTINCT ON (experiment, point, inputs, seed, repetitions) *
          FROM points WHERE starts_with(version, $new)) AS new
      USING (experiment, point, inputs, repetitions)
    CROSS JOIN LATERAL (VALUES ('baseline', old.baseline, new.baseline),
                               ('sidestep', old.sidestep, new.sidestep),
                               ('ratio', old.ratio, new.ratio)) AS of(quantity, before, after)
    WHERE old.seed IS NOT DISTINCT FROM new.seed AND of.before IS DISTINCT FROM of.after
    ORDER BY ALL
"""


class Results:
    """Finished points as one table, `points`."""

    def __init__(self, table: pyarrow.Table, problems: Sequence[str] = ()) -> None:
        self.table = table
        #: What could not be read, in words.
        self.problems = list(problems)

    @cached_property
    def database(self) -> duckdb.DuckDBPyConnection:
        """The table as a database in memory."""
        try:
            import duckdb
        except ImportError as error:
            raise needs("duckdb", "results", "a question in SQL") from error
        connection = duckdb.connect()
        connection.register("points", self.table)
        return connection

    def sql(self, query: str, **values: Any) -> pyarrow.Table:
        """What a question of the table `points` comes to; `$name` in it is a value."""
        import duckdb

        try:
            return self.database.sql(query, params=values or None).to_arrow_table()
        except duckdb.Error as error:
            raise Error(str(error)) from None

    def versions(self) -> pyarrow.Table:
        """The versions that there are points of, with how many."""
        return self.sql("SELECT version, count(*) AS points FROM points GROUP BY version ORDER BY version")

    def diff(self, old: str, new: str) -> pyarrow.Table:
        """Which values moved from one version to another, by how much. The beginning of a version names it."""
        known: list[str] = self.versions().column("version").to_pylist()
        for version in (old, new):
            if not any(of.startswith(version) for of in known):
                raise Error(f"there are no points of version `{version}`; there are of {', '.join(known) or 'none'}")
        return self.sql(DIFFERENCE, old=old, new=new)

    def export(self, path: str | Path) -> None:
        """Writes the table to a file; the end of its name says how: parquet, csv, json."""
        save(self.table, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame."""
        return self.table.to_pandas()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"<sidestep.Results: {len(self)} points>"


def results(*folders: str | Path) -> Results:
    """The finished points of caches and data sets; without any named, of the command's cache."""
    cache = settings.cache_folder()
    chosen = [Path(folder) for folder in folders] or ([cache] if cache is not None else [])
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    for folder in chosen:
        if folders and not folder.is_dir():
            raise Error(f"{folder}: is no folder of points")
        rows += rows_of_cache(folder, problems)
        rows += rows_of_dataset(folder)
    return Results(tables.from_rows(rows, COLUMNS), problems)


def save(table: pyarrow.Table, path: Path) -> None:
    """Writes a table to a file."""
    import pyarrow.csv
    import pyarrow.parquet

    kind = path.suffix.removeprefix(".")
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    elif kind == "json":
        path.write_text(json.dumps(table.to_pylist(), indent=1) + "\n", encoding="utf-8")
    else:
        raise Error(f"{path}: `{kind}` is no format; there are parquet, csv, json")


def rows_of_cache(folder: Path, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The entries of a cache: repetitions of points, one each."""
    for path in sorted(folder.glob("*.point")):
        try:
            head, body = path.read_text(encoding="utf-8").split("\n", 1)
            if head != f"{MAGIC} {hashlib.sha256(body.encode()).hexdigest()}":
                raise ValueError("its checksum does not match")
            content = json.loads(body)
            yield row_of_entry(content["key"], content["measurement"])
        except (OSError, ValueError, KeyError) as error:
            problems.append(f"{path}: is left out: {error}")


def row_of_entry(key: str, measurement: dict[str, Any]) -> dict[str, Any]:
    """An entry as a row: its key is a line for each thing that the measurement depends on."""
    lines = [line.split(" ", 1) for line in key.splitlines()]
    whole = {kind: rest for kind, rest in lines if kind in ("version", "experiment")}
    named = [(kind, *rest.split("=", 1)) for kind, rest in lines if kind not in whole]

    def of_kind(*kinds: str) -> dict[str, str]:
        return {name: unquoted(value) for kind, name, value in named if kind in kinds}

    experiment = whole["experiment"]
    sides = {side: measurement[side] for side in ("baseline", "sidestep")}
    values = {side: number(of["value"]) for side, of in sides.items()}
    counters = {f"{side}.{of['name']}": number(of["value"]) for side in sides for of in sides[side]["counters"]}
    return {
        "origin": "cache",
        "version": whole.get("version", "before versions"),
        "machine": of_kind("host").get("host"),
        "experiment": experiment,
        "point": " ".join(f"{name}={value}" for name, value in of_kind("at").items()),
        "inputs": json.dumps(of_kind("input", "content"), sort_keys=True),
        "seed": int(of_kind("seed").get("seed", 0)) or None,
        "repetitions": 1,
        "status": "measured",
        "ratio": ratio(experiment, values["baseline"], values["sidestep"]),
        "counters": json.dumps(counters, sort_keys=True),
        **values,
    }


def unquoted(text: str) -> str:
    """A text out of its quotes, as Rust's debugging output has it."""
    plain = re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), text)
    try:
        return str(json.loads(plain, strict=False))
    except ValueError:
        return plain.strip('"').replace("\\'", "'")


def number(text: str | None) -> float | None:
    return None if text is None else float(Fraction(text))


def ratio(experiment: str, baseline: float | None, sidestep: float | None) -> float | None:
    """How many times better the sidestep is, of an experiment that ships."""
    try:
        better = experiments[experiment].description["better"]
    except UnknownExperiment:
        return None
    over, under = (baseline, sidestep) if better == "lower" else (sidestep, baseline)
    return None if over is None or not under else over / under


def rows_of_dataset(folder: Path) -> Iterator[dict[str, Any]]:
    """The points of a data set."""
    parts = sorted(folder.glob("part-*.parquet"))
    if not parts:
        return
    tables.arrow()
    import pyarrow.parquet

    for part in parts:
        for row in pyarrow.parquet.read_table(part).to_pylist():
            inputs = {name[3:]: of for name, of in row.items() if name.startswith("in.") and of is not None}
            sides = ("baseline.", "sidestep.")
            counters = {name: of for name, of in row.items() if name.startswith(sides) and of is not None}
            yield {column: row.get(column) for column in COLUMNS} | {
                "origin": str(folder),
                "inputs": json.dumps({name: as_text(of) for name, of in inputs.items()}, sort_keys=True),
                "counters": json.dumps(counters, sort_keys=True),
                "seed": None if row["seed"] is None else int(row["seed"]),
                "repetitions": int(row["repetitions"]),
            }


def as_text(value: Any) -> str:
    """A value of an input as text: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
