//! The fast path of `guests/ia64/ipc` as a scheduler makes it of the first assembly, by what it knows of the processor.
//!
//! The machine code of `ipc_first` is scheduled in the run and written back to its place, so that no version has an
//! origin of its own. What may pass what is asserted by comments in the path's source.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use sidestep_guests::ia64;
use sidestep_itanium2::Parameters;
use sidestep_lab::{Inputs, PointError};
use sidestep_schedule::Options;
use sidestep_schedule::optimize::Outcome;
use sidestep_schedule::program::asserted::schedule;
use sidestep_schedule::program::image::Program;
use sidestep_schedule::program::rewrite::write;

use super::kernel::Guest;
use super::timed;

/// The function that is scheduled, and where its source is.
const FUNCTION: &str = "ipc_first";
const SOURCE: &str = "guests/ia64/ipc/first.S";
/// More than the solver needs by far: what it finds must not hang on how fast the host is.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Who schedules the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Nobody: it is as it was written.
    Nobody,
    /// The list scheduler.
    List(Knows),
    /// The solver.
    Solver(Knows),
}

/// For which processor it schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// That of the model.
    Everything,
    /// That which it believes the processor to be: a preset.
    Preset(&'static str),
}

/// The versions of the path, and who schedules them.
pub const VERSIONS: &[(&str, Scheduler)] = &[
    ("first", Scheduler::Nobody),
    ("scheduled", Scheduler::List(Knows::Preset("itanium2-documented"))),
    ("stack", Scheduler::Solver(Knows::Preset("itanium2-table4"))),
    ("listed", Scheduler::List(Knows::Everything)),
    ("measured", Scheduler::Solver(Knows::Everything)),
];

/// The names of the versions.
pub const NAMES: &[&str] = &{
    let mut names = [""; VERSIONS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = VERSIONS[index].0;
        index += 1;
    }
    names
};

/// The guest with a version in the place of the first one, and what is known of the schedule.
pub fn image(version: &str, inputs: &Inputs) -> Result<(Cow<'static, [u8]>, Option<Outcome>), PointError> {
    let image = Guest::Messages.image();
    let row = VERSIONS.iter().find(|row| row.0 == version);
    let (knows, time_limit) = match row.map_or(Scheduler::Nobody, |row| row.1) {
        Scheduler::Nobody => return Ok((Cow::Borrowed(image), None)),
        Scheduler::List(knows) => (knows, Duration::ZERO),
        Scheduler::Solver(knows) => (knows, PATIENCE),
    };
    let parameters = match knows {
        Knows::Everything => timed::processor(inputs),
        Knows::Preset(name) => Parameters::by_name(name).expect("a preset of the model"),
    };
    let failed = |error: &dyn std::fmt::Display| PointError::Failed(error.to_string());
    let program = Program::parse(image).map_err(|error| failed(&error))?;
    let source = (ia64::MESSAGES_FIRST, Path::new(SOURCE));
    let options = Options {
        parameters,
        time_limit,
    };
    let (change, outcome) = schedule(&program, FUNCTION, source, &options).map_err(|error| failed(&error))?;
    let mut changed = image.to_vec();
    write(&mut changed, &program, std::iter::once(&change));
    Ok((Cow::Owned(changed), Some(outcome)))
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::encoding::Operation;
    use sidestep_schedule::program::image::{addressed, target};

    use super::*;
    use crate::itanium::EXPERIMENTS;

    /// The instructions of a function with their slots, up to its return; branches by where they go.
    fn code(image: &[u8], name: &str) -> Vec<(u8, u64, Option<u64>)> {
        let program = Program::parse(image).expect("the guest is a program");
        let extent = program.functions.iter().find(|extent| extent.name == name);
        let extent = extent.expect("it has the function");
        let bundles = program.bundles(&extent.addresses).expect("whole bundles");
        let mut code = Vec::new();
        for (address, bundle) in addressed(extent.addresses.start, bundles) {
            for decoded in bundle.decode() {
                let instruction = decoded.instruction.expect("an instruction");
                let target = target(&instruction, address);
                let bits = if target.is_some() { 0 } else { instruction.slot };
                code.push((decoded.slot, bits, target));
                if instruction.operation == Operation::Return {
                    return code;
                }
            }
        }
        panic!("{name} returns");
    }

    #[test]
    fn the_guest_has_the_versions_that_the_scheduler_makes() {
        let experiment = EXPERIMENTS.iter().find(|each| each.about().name == "itanium.ipc");
        let declared = experiment.expect("it is there").inputs();
        let inputs = Inputs::new("itanium.ipc", &declared, false, &[]).expect("the defaults are values");
        for version in ["scheduled", "measured"] {
            let (image, _) = image(version, &inputs).expect("it can be scheduled");
            assert_eq!(
                code(&image, FUNCTION),
                code(Guest::Messages.image(), &format!("ipc_{version}")),
                "{version}: guests/ia64/ipc/schedule makes it anew"
            );
        }
    }
}
