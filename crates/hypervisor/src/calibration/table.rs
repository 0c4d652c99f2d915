//! From measurements to a table of costs.
//!
//! A monitor on this machine would be the kernel's: an exit that the kernel handles is leaving, dispatching, emulating
//! and entering. The last two are measured on their own and subtracted; the rest is divided evenly, because one clock
//! on one side of a transition cannot say more.
//!
//! Where the machine cannot say what a cost is, the table of another machine fills in, in nanoseconds, and the entry's
//! source says so.

use thiserror::Error;

use super::{Calibration, Interval, Quantity};
use crate::costs::{Cost, CostsError, HostCosts};

/// The preset that fills in: the other x86 machine.
const OTHER: &str = "pentium-d";

/// Why there is no table.
#[derive(Debug, Error)]
pub enum TableError {
    /// The clock's rate was not measured.
    #[error("the rate of the time-stamp counter was not measured")]
    NoClock,
    /// The table of this machine or of the other.
    #[error(transparent)]
    Costs(#[from] CostsError),
}

/// Where a cost comes from.
enum Source {
    /// A quantity, as it is.
    Measured(Quantity),
    /// Half of an exit and entry that the kernel handles, less dispatch and emulation.
    HalfExit,
    /// No program can measure it.
    Unmeasurable,
}

fn source_of(cost: Cost) -> Source {
    use Source::{HalfExit, Measured, Unmeasurable};
    match cost {
        Cost::Exit | Cost::Entry => HalfExit,
        Cost::Dispatch => Measured(Quantity::Branch),
        Cost::Emulate => Measured(Quantity::Update),
        Cost::Accelerated => Measured(Quantity::GuestPrivileged),
        Cost::CacheLine => Measured(Quantity::CachedLine),
        Cost::Transfer => Measured(Quantity::Transfer),
        Cost::Poll => Measured(Quantity::Poll),
        Cost::Wake => Measured(Quantity::Wake),
        Cost::Interrupt => Measured(Quantity::RemoteSignal),
        Cost::Purge => Measured(Quantity::Purge),
        // There is no hardware that does it: the kernel interrupts the other core.
        Cost::Broadcast => Measured(Quantity::RemotePurge),
        Cost::Switch => Measured(Quantity::ContextSwitch),
        Cost::SampledPage | Cost::DeviceInterrupt | Cost::RegisterRead | Cost::Posted => Unmeasurable,
        Cost::BlockDevice => Measured(Quantity::Disk),
        Cost::Network => Measured(Quantity::Packet),
    }
}

impl Calibration {
    /// Ticks of the time-stamp counter a microsecond.
    fn clock_mhz(&self) -> Result<u64, TableError> {
        let tick = self.get(Quantity::Tick).ok_or(TableError::NoClock)?;
        Ok((1_000_000 + tick.median / 2) / tick.median.max(1))
    }

    /// The table for modelled hosts.
    ///
    /// # Errors
    /// If the clock is not known, or a time is longer than a cost can be.
    pub fn costs(&self) -> Result<HostCosts, TableError> {
        let clock_mhz = self.clock_mhz()?;
        let other = HostCosts::preset(OTHER)?;
        let tick = self.get(Quantity::Tick).ok_or(TableError::NoClock)?.median.max(1);
        let cycles = |time: u64| (time + tick / 2) / tick;
        let entry = |cost: Cost| {
            let measured = match source_of(cost) {
                Source::Measured(quantity) => self.get(quantity).map(|time| (time, self.words(quantity, ""))),
                Source::HalfExit => self.half_exit(),
                Source::Unmeasurable => None,
            };
            match measured {
                Some((time, source)) => (cost, cycles(time.median), source),
                None => {
                    let cycles = other.nanoseconds(other.cycles(cost)) * clock_mhz / 1000;
                    let source = format!(
                        "not measured here; that of `{OTHER}` in nanoseconds: {}",
                        other.entry(cost).source
                    );
                    (cost, cycles, source)
                }
            }
        };
        let name = format!(
            "{}, cores {} and {}, measured",
            self.processor, self.cores.0, self.cores.1
        );
        let costs = Cost::ALL.iter().map(|cost| entry(*cost));
        Ok(HostCosts::new(
            &name,
            clock_mhz,
            other.instruction_millicycles,
            costs,
        )?)
    }

    fn half_exit(&self) -> Option<(Interval, String)> {
        let whole = self.get(Quantity::GuestToKernel)?;
        let parts =
            [Quantity::Branch, Quantity::Update].map(|part| self.get(part).map_or(0, |part| part.median));
        let rest = whole.map(|time| time.saturating_sub(parts.iter().sum()) / 2);
        let words = self.words(Quantity::GuestToKernel, "half of, less dispatch and emulation: ");
        Some((rest, words))
    }

    fn words(&self, quantity: Quantity, how: &str) -> String {
        let text = quantity.description();
        let interval = self.get(quantity).map_or(String::new(), |time| {
            format!(
                "; {} ps, 95 % interval {} to {}, {} samples",
                time.median, time.low, time.high, self.samples
            )
        });
        format!("measured by sidestep calibrate: {how}{text}{interval}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Measurement, Unavailable};
    use super::*;

    /// A machine of 2 GHz on which everything takes 10 ns, except what is given.
    fn calibration(unavailable: &[Quantity]) -> Calibration {
        let measurements = Quantity::ALL.iter().map(|quantity| {
            let time = match quantity {
                Quantity::Tick => 500,
                Quantity::GuestToKernel => 1_020_000,
                _ => 10_000,
            };
            let result = match unavailable.contains(quantity) {
                true => Err(Unavailable::OneCore),
                false => Ok(Interval::of(vec![time])),
            };
            Measurement {
                quantity: *quantity,
                result,
            }
        });
        Calibration {
            processor: "A processor".to_owned(),
            cores: (0, 1),
            samples: 1,
            measurements: measurements.collect(),
        }
    }

    #[test]
    fn times_become_cycles_and_an_exit_is_divided() {
        let costs = calibration(&[]).costs().expect("a table");
        assert_eq!(costs.clock_mhz, 2000);
        assert_eq!(costs.cycles(Cost::Transfer), 20);
        assert_eq!(
            costs.cycles(Cost::Exit),
            1000,
            "half of 1020 less twice 10 nanoseconds"
        );
        assert_eq!(
            costs.round_trip() + costs.cycles(Cost::Emulate),
            2040,
            "the whole is what was measured"
        );
        assert_eq!(HostCosts::parse(&costs.to_toml()), Ok(costs));
    }

    #[test]
    fn what_was_not_measured_comes_from_another_machine_and_says_so() {
        let costs = calibration(&[Quantity::GuestToKernel, Quantity::Transfer]).costs();
        let costs = costs.expect("a table");
        let other = HostCosts::preset(OTHER).expect("a preset");
        for cost in [Cost::Exit, Cost::Transfer] {
            let entry = costs.entry(cost);
            assert!(entry.source.starts_with("not measured here"), "{}", entry.source);
            let (here, there) = (
                costs.nanoseconds(entry.cycles),
                other.nanoseconds(other.cycles(cost)),
            );
            assert!(here.abs_diff(there) <= 1, "{cost:?}");
        }
        assert!(costs.entry(Cost::Poll).source.starts_with("measured by"));
    }

    #[test]
    fn without_a_clock_there_is_no_table() {
        let error = calibration(&[Quantity::Tick]).costs().expect_err("no clock");
        assert!(matches!(error, TableError::NoClock));
    }
}
