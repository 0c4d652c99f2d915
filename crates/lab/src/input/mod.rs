//! The inputs of an experiment: declared with bounds, default and source; set from text; read by key.
//!
//! An [`Input`] is a declaration. [`Inputs`] are the values of one run, complete and checked. An input that is an
//! *axis* lists what the sweep visits: it shapes the points, and a point's code cannot read it (a point carries its own
//! place on the axis as a coordinate), so that changing the sweep does not change a point.

mod assumption;
mod parse;
mod value;

use std::collections::BTreeMap;

pub use assumption::Assumption;
pub use value::Value;

use crate::number::Number;
use crate::suggest::nearest;

/// The declaration of one input.
#[derive(Clone, Debug)]
pub struct Input {
    /// The key of `--set key=value`: lower case, words joined by `-`.
    pub key: &'static str,
    /// What it is, one phrase.
    pub about: &'static str,
    /// Its unit; empty for a count, a choice or a duration (whose text carries its unit).
    pub unit: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// The value when nothing is set.
    pub default: Value,
    /// The value when nothing is set and a quick run is asked for, if that differs.
    pub quick: Option<Value>,
    /// Where the default comes from: a paper's section, a manual, `chosen` with the reason.
    pub source: &'static str,
    /// The least and greatest value that it is thought to have, of a number that is assumed.
    pub range: Option<(Value, Value)>,
    /// Whether nobody measured or published the default, though its source does not begin by saying so.
    pub assumed: bool,
    /// Whether it only lists what the sweep visits.
    pub axis: bool,
}

/// The values that an input takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number within bounds, both included.
    Integer {
        /// The least.
        minimum: i64,
        /// The greatest.
        maximum: i64,
    },
    /// A decimal or ratio within bounds, both included.
    Ratio {
        /// The least.
        minimum: Number,
        /// The greatest.
        maximum: Number,
    },
    /// A time within bounds, both included; written `500ns`, `2us`, `1.5ms`, `3s`.
    Duration {
        /// The least, in nanoseconds.
        minimum_ns: u64,
        /// The greatest, in nanoseconds.
        maximum_ns: u64,
    },
    /// One of some names.
    Choice {
        /// The names.
        choices: &'static [&'static str],
    },
    /// `on` or `off`.
    Switch,
    /// Any text.
    Text,
    /// The path of a file that can be read; empty by default means none.
    File,
    /// Values of one kind, joined by commas, at least one, none twice.
    List(Box<Kind>),
}

/// What is wrong with a `key=value` or with a set of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The setting has no `=`.
    #[error("`{setting}` is not a setting; write key=value")]
    NotASetting {
        /// The text.
        setting: String,
    },
    /// No experiment that runs has such an input.
    #[error("{experiment} has no input `{key}`{}; its inputs are {}", crate::suggest::did_you_mean(.nearest), .known.join(", "))]
    UnknownKey {
        /// The experiment.
        experiment: String,
        /// The key as written.
        key: String,
        /// The nearest known key, if one is near.
        nearest: Option<String>,
        /// Every key.
        known: Vec<String>,
    },
    /// The text is not a value of the input's kind.
    #[error("input `{key}`: `{text}` is not {wanted}{}", crate::suggest::did_you_mean(.nearest))]
    BadValue {
        /// The key.
        key: String,
        /// The text, or the element of a list.
        text: String,
        /// What would be right.
        wanted: String,
        /// The nearest choice, if one is near.
        nearest: Option<String>,
    },
    /// A file cannot be read.
    #[error("input `{key}`: cannot read `{path}`: {reason}")]
    Unreadable {
        /// The key.
        key: String,
        /// The path.
        path: String,
        /// The host's reason.
        reason: String,
    },
    /// A list names a value twice.
    #[error("input `{key}`: `{text}` stands twice in the list")]
    Twice {
        /// The key.
        key: String,
        /// The element.
        text: String,
    },
    /// A key is set twice.
    #[error("input `{key}` is set twice")]
    SetTwice {
        /// The key.
        key: String,
    },
}

impl InputError {
    /// No such key, with the nearest of those known.
    pub(crate) fn unknown_key(experiment: &str, key: &str, known: &[&str]) -> InputError {
        InputError::UnknownKey {
            experiment: experiment.to_owned(),
            key: key.to_owned(),
            nearest: nearest(key, known.iter().copied()),
            known: known.iter().map(|key| (*key).to_owned()).collect(),
        }
    }
}

impl Input {
    fn new(key: &'static str, kind: Kind, default: Value) -> Input {
        Input {
            key,
            about: "",
            unit: "",
            kind,
            default,
            quick: None,
            source: "",
            range: None,
            assumed: false,
            axis: false,
        }
    }

    /// A whole number; bounds by [`Input::between`].
    pub fn integer(key: &'static str, default: i64) -> Input {
        let any = Kind::Integer {
            minimum: i64::MIN,
            maximum: i64::MAX,
        };
        Input::new(key, any, Value::Integer(default))
    }

    /// A list of whole numbers; the bounds are those of each.
    pub fn integers(key: &'static str, default: &[i64]) -> Input {
        let one = Input::integer(key, 0);
        Input::new(
            key,
            Kind::List(Box::new(one.kind)),
            Value::list(default.iter().copied()),
        )
    }

    /// A decimal or ratio, given as text (`"1.5"`, `"3/2"`); bounds by [`Input::within`].
    pub fn ratio(key: &'static str, default: &str) -> Input {
        let any = Kind::Ratio {
            minimum: Number::from(i64::MIN),
            maximum: Number::from(i64::MAX),
        };
        Input::new(key, any, Value::Ratio(Number::decimal(default)))
    }

    /// A list of decimals or ratios.
    pub fn ratios(key: &'static str, default: &[&str]) -> Input {
        let one = Input::ratio(key, "0");
        let values = default.iter().map(|text| Number::decimal(text));
        Input::new(key, Kind::List(Box::new(one.kind)), Value::list(values))
    }

    /// A time; bounds by [`Input::lasting`].
    pub fn duration(key: &'static str, default_ns: u64) -> Input {
        let any = Kind::Duration {
            minimum_ns: 0,
            maximum_ns: u64::MAX,
        };
        Input::new(key, any, Value::Duration { ns: default_ns })
    }

    /// A list of times.
    pub fn durations(key: &'static str, default_ns: &[u64]) -> Input {
        let one = Input::duration(key, 0);
        let values = default_ns.iter().map(|&ns| Value::Duration { ns });
        Input::new(key, Kind::List(Box::new(one.kind)), Value::list(values))
    }

    /// One of some names; the first is the default.
    pub fn choice(key: &'static str, choices: &'static [&'static str]) -> Input {
        Input::new(key, Kind::Choice { choices }, Value::from(choices[0]))
    }

    /// A list of some names; all of them by default.
    pub fn choices(key: &'static str, choices: &'static [&'static str]) -> Input {
        Input::new(
            key,
            Kind::List(Box::new(Kind::Choice { choices })),
            Value::list(choices.iter().copied()),
        )
    }

    /// A mechanism's switch.
    pub fn switch(key: &'static str, default: bool) -> Input {
        Input::new(key, Kind::Switch, Value::Switch(default))
    }

    /// Any text, empty by default.
    pub fn text(key: &'static str) -> Input {
        Input::new(key, Kind::Text, Value::Text(String::new()))
    }

    /// The path of a file that can be read; none by default, an empty text. A point depends on what is in the file.
    pub fn file(key: &'static str) -> Input {
        Input::new(key, Kind::File, Value::Text(String::new()))
    }

    /// Says what it is.
    pub fn about(mut self, about: &'static str) -> Input {
        self.about = about;
        self
    }

    /// Names the unit.
    pub fn unit(mut self, unit: &'static str) -> Input {
        self.unit = unit;
        self
    }

    /// Names where the default comes from.
    pub fn source(mut self, source: &'static str) -> Input {
        self.source = source;
        self
    }

    /// Bounds whole numbers, both ends included.
    ///
    /// # Panics
    /// When the input is of another kind.
    pub fn between(self, minimum: i64, maximum: i64) -> Input {
        self.bounded(Kind::Integer { minimum, maximum })
    }

    /// Bounds decimals or ratios, both ends included.
    ///
    /// # Panics
    /// When the input is of another kind, or a bound is no number.
    pub fn within(self, minimum: &str, maximum: &str) -> Input {
        self.bounded(Kind::Ratio {
            minimum: Number::decimal(minimum),
            maximum: Number::decimal(maximum),
        })
    }

    /// Bounds times, both ends included, in nanoseconds.
    ///
    /// # Panics
    /// When the input is of another kind.
    pub fn lasting(self, minimum_ns: u64, maximum_ns: u64) -> Input {
        self.bounded(Kind::Duration {
            minimum_ns,
            maximum_ns,
        })
    }

    /// Another default, written as on the command line.
    ///
    /// # Panics
    /// When the text is no value of the input.
    pub fn or(mut self, default: &str) -> Input {
        self.default = self.constant(default);
        self
    }

    /// The default of a quick run, written as on the command line.
    ///
    /// # Panics
    /// When the text is no value of the input.
    pub fn quick(mut self, default: &str) -> Input {
        self.quick = Some(self.constant(default));
        self
    }

    /// Declares that nobody measured or published the default, where its source does not begin by saying so.
    pub fn assumed(mut self) -> Input {
        self.assumed = true;
        self
    }

    /// The range within which an assumed number is thought to lie, both ends written as on the command line: what a
    /// sensitivity analysis tries it over.
    ///
    /// # Panics
    /// When a text is no value of the input.
    pub fn range(mut self, least: &str, greatest: &str) -> Input {
        self.range = Some((self.constant(least), self.constant(greatest)));
        self
    }

    /// Declares that the input only lists what the sweep visits.
    pub fn axis(mut self) -> Input {
        self.axis = true;
        self
    }

    /// Reads and checks a value from text.
    pub fn parse(&self, text: &str) -> Result<Value, InputError> {
        parse::value(self.key, &self.kind, text)
    }

    fn constant(&self, text: &str) -> Value {
        self.parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn bounded(mut self, bounds: Kind) -> Input {
        let slot = match &mut self.kind {
            Kind::List(of) => of.as_mut(),
            kind => kind,
        };
        assert_eq!(
            std::mem::discriminant(slot),
            std::mem::discriminant(&bounds),
            "input {}: bounds of another kind",
            self.key
        );
        *slot = bounds;
        self
    }
}

/// The values of one run, one for each declared input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    experiment: String,
    values: BTreeMap<String, Value>,
}

impl Inputs {
    /// The defaults, those of a quick run if asked, with settings of the form `key=value` in place of some of them.
    pub fn new(
        experiment: &str,
        declared: &[Input],
        quick: bool,
        settings: &[String],
    ) -> Result<Inputs, InputError> {
        let mut set = BTreeMap::new();
        for setting in settings {
            let (key, text) = setting.split_once('=').ok_or_else(|| InputError::NotASetting {
                setting: setting.clone(),
            })?;
            let input =
                declared
                    .iter()
                    .find(|input| input.key == key)
                    .ok_or_else(|| InputError::UnknownKey {
                        experiment: experiment.to_owned(),
                        key: key.to_owned(),
                        nearest: nearest(key, declared.iter().map(|input| input.key)),
                        known: declared.iter().map(|input| input.key.to_owned()).collect(),
                    })?;
            if set.insert(key, input.parse(text)?).is_some() {
                return Err(InputError::SetTwice { key: key.to_owned() });
            }
        }
        let values = declared
            .iter()
            .map(|input| {
                let usual = match (&input.quick, quick) {
                    (Some(value), true) => value,
                    _ => &input.default,
                };
                let value = set.remove(input.key).unwrap_or_else(|| usual.clone());
                (input.key.to_owned(), value)
            })
            .collect();
        Ok(Inputs {
            experiment: experiment.to_owned(),
            values,
        })
    }

    /// The inputs without the axes: what a point may read.
    pub fn without_axes(&self, declared: &[Input]) -> Inputs {
        let mut inputs = self.clone();
        for input in declared.iter().filter(|input| input.axis) {
            inputs.values.remove(input.key);
        }
        inputs
    }

    /// Every key with its value, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key.
    ///
    /// # Panics
    /// When the experiment declares no such input, or it is an axis and a point's code asks.
    pub fn value(&self, key: &str) -> &Value {
        self.values
            .get(key)
            .unwrap_or_else(|| panic!("{} declares no input `{key}`, or it is an axis", self.experiment))
    }

    /// A whole number. Panics as [`Inputs::value`], and when the input is of another kind; likewise below.
    pub fn integer(&self, key: &str) -> i64 {
        self.value(key).integer()
    }

    /// A whole number that its bounds keep from being negative.
    pub fn count(&self, key: &str) -> u64 {
        self.value(key).count()
    }

    /// A list of whole numbers.
    pub fn integers(&self, key: &str) -> Vec<i64> {
        self.value(key).elements().iter().map(Value::integer).collect()
    }

    /// A decimal or ratio.
    pub fn ratio(&self, key: &str) -> Number {
        self.value(key).ratio()
    }

    /// A list of decimals or ratios.
    pub fn ratios(&self, key: &str) -> Vec<Number> {
        self.value(key).elements().iter().map(Value::ratio).collect()
    }

    /// A time in nanoseconds.
    pub fn duration_ns(&self, key: &str) -> u64 {
        self.value(key).duration_ns()
    }

    /// A list of times in nanoseconds.
    pub fn durations_ns(&self, key: &str) -> Vec<u64> {
        self.value(key)
            .elements()
            .iter()
            .map(Value::duration_ns)
            .collect()
    }

    /// One of the names, or a text.
    pub fn text(&self, key: &str) -> &str {
        self.value(key).text()
    }

    /// A list of names.
    pub fn texts(&self, key: &str) -> Vec<&str> {
        self.value(key).elements().iter().map(Value::text).collect()
    }

    /// Whether a switch is on.
    pub fn switch(&self, key: &str) -> bool {
        self.value(key).switch()
    }
}

#[cfg(test)]
mod tests;
