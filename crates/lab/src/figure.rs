//! What a chart of the report shows, as data: which number over which coordinate.

/// A chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What is shown, with the paper's figure if it is one: `Clocks a system call (Figure 8)`.
    pub title: &'static str,
    /// The coordinate along the horizontal axis.
    pub x: Axis,
    /// The number up the vertical axis.
    pub y: Measure,
    /// How the vertical axis is called, for example `clocks a call`.
    pub y_label: &'static str,
    /// The unit of the vertical axis; empty for a plain number.
    pub y_unit: &'static str,
    /// Whether the vertical axis is logarithmic.
    pub y_logarithmic: bool,
    /// The coordinates that split the points into lines (or groups of bars), besides the side.
    pub lines: &'static [&'static str],
    /// Whether bars are drawn rather than lines: for coordinates that are names.
    pub bars: bool,
}

/// A horizontal axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The coordinate's key.
    pub coordinate: &'static str,
    /// How the axis is called.
    pub label: &'static str,
    /// The unit; durations are drawn in it if it is `ns`, `us`, `ms` or `s`.
    pub unit: &'static str,
    /// Whether it is logarithmic.
    pub logarithmic: bool,
}

/// What a chart shows of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The metric's value, one line a side, with the paper's values for the sides.
    Value,
    /// How many times better the sidestep is, with the paper's ratios.
    Ratio,
    /// A counter, one line a side that has it.
    Counter(&'static str),
}

impl Figure {
    /// A chart of lines.
    pub fn lines(
        title: &'static str,
        x: Axis,
        y: Measure,
        y_label: &'static str,
        y_unit: &'static str,
    ) -> Figure {
        Figure {
            title,
            x,
            y,
            y_label,
            y_unit,
            y_logarithmic: false,
            lines: &[],
            bars: false,
        }
    }

    /// A chart of bars.
    pub fn bars(
        title: &'static str,
        x: Axis,
        y: Measure,
        y_label: &'static str,
        y_unit: &'static str,
    ) -> Figure {
        Figure {
            bars: true,
            ..Figure::lines(title, x, y, y_label, y_unit)
        }
    }

    /// Splits the points by further coordinates.
    pub fn split_by(mut self, coordinates: &'static [&'static str]) -> Figure {
        self.lines = coordinates;
        self
    }

    /// Makes the vertical axis logarithmic.
    pub fn logarithmic(mut self) -> Figure {
        self.y_logarithmic = true;
        self
    }
}

impl Axis {
    /// A linear axis.
    pub fn new(coordinate: &'static str, label: &'static str, unit: &'static str) -> Axis {
        Axis {
            coordinate,
            label,
            unit,
            logarithmic: false,
        }
    }

    /// Makes the axis logarithmic.
    pub fn logarithmic(mut self) -> Axis {
        self.logarithmic = true;
        self
    }
}
