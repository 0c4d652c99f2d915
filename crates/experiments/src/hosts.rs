//! Modelled hosts whose guests run to their end.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Host, HostEnd, Report};
use sidestep_lab::{Context, PointError};

/// A run that takes longer does not end.
const END: Cycle = Cycle(1 << 40);

/// Runs a host until its guests have ended well, with a look every `stretch_cycles` whether the point is cancelled;
/// comes back with the report.
///
/// # Errors
/// The point was cancelled, a service failed, or a guest does not end, or not well.
pub fn run_to_end(host: &mut Host, stretch_cycles: u64, context: &Context<'_>) -> Result<Report, PointError> {
    loop {
        let until = host.time() + stretch_cycles;
        let end = host.run(until);
        match end.map_err(|error| PointError::Failed(error.to_string()))? {
            HostEnd::Ended => break,
            HostEnd::Time if host.time() < END => {}
            end => {
                return Err(PointError::Failed(format!(
                    "the guests do not end: {end:?} at cycle {}",
                    host.time()
                )));
            }
        }
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
    }
    let report = host.report();
    let failed = report
        .machines
        .iter()
        .position(|machine| machine.exit_code != Some(0));
    match failed {
        Some(index) => Err(ended_wrong(host, &report, index)),
        None => Ok(report),
    }
}

/// What a guest has printed.
pub fn console(host: &Host, index: usize) -> String {
    String::from_utf8_lossy(locked(&host.machines()[index]).console()).into_owned()
}

/// The error of a guest that did not end as it should.
pub fn ended_wrong(host: &Host, report: &Report, index: usize) -> PointError {
    let machine = &report.machines[index];
    PointError::Failed(match &machine.failure {
        Some(failure) => format!("guest `{}`: {failure}", machine.name),
        None => format!(
            "guest `{}` ended with {:?}: {}",
            machine.name,
            machine.exit_code,
            console(host, index)
        ),
    })
}
