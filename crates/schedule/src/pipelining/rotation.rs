//! Rotating registers for values: two values, each a new one in every iteration, never in one register at once.
//!
//! The branch at the end of the kernel renames registers: what was `r40` is `r41` in the next pass. So a value of
//! iteration i with the number b is in register b - i of those that there are, modulo how many rotate, from the cycle
//! in which it is written to that in which it is read last.

use super::modulo::Modulo;
use super::values::{Home, Value, Values};
use crate::rename::File;

/// Registers of a file that rotate, by how they are named in the first pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub first: u8,
    pub size: u8,
}

impl Region {
    /// The name of a register that is so many behind another one.
    pub fn name(self, number: u8, more: u32) -> u8 {
        let place = u32::from(number - self.first) + more;
        self.first + (place % u32::from(self.size)) as u8
    }
}

/// The first stage predicate, and the last rotating predicate that is read: the branch writes the one behind it.
pub(super) const FIRST_STAGE: u8 = 16;
const LAST_PREDICATE: u8 = 62;

/// When a value is in its register, in cycles from the begin of its iteration: from the first to before the second.
#[derive(Clone, Copy, Debug)]
struct Span {
    number: u8,
    first: i64,
    end: i64,
}

/// The numbers of values that rotate, by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub numbers: Vec<Option<u8>>,
    /// The general registers that rotate.
    pub general: Region,
    /// The floating-point ones.
    pub float: Region,
    /// The predicates.
    pub predicate: Region,
}

impl Numbers {
    /// Numbers for the values of a schedule, with the fewest general registers, of which `most` may rotate.
    /// The value of a condition that ends the loop gets its number first: the one before the first iteration is set by
    /// a move that reaches some of the predicates alone.
    pub fn new(values: &Values, schedule: &Modulo, most: u8, condition: Option<usize>) -> Option<Numbers> {
        let mut numbers = Numbers {
            numbers: vec![None; values.values.len()],
            general: Region { first: 32, size: 0 },
            float: Region { first: 32, size: 96 },
            predicate: Region {
                first: FIRST_STAGE,
                size: 48,
            },
        };
        if schedule.stages() > u32::from(LAST_PREDICATE - FIRST_STAGE) {
            return None;
        }
        // The branch writes the first of them a cycle before the iteration.
        let stages = Span {
            number: FIRST_STAGE,
            first: -1,
            end: i64::from(schedule.stages() * schedule.interval),
        };
        let taken = if condition.is_none() {
            vec![stages]
        } else {
            Vec::new()
        };
        numbers.give(values, File::Predicate, schedule, taken, condition)?;
        numbers.give(values, File::Float, schedule, Vec::new(), None)?;
        let is_general = |value: &Value| value.file == File::General && value.home == Home::Rotating;
        if !values.values.iter().any(is_general) {
            return Some(numbers);
        }
        (8..=most).step_by(8).find_map(|size| {
            let mut numbers = numbers.clone();
            numbers.general.size = size;
            numbers.give(values, File::General, schedule, Vec::new(), None)?;
            Some(numbers)
        })
    }

    /// The registers of a file that rotate.
    pub fn region(&self, file: File) -> Region {
        match file {
            File::General => self.general,
            File::Float => self.float,
            File::Predicate => self.predicate,
        }
    }

    /// Gives the values of a file the lowest numbers that are free, in the order in which they are written.
    fn give(
        &mut self,
        values: &Values,
        file: File,
        schedule: &Modulo,
        mut taken: Vec<Span>,
        condition: Option<usize>,
    ) -> Option<()> {
        let region = self.region(file);
        let mut wanted: Vec<(usize, Span)> = values
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.file == file && value.home == Home::Rotating)
            .map(|(index, value)| {
                let mut span = span(value, schedule);
                if condition == Some(index) {
                    // From the branch that clears it.
                    span.first = -1;
                    span.end = span
                        .end
                        .max(i64::from((schedule.condition + 1) * schedule.interval));
                }
                (index, span)
            })
            .collect();
        wanted.sort_by_key(|(index, span)| (condition != Some(*index), span.first, *index));
        let last = match file {
            // As it is read, in the last stage.
            File::Predicate => LAST_PREDICATE,
            _ => region.first + region.size - 1,
        };
        for (index, span) in wanted {
            let reach = (span.end / i64::from(schedule.interval)) as u8 + 1;
            let highest = match file {
                File::Predicate => last.checked_sub(reach)?,
                _ => last,
            };
            let number = (region.first..=highest).find(|number| {
                let span = Span {
                    number: *number,
                    ..span
                };
                let mut others = taken.iter();
                is_apart(span, None, region, schedule.interval)
                    && others.all(|other| is_apart(span, Some(*other), region, schedule.interval))
            })?;
            taken.push(Span { number, ..span });
            self.numbers[index] = Some(number);
        }
        Some(())
    }
}

/// When a value is needed. What is needed behind the loop is there until all iterations are over; what the first
/// iteration reads was there before the loop.
fn span(value: &Value, schedule: &Modulo) -> Span {
    let interval = i64::from(schedule.interval);
    let cycle = |item: usize| i64::from(schedule.cycles[item]);
    let mut first = value
        .accesses
        .iter()
        .map(|access| cycle(access.item))
        .min()
        .unwrap_or(0);
    if value.is_carried() {
        first = first.min(interval);
    }
    let read = value
        .accesses
        .iter()
        .map(|access| cycle(access.item) + if access.is_next { interval } else { 0 });
    let mut end = read.max().unwrap_or(0) + 1;
    if value.is_last {
        end = end.max(i64::from(schedule.stages()) * interval);
    }
    Span {
        number: 0,
        first,
        end,
    }
}

/// Whether two values are never in one register at once, of all iterations; without another one, whether those of
/// different iterations are not.
fn is_apart(one: Span, other: Option<Span>, region: Region, interval: u32) -> bool {
    let (interval, size) = (i64::from(interval), i64::from(region.size));
    let is_same = other.is_none();
    let other = other.unwrap_or(one);
    let difference = i64::from(other.number) - i64::from(one.number);
    let length = one.end.max(other.end) - one.first.min(other.first);
    let turns = length / (interval * size) + 2;
    (-turns..=turns).all(|turn| {
        // Iteration i of the one and i + distance of the other have the same register.
        let later = (difference + turn * size) * interval;
        is_same && turn == 0 || other.first + later >= one.end || one.first >= other.end + later
    })
}
