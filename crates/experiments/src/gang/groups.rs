//! Figures 3 and 4: from a matrix to the tree to the sets.

use std::path::Path;
use std::time::Duration;

use sidestep_gang::{CoscheduledSets, DependencyTree, Pairing, Ratio, Selection, SharingMatrix};
use sidestep_gang_linux::recording::Recording;
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Stated, Verdict,
};

use super::{PAPER, drawing};

/// From a matrix to the tree to the sets.
pub struct Groups;

/// Figure 3 of the paper: an input.
pub const FIGURE_3: [[u64; 5]; 5] = [
    [0, 6, 1, 9, 6],
    [6, 0, 1, 6, 7],
    [1, 1, 0, 1, 1],
    [9, 6, 1, 0, 6],
    [6, 7, 1, 6, 0],
];

/// The counter of steps in which the tree was built.
const STEPS: &str = "steps";
/// The coordinate's value for the selection that needs no factor.
const WITHOUT: &str = "none";

impl Experiment for Groups {
    fn about(&self) -> About {
        About {
            name: "gang.groups",
            question: "Which tasks should run together, given how often each pair communicates?",
            source: "Busse et al., Partial Coscheduling (2015), Figures 3 and 4",
            setting: "A matrix of communication events, by default that of Figure 3. Pairs of subtrees with the \
                      highest dependency (equation 1) are joined step by step; the tree is cut where a part depends \
                      more than t times as much as the whole, or, without a factor, so that modularity is greatest.",
            baseline: "full coscheduling: one set of all tasks",
            sidestep: "partial coscheduling: the sets cut from the tree",
            metric: Metric {
                name: "cores that must be free at once",
                unit: "cores",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The largest set is what must run at once. A factor below the ratio of two levels of the tree \
                      cuts between them. Modularity keeps a task that communicates with all alike, however little, \
                      with the others: a small share of all events is no sign of being apart.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::text("factors")
                .or("1.2,1.5,2,6,none")
                .about("factors t, and `none` for the selection without one")
                .source("Partial Coscheduling 4: t = 1.5; others chosen around it")
                .axis(),
            Input::file("matrix")
                .about("a recording of `sidestep gang watch --save`, or rows as a JSON array, in place of Figure 3")
                .source("Partial Coscheduling, Figure 3"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        matrix(inputs)?;
        let mut points: Vec<Point> = Vec::new();
        for text in inputs.text("factors").split(',') {
            if text != WITHOUT {
                text.parse::<Ratio>()
                    .map_err(|error| format!("factors: {error}, or `none`"))?;
            }
            let point = Point::new().at("t", text);
            if points.contains(&point) {
                return Err(format!("factors: `{text}` stands twice in the list"));
            }
            points.push(point);
        }
        Ok(points)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let (matrix, title) = matrix(inputs).map_err(PointError::Failed)?;
        let selection = match point.value("t").text() {
            WITHOUT => Selection::Modularity,
            text => Selection::Factor(text.parse().expect("checked when the points were made")),
        };
        let pairing = match selection {
            Selection::Factor(_) => Pairing::Rounds,
            Selection::Modularity => Pairing::Single,
        };
        let tree = DependencyTree::build(&matrix, pairing);
        let sets = CoscheduledSets::select(&matrix, &tree, selection);
        let modularity =
            |sets: &CoscheduledSets| Number::ratio(sets.modularity_millionths(&matrix), 1_000_000);
        let largest = sets.sets().iter().map(Vec::len).max().unwrap_or(0);
        let whole = CoscheduledSets::one(matrix.tasks());
        let baseline = Side::new(matrix.tasks())
            .count("sets", whole.sets().len())
            .count("modularity", modularity(&whole));
        let sidestep = Side::new(largest)
            .count("sets", sets.sets().len())
            .count("modularity", modularity(&sets))
            .count(STEPS, tree.steps());
        let mut measurement = Measurement::new(baseline, sidestep).draw(drawing::matrix(&title, &matrix));
        if context.trace {
            measurement.sidestep = measurement.sidestep.traced(drawing::steps(&tree));
        }
        // A step of a large tree is no picture any more.
        let steps = if tree.steps() <= 4 {
            1..=tree.steps()
        } else {
            tree.steps()..=tree.steps()
        };
        for step in steps {
            for top in tree
                .subtrees_after(step)
                .into_iter()
                .filter(|&top| tree.join(top).is_some())
            {
                let title = format!("Step {step}, cut into {sets}");
                measurement = measurement.draw(drawing::tree(&title, &tree, top, &sets));
            }
        }
        Ok(measurement)
    }

    fn stated(&self, inputs: &Inputs, point: &Point) -> Vec<Stated> {
        if inputs.text("matrix").is_empty() && point.value("t").text() == "1.5" {
            let source = "Partial Coscheduling, Figure 4c: task 2 is split from the others at t = 1.5";
            return vec![Stated::value(Quantity::Sidestep, 4, "0", source)];
        }
        Vec::new()
    }

    fn findings(&self, inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        if !inputs.text("matrix").is_empty() {
            return Vec::new();
        }
        let is_papers = |row: &&Row| row.point.value("t").text() == "1.5";
        let steps = rows
            .iter()
            .find(is_papers)
            .and_then(Row::measurement)
            .and_then(|found| found.sidestep.find(STEPS));
        let Some(steps) = steps else { return Vec::new() };
        let holds = steps.value == Number::from(3);
        vec![Finding {
            value: None,
            about: "steps to build the tree of Figure 3".to_owned(),
            stated: "three, several pairs in a step".to_owned(),
            source: format!("{PAPER}, Figure 4"),
            ours: steps.value.to_string(),
            verdict: Verdict::of(holds),
            because: "a step joins pairs until at most one subtree is left over".to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Cores that must be free at once",
            Axis::new("t", "factor t", ""),
            Measure::Value,
            "cores",
            "cores",
        )]
    }
}

/// The matrix that is asked for, with a title.
fn matrix(inputs: &Inputs) -> Result<(SharingMatrix, String), String> {
    match inputs.text("matrix") {
        "" => {
            let rows: Vec<Vec<u64>> = FIGURE_3.iter().map(|row| row.to_vec()).collect();
            let matrix = SharingMatrix::from_rows(&rows).expect("the paper's matrix is symmetric");
            Ok((matrix, "Communication events (Figure 3)".to_owned()))
        }
        path => read_matrix(path).map(|matrix| (matrix, format!("Communication events of {path}"))),
    }
}

/// A matrix from a file: a recording, or rows as a JSON array.
pub fn read_matrix(path: &str) -> Result<SharingMatrix, String> {
    let failed = |error: String| format!("input `matrix`: {error}");
    let text = sidestep_files::read_text(Path::new(path), sidestep_files::IMAGE_BYTES_MAX)
        .map_err(|error| failed(format!("cannot read `{path}`: {error}")))?;
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).map_err(|error| failed(format!("{path}: {error}")));
    }
    Recording::parse(Path::new(path), &text)
        .map(|recording| recording.matrix)
        .map_err(|error| failed(error.to_string()))
}
