//! Findings that nobody wants to know of: a file with a line for each kind of them.
//!
//! ```text
//! # What stands in a line holds together; lines hold each by itself.
//! address=4000000000000a40.1
//! address=4000000000000a00-4000000000000aff rule=waw
//! symbol=memcpy*
//! ```

use std::ops::RangeInclusive;
use std::path::Path;

use sidestep_schedule::sanitizer::{Finding, Rule};

use super::Name;

/// What is left out.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    patterns: Vec<Pattern>,
}

/// A line.
#[derive(Clone, Debug, Default)]
struct Pattern {
    addresses: Option<Addresses>,
    symbol: Option<String>,
    rule: Option<Rule>,
}

/// Where the later instruction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Addresses {
    bundles: RangeInclusive<u64>,
    slot: Option<u8>,
}

/// What is wrong with a file of suppressions.
#[derive(Debug, thiserror::Error)]
pub enum SuppressionError {
    /// It cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line says nothing that can be meant.
    #[error("{path}:{line}: {message}")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl Suppressions {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SuppressionError`] names the file, the line and what would be right.
    pub fn read(path: &Path) -> Result<Suppressions, SuppressionError> {
        let name = path.display().to_string();
        let read = |source| SuppressionError::Read {
            path: name.clone(),
            source,
        };
        let bytes = sidestep_files::read(path, sidestep_files::TEXT_BYTES_MAX).map_err(read)?;
        let text = String::from_utf8(bytes).map_err(|error| read(std::io::Error::other(error)))?;
        Suppressions::parse(&text).map_err(|(line, message)| SuppressionError::Line {
            path: name,
            line,
            message,
        })
    }

    /// Reads a text; an error is the line's number and what is wrong with it.
    fn parse(text: &str) -> Result<Suppressions, (usize, String)> {
        let mut patterns = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let said = line.split('#').next().unwrap_or_default();
            let mut words = said.split_ascii_whitespace().peekable();
            if words.peek().is_none() {
                continue;
            }
            let mut pattern = Pattern::default();
            for word in words {
                pattern.add(word).map_err(|message| (index + 1, message))?;
            }
            patterns.push(pattern);
        }
        Ok(Suppressions { patterns })
    }

    /// Whether a finding is left out.
    pub fn suppress(&self, finding: &Finding, name: Name<'_>) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(finding, name))
    }
}

impl Pattern {
    fn add(&mut self, word: &str) -> Result<(), String> {
        let wrong = || {
            format!(
                "`{word}` must be address=HEX, address=HEX.SLOT, address=HEX-HEX, symbol=NAME (`*` at its end for any \
                 ending) or rule=NAME"
            )
        };
        let (key, value) = word
            .split_once('=')
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(wrong)?;
        let is_twice = match key {
            "address" => self
                .addresses
                .replace(addresses(value).ok_or_else(wrong)?)
                .is_some(),
            "symbol" => self.symbol.replace(value.to_owned()).is_some(),
            "rule" => self.rule.replace(rule(value)?).is_some(),
            _ => return Err(wrong()),
        };
        match is_twice {
            true => Err(format!(
                "{key}= stands twice in the line; lines hold each by itself"
            )),
            false => Ok(()),
        }
    }

    fn matches(&self, finding: &Finding, name: Name<'_>) -> bool {
        let place = finding.second.place;
        let is_there = self.addresses.as_ref().is_none_or(|addresses| {
            addresses.bundles.contains(&place.ip) && addresses.slot.is_none_or(|slot| slot == place.slot)
        });
        let is_named = || {
            self.symbol.as_ref().is_none_or(|symbol| {
                name(place.ip).is_some_and(|(name, _)| match symbol.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == *symbol,
                })
            })
        };
        is_there && self.rule.is_none_or(|rule| rule == finding.rule) && is_named()
    }
}

fn addresses(text: &str) -> Option<Addresses> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (number(first)?, number(last)?);
        return (first <= last).then_some(Addresses {
            bundles: first..=last,
            slot: None,
        });
    }
    let (address, slot) = match text.split_once('.') {
        Some((address, slot)) => (address, Some(slot.parse().ok().filter(|slot| *slot < 3)?)),
        None => (text, None),
    };
    let bundle = number(address)? & !15;
    Some(Addresses {
        bundles: bundle..=bundle,
        slot,
    })
}

fn rule(name: &str) -> Result<Rule, String> {
    let found = Rule::ALL.into_iter().find(|rule| rule.name() == name);
    found.ok_or_else(|| {
        let names = Rule::ALL.map(Rule::name).join(", ");
        format!("no rule is called `{name}`; there are {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_nothing_are_refused_with_what_would_be_right() {
        for (text, line, said) in [
            (
                "symbol=f\n\nrule=wax",
                3,
                "no rule is called `wax`; there are raw, waw",
            ),
            ("adress=10", 1, "must be address=HEX"),
            ("address=10.3", 1, "must be address=HEX"),
            ("address=20-10", 1, "must be address=HEX"),
            ("# nothing\nsymbol=", 2, "symbol=NAME"),
            ("rule=raw rule=waw", 1, "rule= stands twice"),
        ] {
            let (at, message) = Suppressions::parse(text).expect_err("the line is wrong");
            assert_eq!(at, line, "{message}");
            assert!(message.contains(said), "{message}");
        }
        let good = "# a comment\n\nsymbol=mem* rule=raw # and why\naddress=0x10.2\naddress=10-2f\n";
        assert_eq!(Suppressions::parse(good).expect("all right").patterns.len(), 3);
    }
}
