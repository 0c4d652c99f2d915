"""Figures of a comparison: the report's own pictures, and the same as Vega-Altair charts to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import needs

if TYPE_CHECKING:
    import altair

__all__ = ["Picture", "chart"]


@dataclass(frozen=True)
class Picture:
    """A picture of the report, which a notebook shows."""

    name: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Writes it as an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def chart(figure: dict[str, Any], points: list[dict[str, Any]]) -> altair.Chart:
    """A chart of an experiment as a Vega-Altair object: hover shows a point, a click on the legend chooses a series."""
    try:
        import altair
    except ImportError as error:
        raise needs("altair", "figures", "a Vega-Altair chart") from error
    rows = [row for point in points for row in rows_of(figure, point)]
    x, y = figure["x"], figure["y"]
    is_bars = figure["bars"]
    series = altair.selection_point(fields=["series"], bind="legend")
    kind = "nominal" if is_bars else "quantitative"
    horizontal = altair.X(
        "x",
        type=kind,
        title=titled(x),
        sort=None,
        scale=altair.Undefined if is_bars else scale(altair, x),
    )
    encoding = {
        "x": horizontal,
        "y": altair.Y("y:Q", title=titled(y), scale=scale(altair, y)),
        "color": altair.Color("series:N", title=None),
        "opacity": altair.condition(series, altair.value(1.0), altair.value(0.15)),
        "tooltip": [altair.Tooltip("series:N"), altair.Tooltip("x", type=kind), altair.Tooltip("y:Q")],
    }
    base = altair.Chart(altair.Data(values=rows), title=figure["title"])
    if is_bars:
        return base.mark_bar().encode(xOffset="series:N", **encoding).add_params(series)
    return base.mark_line(point=True).encode(**encoding).add_params(series).interactive()


def titled(axis: dict[str, Any]) -> str:
    return f"{axis['label']} ({axis['unit']})" if axis["unit"] else axis["label"]


def scale(altair: Any, axis: dict[str, Any]) -> Any:
    return altair.Scale(type="log" if axis["logarithmic"] else "linear")


def rows_of(figure: dict[str, Any], point: dict[str, Any]) -> list[dict[str, Any]]:
    """What a chart shows of a point: a row for each series."""
    at = {key.removesuffix("_ns"): value for key, value in point["at"].items()}
    split = [f"{key} {at[key]}" for key in figure["lines"] if key in at]
    measure = figure["y"]["measure"]
    sides = {side: value_of(measure, side, point) for side in ("baseline", "sidestep")}
    values = {"": point["ratio"]} if measure == "ratio" else sides
    x = at.get(figure["x"]["coordinate"])
    named = {side: ", ".join([side] * bool(side) + split) for side in values}
    return [{"x": x, "y": value, "series": named[side]} for side, value in values.items() if value is not None]


def value_of(measure: Any, side: str, point: dict[str, Any]) -> Any:
    if measure == "value":
        return point[side]
    if measure == "ratio":
        return None
    counters = {of["name"]: of["value"] for of in point["counters"][side]}
    return counters.get(measure["counter"])
