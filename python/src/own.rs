//! An experiment that is written in Python: it says about itself what every experiment does, and Python measures a
//! point.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value as Json;
use sidestep_lab::input::Kind;
use sidestep_lab::{
    About, Better, Context, Experiment, Input, Inputs, Measurement, Metric, Nature, Number, Point,
    PointError, Side, Value,
};

/// The definition of an experiment in Python, as `sidestep.OwnExperiment` describes itself.
pub struct Own {
    about: About,
    inputs: Vec<Input>,
    axes: Vec<&'static str>,
    definition: Py<PyAny>,
}

/// A text that is there as long as the program, as the name of an experiment is.
fn forever(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// A text of a description; empty where it has none.
fn text(of: &Json, key: &str) -> &'static str {
    forever(of[key].as_str().unwrap_or_default())
}

impl Own {
    /// Takes the definition's word for what it is.
    pub fn new(definition: &Bound<'_, PyAny>) -> PyResult<Own> {
        let description: String = definition.call_method0("describe")?.extract()?;
        let wrong = |what: String| PyValueError::new_err(format!("the experiment's description: {what}"));
        let description: Json =
            serde_json::from_str(&description).map_err(|error| wrong(error.to_string()))?;
        let metric = &description["metric"];
        let about = About {
            question: text(&description, "question"),
            source: text(&description, "source"),
            setting: text(&description, "setting"),
            baseline: text(&description, "baseline"),
            sidestep: text(&description, "sidestep"),
            reading: text(&description, "reading"),
            nature: match description["nature"].as_str() {
                Some("measured") => Nature::Measured,
                Some("seeded") => Nature::Seeded,
                _ => Nature::Deterministic,
            },
            ..About::new(
                text(&description, "name"),
                Metric {
                    name: text(metric, "name"),
                    unit: text(metric, "unit"),
                    better: match metric["better"].as_str() {
                        Some("higher") => Better::Higher,
                        _ => Better::Lower,
                    },
                },
            )
        };
        let declared = description["inputs"].as_array().cloned().unwrap_or_default();
        let inputs: Vec<Input> = declared
            .iter()
            .map(input)
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        Ok(Own {
            axes: inputs
                .iter()
                .filter(|input| input.axis)
                .map(|input| input.key)
                .collect(),
            about,
            inputs,
            definition: definition.clone().unbind(),
        })
    }

    fn measure(&self, py: Python<'_>, inputs: &Inputs, point: &Point, seed: u64) -> PyResult<Measurement> {
        let at = dictionary(py, point.coordinates())?;
        let arguments = (dictionary(py, inputs.iter())?, at, seed);
        let (baseline, sidestep) = self
            .definition
            .bind(py)
            .call_method1("measure", arguments)?
            .extract()?;
        Ok(Measurement::new(side(baseline)?, side(sidestep)?))
    }
}

impl Experiment for Own {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn inputs(&self) -> Vec<Input> {
        self.inputs.clone()
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&self.axes))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        Python::attach(|py| {
            self.measure(py, inputs, point, context.seed)
                .map_err(|error| failure(py, &error))
        })
    }
}

/// What went wrong in Python, as the failure of a point.
pub fn failure(py: Python<'_>, error: &PyErr) -> PointError {
    match error.is_instance_of::<PyKeyboardInterrupt>(py) {
        true => PointError::Cancelled,
        false => PointError::Failed(error.to_string()),
    }
}

/// An input from its description.
fn input(of: &Json) -> Result<Input, String> {
    let key = text(of, "key");
    let one = match of["kind"].as_str() {
        Some("integer") => Input::integer(key, 0).kind,
        Some("ratio") => Input::ratio(key, "0").kind,
        Some("duration") => Input::duration(key, 0).kind,
        Some("switch") => Input::switch(key, false).kind,
        Some("text") => Input::text(key).kind,
        other => return Err(format!("input `{key}`: {other:?} is no kind of input")),
    };
    let axis = of["axis"].as_bool().unwrap_or(false);
    let mut input = Input::text(key)
        .about(text(of, "about"))
        .unit(text(of, "unit"))
        .source(text(of, "source"));
    input.kind = match axis {
        true => Kind::List(Box::new(one)),
        false => one,
    };
    input.axis = axis;
    input.default = input
        .parse(text(of, "default"))
        .map_err(|error| error.to_string())?;
    Ok(input)
}

/// Values by their names.
fn dictionary<'py, 'v>(
    py: Python<'py>,
    values: impl Iterator<Item = (&'v str, &'v Value)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (key, each) in values {
        dictionary.set_item(key, value(py, each)?)?;
    }
    Ok(dictionary)
}

/// A value as Python has it: durations in nanoseconds, ratios as `fractions.Fraction`.
fn value<'py>(py: Python<'py>, of: &Value) -> PyResult<Bound<'py, PyAny>> {
    match of {
        Value::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Duration { ns } => Ok(ns.into_pyobject(py)?.into_any()),
        Value::Ratio(number) => {
            let fraction = py.import("fractions")?.getattr("Fraction")?;
            fraction.call1((number.numerator(), number.denominator()))
        }
        Value::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
        Value::Switch(is_on) => Ok(is_on.into_pyobject(py)?.to_owned().into_any()),
        Value::List(elements) => {
            let elements = elements.iter().map(|element| value(py, element));
            Ok(PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

/// A side as Python gives it: its value, and counters with name, value and unit; numbers as text, `3/7`.
type GivenSide = Option<(String, Vec<(String, String, String)>)>;

fn side(given: GivenSide) -> PyResult<Side> {
    let number = |text: &str| {
        let number = text.parse::<Number>();
        number.map_err(|error| PyValueError::new_err(error.to_string()))
    };
    let Some((value, counters)) = given else {
        return Ok(Side::absent());
    };
    let mut side = Side::new(number(&value)?);
    for (name, value, unit) in counters {
        if side.find(&name).is_some() {
            return Err(PyValueError::new_err(format!(
                "the counter `{name}` occurs twice"
            )));
        }
        side = side.counter(name, number(&value)?, unit);
    }
    Ok(side)
}
