//! Programs and machines whose instruction groups are watched: what [`sidestep_schedule::sanitizer`] finds, with names.
//!
//! [`Watched`] runs every thread of a process with a sanitizer of its own; a machine has one for each processor.
//! [`text`] says what they have found, without what [`Suppressions`] leave out.

mod suppressions;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::Driver;
use sidestep_ia64::encoding::NoSymbols;
use sidestep_ia64::execution::Observed;
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::Engine;
use sidestep_schedule::sanitizer::{Finding, Findings, Located, Sanitizer};

use crate::shared::Shared;

pub use suppressions::{SuppressionError, Suppressions};

/// Names an address: the function, and how far behind its beginning the address is.
pub type Name<'a> = &'a dyn Fn(u64) -> Option<(String, u64)>;

/// The sanitizers of a process.
#[derive(Debug)]
pub struct Watched {
    ends: bool,
    suppressions: Arc<Suppressions>,
    sanitizers: Mutex<Vec<Shared<Observed<Sanitizer>>>>,
}

impl Watched {
    /// Watches the threads of a process. With `ends` the first finding that is not suppressed ends it.
    pub fn new(ends: bool, suppressions: Arc<Suppressions>) -> Watched {
        Watched {
            ends,
            suppressions,
            sanitizers: Mutex::default(),
        }
    }

    fn sanitizers(&self) -> MutexGuard<'_, Vec<Shared<Observed<Sanitizer>>>> {
        self.sanitizers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn findings(&self) -> Findings {
        let mut all = Findings::default();
        for sanitizer in self.sanitizers().iter() {
            all.merge(sanitizer.lock().0.findings());
        }
        all
    }
}

/// Names addresses by what a process has mapped.
fn name_in<'a>(names: &'a CodeNames) -> impl Fn(u64) -> Option<(String, u64)> + 'a {
    move |address| {
        let found = names.find(address)?;
        let (name, distance) = found.function?;
        Some((name.to_owned(), distance))
    }
}

impl Engine for Watched {
    fn attach(&self) -> Box<dyn Driver + Send> {
        let shared = Shared::new(Observed(Sanitizer::new(self.ends)));
        self.sanitizers().push(shared.clone());
        Box::new(shared)
    }

    fn forget(&self) {
        self.sanitizers().clear();
    }

    fn report(&self, names: &CodeNames) -> Result<String, String> {
        Ok(text(&self.findings(), &self.suppressions, &name_in(names)))
    }

    fn ends(&self, names: &CodeNames) -> bool {
        for sanitizer in self.sanitizers().iter() {
            sanitizer.lock().0.go_on();
        }
        is_violated(&self.findings(), &self.suppressions, &name_in(names))
    }
}

/// Whether something was found that is not suppressed.
pub fn is_violated(findings: &Findings, suppressions: &Suppressions, name: Name<'_>) -> bool {
    findings
        .iter()
        .any(|finding| !suppressions.suppress(finding, name))
}

/// A line for each place, by address, and how many there are; nothing, where there is none.
pub fn text(findings: &Findings, suppressions: &Suppressions, name: Name<'_>) -> String {
    let mut text = String::new();
    let (mut told, mut suppressed) = (0, 0);
    for finding in findings.iter() {
        if suppressions.suppress(finding, name) {
            suppressed += 1;
            continue;
        }
        told += 1;
        text.push_str(&line(finding, name));
    }
    if told == 0 {
        return text;
    }
    let places = match told {
        1 => "place".to_owned(),
        _ => format!("{told} places"),
    };
    let _ = write!(
        text,
        "sidestep: --check-groups: {places} whose meaning the architecture leaves undefined"
    );
    if suppressed > 0 {
        let _ = write!(text, ", and {suppressed} suppressed");
    }
    text.push('\n');
    text
}

/// A finding: where, what, behind what, the rule, on what, how often.
fn line(finding: &Finding, name: Name<'_>) -> String {
    let instruction = |located: &Located| {
        let mut text = String::new();
        let instruction = &located.instruction;
        // Writing to a string cannot fail.
        let _ = instruction.write(located.place.ip, instruction.long_slot(), &NoSymbols, &mut text);
        text.trim().to_owned()
    };
    let second = &finding.second;
    let mut line = format!("{:x}.{}", second.place.ip, second.place.slot);
    if let Some((name, distance)) = name(second.place.ip) {
        let _ = write!(line, " <{name}+{distance:#x}>");
    }
    let _ = write!(line, ": `{}`", instruction(second));
    if let Some(first) = &finding.first {
        let (place, text) = (first.place, instruction(first));
        let _ = write!(line, " behind `{text}` ({:x}.{})", place.ip, place.slot);
    }
    let _ = write!(line, ": {}", finding.rule);
    if !finding.on.is_empty() {
        let _ = write!(line, " on {}", finding.on);
    }
    let times = match finding.count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    line + "; " + &times + "\n"
}
