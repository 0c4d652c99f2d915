//! Which assumed inputs a verdict hangs on, and where it turns.
//!
//! The design, fixed beforehand: every assumed input alone, at the ends of its range or at each of its other choices;
//! where a verdict turns on the way to an end, the place by bisection; then every pair of the inputs that alone moved
//! most, at all combinations of their values. A verdict that turns back between two tried values is not seen.

mod claims;

use crate::about::About;
use crate::comparison::Comparison;
use crate::experiment::Experiment;
use crate::input::{Assumption, Value};
use crate::number::Number;
use crate::run::{Plan, PlanError, Request};

pub use claims::{Claim, Reading};

/// How far inputs are varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// A number without a stated range is tried from its so-manieth part to as many times itself.
    pub factor: u32,
    /// Of how many inputs every pair is tried.
    pub paired: usize,
    /// How often an interval in which a verdict turns is halved.
    pub halvings: u32,
}

impl Default for Design {
    fn default() -> Design {
        Design {
            factor: 2,
            paired: 4,
            halvings: 7,
        }
    }
}

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SensitivityError {
    /// The experiment cannot be run as requested.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A point of the experiment went wrong with nothing varied.
    #[error("{experiment}: {point}: {reason}")]
    Failed {
        /// The experiment.
        experiment: &'static str,
        /// The point.
        point: String,
        /// What went wrong.
        reason: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// An input, by its place among the assumptions, at another value.
pub type Change = (usize, Value);

/// A run with one input or two at other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// What was changed.
    pub changes: Vec<Change>,
    /// What came out of each claim, in their order, `None` of one that is not judged then; or why nothing came out.
    pub readings: Result<Vec<Option<Reading>>, String>,
}

impl Variation {
    /// What came out of a claim.
    pub fn reading(&self, claim: usize) -> Option<&Reading> {
        self.readings.as_ref().ok()?.get(claim)?.as_ref()
    }
}

/// Where a verdict turns between an input's value and an end of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The claim's place.
    pub claim: usize,
    /// The input's place.
    pub assumption: usize,
    /// The value farthest from the input's own with which the verdict was still the same.
    pub keeps: Value,
    /// The nearest with which it was another.
    pub turns: Value,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// The experiment.
    pub about: About,
    /// How it was run.
    pub request: Request,
    /// How often each point was run.
    pub repetitions: u32,
    /// How far inputs were varied.
    pub design: Design,
    /// The inputs that were varied.
    pub assumptions: Vec<Assumption>,
    /// What is judged.
    pub claims: Vec<Claim>,
    /// What comes out of each claim with nothing varied.
    pub nominal: Vec<Reading>,
    /// Each input alone.
    pub alone: Vec<Variation>,
    /// Where verdicts turn.
    pub crossings: Vec<Crossing>,
    /// Pairs of inputs.
    pub pairs: Vec<Variation>,
}

/// Runs the plans of a stage, whose name is given; `None` once the user has stopped it.
pub type RunStage<'a> = dyn FnMut(&str, &[Plan]) -> Option<Vec<Comparison>> + 'a;

/// Varies the assumed inputs of an experiment.
pub fn analyse(
    experiment: &dyn Experiment,
    request: &Request,
    design: Design,
    run: &mut RunStage,
) -> Result<Sensitivity, SensitivityError> {
    let mut analysis = Analysis {
        experiment,
        request,
        assumptions: Vec::new(),
        claims: Vec::new(),
        run,
    };
    let plan = Plan::new(experiment, request)?;
    let about = experiment.about();
    let (inputs, repetitions) = (plan.inputs().clone(), plan.repetitions());
    let contradiction = |reason| PlanError::Contradiction {
        experiment: about.name,
        reason,
    };
    analysis.assumptions = experiment
        .assumptions(&inputs, design.factor)
        .map_err(contradiction)?;
    analysis
        .assumptions
        .retain(|assumption| !assumption.others.is_empty());

    let comparison = analysis.stage("as it is", &[plan])?.remove(0);
    if let Some((row, error)) = comparison.failures().next() {
        return Err(SensitivityError::Failed {
            experiment: about.name,
            point: row.point.to_string(),
            reason: error.to_string(),
        });
    }
    let (claims, nominal): (Vec<Claim>, Vec<Reading>) = claims::judged(&comparison).into_iter().unzip();
    analysis.claims = claims;
    let is_vain = analysis.claims.is_empty();

    let alone: Vec<Vec<Change>> = match is_vain {
        true => Vec::new(),
        false => (analysis.assumptions.iter().enumerate())
            .flat_map(|(index, assumption)| {
                assumption
                    .others
                    .iter()
                    .map(move |other| vec![(index, other.clone())])
            })
            .collect(),
    };
    let alone = analysis.vary("each alone", alone)?;
    let crossings = analysis.crossings(&nominal, &alone, design.halvings)?;
    let pairs = analysis.pairs(&nominal, &alone, design.paired);
    let pairs = analysis.vary("pairs", pairs)?;
    Ok(Sensitivity {
        about,
        request: request.clone(),
        repetitions,
        design,
        assumptions: analysis.assumptions,
        claims: analysis.claims,
        nominal,
        alone,
        crossings,
        pairs,
    })
}

/// An analysis under way.
struct Analysis<'a, 'b, 'c> {
    experiment: &'a dyn Experiment,
    request: &'a Request,
    assumptions: Vec<Assumption>,
    claims: Vec<Claim>,
    run: &'b mut RunStage<'c>,
}

/// An interval in which a verdict turns.
struct Interval {
    claim: usize,
    assumption: usize,
    keeps: Value,
    turns: Value,
    /// Whether there is a value between the two with which the experiment can be run.
    is_open: bool,
}

impl<'a> Analysis<'a, '_, '_> {
    fn stage(&mut self, name: &str, plans: &[Plan]) -> Result<Vec<Comparison>, SensitivityError> {
        let comparisons = match plans {
            [] => Some(Vec::new()),
            plans => (self.run)(name, plans),
        };
        let comparisons = comparisons.ok_or(SensitivityError::Interrupted)?;
        match comparisons.iter().all(Comparison::is_complete) {
            true => Ok(comparisons),
            false => Err(SensitivityError::Interrupted),
        }
    }

    /// Runs the experiment once for each set of changes.
    fn vary(&mut self, stage: &str, changes: Vec<Vec<Change>>) -> Result<Vec<Variation>, SensitivityError> {
        let planned: Vec<Result<Plan, PlanError>> =
            changes.iter().map(|changes| self.plan(changes)).collect();
        let (mut plans, mut problems) = (Vec::new(), Vec::new());
        for plan in planned {
            match plan {
                Ok(plan) => {
                    plans.push(plan);
                    problems.push(None);
                }
                Err(error) => problems.push(Some(error.to_string())),
            }
        }
        let mut comparisons = self.stage(stage, &plans)?.into_iter();
        let variations = changes.into_iter().zip(problems).map(|(changes, problem)| {
            let readings = match problem {
                Some(problem) => Err(problem),
                None => self.readings(&comparisons.next().expect("a comparison for each plan")),
            };
            Variation { changes, readings }
        });
        Ok(variations.collect())
    }

    fn readings(&self, comparison: &Comparison) -> Result<Vec<Option<Reading>>, String> {
        match comparison.failures().next() {
            Some((row, error)) => Err(format!("{}: {error}", row.point)),
            None => Ok(claims::readings(&self.claims, comparison)),
        }
    }

    /// The experiment with changed inputs.
    fn plan(&self, changes: &[Change]) -> Result<Plan<'a>, PlanError> {
        let key = |change: &Change| self.assumptions[change.0].key.as_str();
        let is_changed = |setting: &&String| {
            changes
                .iter()
                .any(|change| setting.split('=').next() == Some(key(change)))
        };
        let kept = self
            .request
            .settings
            .iter()
            .filter(|setting| !is_changed(setting))
            .cloned();
        let changed = changes
            .iter()
            .map(|change| format!("{}={}", key(change), change.1));
        let settings = kept.chain(changed).collect();
        Plan::new(
            self.experiment,
            &Request {
                settings,
                ..self.request.clone()
            },
        )
    }

    /// Halves every interval in which a verdict turns, all of them side by side.
    fn crossings(
        &mut self,
        nominal: &[Reading],
        alone: &[Variation],
        halvings: u32,
    ) -> Result<Vec<Crossing>, SensitivityError> {
        let mut intervals: Vec<Interval> = (alone.iter())
            .flat_map(|variation| turned(nominal, variation).map(move |claim| (claim, &variation.changes[0])))
            .map(|(claim, (assumption, end))| Interval {
                claim,
                assumption: *assumption,
                keeps: self.assumptions[*assumption].nominal.clone(),
                turns: end.clone(),
                is_open: self.assumptions[*assumption].is_number(),
            })
            .collect();
        for halving in 0..halvings {
            let mut changes: Vec<Vec<Change>> = Vec::new();
            for interval in &mut intervals {
                let middle = interval
                    .is_open
                    .then(|| middle(&interval.keeps, &interval.turns))
                    .flatten();
                interval.is_open = middle.is_some();
                let change = middle.map(|middle| vec![(interval.assumption, middle)]);
                changes.extend(change.filter(|change| !changes.contains(change)));
            }
            if changes.is_empty() {
                break;
            }
            let variations = self.vary(&format!("where it turns, {} of {halvings}", halving + 1), changes)?;
            for interval in intervals.iter_mut().filter(|interval| interval.is_open) {
                let middle = middle(&interval.keeps, &interval.turns);
                let at = |variation: &&Variation| {
                    let (assumption, value) = &variation.changes[0];
                    *assumption == interval.assumption && Some(value) == middle.as_ref()
                };
                let reading = variations
                    .iter()
                    .find(at)
                    .map(|variation| (variation, variation.reading(interval.claim)));
                match reading {
                    Some((_, Some(reading))) if reading.verdict == nominal[interval.claim].verdict => {
                        interval.keeps = middle.expect("a value between");
                    }
                    Some((_, Some(_))) => interval.turns = middle.expect("a value between"),
                    // Values between the ends are not all possible: of a power of two, for example.
                    _ => interval.is_open = false,
                }
            }
        }
        let crossing = |interval: Interval| Crossing {
            claim: interval.claim,
            assumption: interval.assumption,
            keeps: interval.keeps,
            turns: interval.turns,
        };
        Ok(intervals.into_iter().map(crossing).collect())
    }

    /// Every pair of the inputs that alone moved most, with every combination of their values.
    fn pairs(&self, nominal: &[Reading], alone: &[Variation], paired: usize) -> Vec<Vec<Change>> {
        let mut order: Vec<(usize, (usize, Number))> = (0..self.assumptions.len())
            .map(|input| (input, influence(nominal, alone, input)))
            .collect();
        order.retain(|(_, (turned, moved))| *turned > 0 || !moved.is_zero());
        order.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        order.truncate(paired);
        let mut inputs: Vec<usize> = order.into_iter().map(|(input, _)| input).collect();
        inputs.sort_unstable();
        let mut pairs = Vec::new();
        for (position, one) in inputs.iter().enumerate() {
            for other in &inputs[position + 1..] {
                for first in &self.assumptions[*one].others {
                    let seconds = self.assumptions[*other].others.iter();
                    pairs.extend(seconds.map(|second| vec![(*one, first.clone()), (*other, second.clone())]));
                }
            }
        }
        pairs
    }
}

/// The claims whose verdict is another in a variation.
fn turned<'a>(nominal: &'a [Reading], variation: &'a Variation) -> impl Iterator<Item = usize> + 'a {
    let is_turned = move |claim: &usize| {
        let reading = variation.reading(*claim);
        reading.is_some_and(|reading| reading.verdict != nominal[*claim].verdict)
    };
    (0..nominal.len()).filter(is_turned)
}

/// How many verdicts an input turns alone, and by how much it moves the numbers behind all, as shares of them.
fn influence(nominal: &[Reading], alone: &[Variation], input: usize) -> (usize, Number) {
    let of_input = || alone.iter().filter(|variation| variation.changes[0].0 == input);
    let turns = of_input()
        .map(|variation| turned(nominal, variation).count())
        .sum();
    let moved = of_input().flat_map(|variation| {
        nominal.iter().enumerate().filter_map(|(claim, reading)| {
            let (ours, usual) = (variation.reading(claim)?.value?, reading.value?);
            // A thousandth is precise enough, and keeps the sum within its bits.
            let share = (ours - usual).over(usual)?.abs().to_fixed(3);
            share.parse::<Number>().ok()
        })
    });
    (turns, moved.sum())
}

/// The value in the middle of two numbers; `None` where there is none between.
fn middle(one: &Value, other: &Value) -> Option<Value> {
    let middle = match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Value::Integer(one.midpoint(*other)),
        (Value::Ratio(one), Value::Ratio(other)) => Value::Ratio((*one + *other) * Number::ratio(1, 2)),
        (Value::Duration { ns: one }, Value::Duration { ns: other }) => Value::Duration {
            ns: one.midpoint(*other),
        },
        _ => return None,
    };
    (middle != *one && middle != *other).then_some(middle)
}

/// Where a verdict stands: what keeps it, and what turns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standpoint<'a> {
    /// Of each number that turns it: the input, and the least and greatest value found that keep it; an end of its
    /// range where it turns on the other side alone.
    pub ranges: Vec<(&'a Assumption, &'a Value, &'a Value)>,
    /// Other choices that turn it.
    pub choices: Vec<(&'a Assumption, &'a Value)>,
    /// Pairs of changes of which neither alone turns it.
    pub pairs: Vec<&'a Variation>,
}

impl Sensitivity {
    /// What keeps and what turns a claim's verdict.
    pub fn standpoint(&self, claim: usize) -> Standpoint<'_> {
        let mut standpoint = Standpoint::default();
        for (index, assumption) in self.assumptions.iter().enumerate() {
            let crossings = || {
                self.crossings
                    .iter()
                    .filter(|at| (at.claim, at.assumption) == (claim, index))
            };
            if crossings().next().is_none() {
                continue;
            }
            if !assumption.is_number() {
                standpoint
                    .choices
                    .extend(crossings().map(|crossing| (assumption, &crossing.turns)));
                continue;
            }
            let ends = || assumption.others.iter().chain([&assumption.nominal]);
            let turning = |below: bool| crossings().find(|at| (at.turns < assumption.nominal) == below);
            let least = turning(true).map_or_else(|| ends().min(), |at| Some(&at.keeps));
            let greatest = turning(false).map_or_else(|| ends().max(), |at| Some(&at.keeps));
            if let (Some(least), Some(greatest)) = (least, greatest) {
                standpoint.ranges.push((assumption, least, greatest));
            }
        }
        let turns = |variation: &Variation| turned(&self.nominal, variation).any(|turned| turned == claim);
        let alone = |change: &Change| {
            let same = |variation: &&Variation| variation.changes[..] == [change.clone()];
            self.alone.iter().find(same).is_some_and(turns)
        };
        let together = |pair: &&Variation| turns(pair) && !pair.changes.iter().any(alone);
        standpoint.pairs = self.pairs.iter().filter(together).collect();
        standpoint
    }

    /// The numbers that come out of a claim over each input's range, the input that moves it most first: with the least
    /// value or first other choice, and so on; none of inputs that do not move it.
    pub fn swings(&self, claim: usize) -> Vec<Swing<'_>> {
        let Some(nominal) = self.nominal[claim].value else {
            return Vec::new();
        };
        let mut swings: Vec<Swing> = (self.assumptions.iter().enumerate())
            .map(|(index, assumption)| {
                let of_input = self
                    .alone
                    .iter()
                    .filter(|variation| variation.changes[0].0 == index);
                let ends = of_input
                    .filter_map(|variation| Some((&variation.changes[0].1, variation.reading(claim)?)));
                Swing {
                    assumption,
                    ends: ends.collect(),
                }
            })
            .filter(|swing| swing.width(nominal) > Number::ZERO)
            .collect();
        swings.sort_by_key(|swing| std::cmp::Reverse(swing.width(nominal)));
        swings
    }
}

/// What an input alone makes of a claim's number.
#[derive(Clone, Debug)]
pub struct Swing<'a> {
    /// The input.
    pub assumption: &'a Assumption,
    /// Each value that it was tried with, and what came out.
    pub ends: Vec<(&'a Value, &'a Reading)>,
}

impl Swing<'_> {
    /// From the least number to the greatest, that of the unvaried input among them.
    fn width(&self, nominal: Number) -> Number {
        let (least, greatest) = self.bounds(nominal);
        greatest - least
    }

    /// The least number and the greatest, that of the unvaried input among them.
    pub fn bounds(&self, nominal: Number) -> (Number, Number) {
        let values = || {
            self.ends
                .iter()
                .filter_map(|(_, reading)| reading.value)
                .chain([nominal])
        };
        (
            values().min().unwrap_or(nominal),
            values().max().unwrap_or(nominal),
        )
    }
}
