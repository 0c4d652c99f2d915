//! Many system calls at once on CEFOS: what scaling and gates measure.

use std::collections::BTreeMap;

use sidestep_fuce::chip::{Chip, ChipConfig, Counters, Stop};
use sidestep_fuce::controller::ControllerOperation;
use sidestep_fuce::device::{Device, RequestDevice};
use sidestep_fuce::image::Image;
use sidestep_lab::{Context, PointError, Timeline};

use super::guests::build;
use super::machine::Tracer;
use crate::failed;

/// So many cycles without an end are a defect of the guest, not a result.
const CYCLES_MAX: u64 = 20_000_000_000;
/// How many cycles run between two looks at whether the user wants to stop.
const CYCLES_BETWEEN_LOOKS: u64 = 10_000_000;

/// What the calls run on.
pub struct Workload {
    chip: ChipConfig,
    image: Image,
    devices: u64,
    simulated: bool,
    round_trip: u64,
}

/// How it went.
pub struct Run {
    /// Clocks from the first launch to the last receiver.
    pub clocks: u64,
    /// What the chip counted.
    pub counters: Counters,
    /// Self-continuations of the threads that make the calls.
    pub sender_retries: u64,
    /// Self-continuations of all other threads.
    pub kernel_retries: u64,
    /// What happened when, if asked for.
    pub timeline: Timeline,
}

impl Workload {
    /// A chip with CEFOS, so many gates and devices. A simulated device is a thread that occupies a unit for the round
    /// trip, as in the paper; another is attached to the chip and occupies none.
    pub fn new(
        chip: ChipConfig,
        gates: u64,
        devices: u64,
        simulated: bool,
        round_trip: u64,
        software_queue: bool,
    ) -> Result<Workload, PointError> {
        let mut image = build("programs/calls.s", software_queue)?;
        let parameters = [
            ("gates", gates),
            ("call_gates", gates),
            ("call_devices", devices),
            ("simulated_devices", if simulated { devices } else { 0 }),
            ("round_trip", round_trip),
        ];
        for (name, value) in parameters {
            image.set_word(name, value as u32).map_err(failed)?;
        }
        Ok(Workload {
            chip,
            image,
            devices,
            simulated,
            round_trip,
        })
    }

    /// Runs so many calls; answers `None` when they are not done within `limit` clocks. The timeline is recorded if
    /// `trace` says so.
    pub fn run(
        &self,
        calls: u64,
        limit: Option<u64>,
        trace: bool,
        context: &Context,
    ) -> Result<Option<Run>, PointError> {
        let mut image = self.image.clone();
        image.set_word("calls", calls as u32).map_err(failed)?;
        let attached = if self.simulated { 0 } else { self.devices };
        let devices = (0..attached)
            .map(|_| Box::new(RequestDevice::new(self.round_trip)) as Box<dyn Device>)
            .collect();
        let mut chip = Chip::new(&self.chip, &image, devices).map_err(failed)?;
        let start = image.symbol("clock_start").map_err(failed)?;
        let end = image.symbol("clock_end").map_err(failed)?;
        let word = |chip: &Chip, address| {
            let word = chip.memory().word(address).map(u64::from);
            word.ok_or_else(|| failed(format!("the guest has no word at {address:#x}")))
        };
        let mut threads: BTreeMap<u32, u64> = BTreeMap::new();
        let mut tracer = trace.then(|| Tracer::new(&image, self.chip.units as u64));
        loop {
            let next = chip.now() + limit.unwrap_or(CYCLES_BETWEEN_LOOKS).min(CYCLES_BETWEEN_LOOKS);
            let stop = chip.run_observed(next, |observation| {
                if let Some((_, completion)) = &observation.step.completion
                    && completion.request.operation == ControllerOperation::SelfContinue
                {
                    *threads.entry(completion.request.issuer.address).or_default() += 1;
                }
                if let Some(tracer) = &mut tracer {
                    tracer.observe(observation);
                }
            });
            let (started, ended) = (word(&chip, start)?, word(&chip, end)?);
            let late = limit.is_some_and(|limit| started != 0 && chip.now() > started + limit);
            match stop {
                Stop::CycleLimit if late => return Ok(None),
                Stop::CycleLimit if context.cancelled() => return Err(PointError::Cancelled),
                Stop::CycleLimit if chip.now() < CYCLES_MAX => {}
                Stop::Halt(0) => {
                    let clocks = ended - started;
                    if limit.is_some_and(|limit| clocks > limit) {
                        return Ok(None);
                    }
                    let (sender_retries, kernel_retries) = by_sender(&image, &threads)?;
                    return Ok(Some(Run {
                        clocks,
                        counters: chip.counters(),
                        sender_retries,
                        kernel_retries,
                        timeline: tracer.map(Tracer::finish).unwrap_or_default(),
                    }));
                }
                other => {
                    let reason = match other {
                        Stop::UnhandledFault(fault) => fault.to_string(),
                        other => format!("{other:?}"),
                    };
                    return Err(PointError::Failed(format!("the guest stopped: {reason}")));
                }
            }
        }
    }
}

/// The thread that makes a call, in the guest's source.
const SENDER: &str = "sender_thread";

/// Sums counts at instruction addresses: those in the text of the senders' thread, and the others.
fn by_sender(image: &Image, addresses: &BTreeMap<u32, u64>) -> Result<(u64, u64), PointError> {
    let sender = image.symbol(SENDER).map_err(failed)?;
    let (mut senders, mut others) = (0, 0);
    for (address, count) in addresses {
        let mut threads = image
            .symbols
            .iter()
            .filter(|(start, name)| start <= address && name.ends_with("_thread"));
        let is_sender = threads.next_back().is_some_and(|(start, _)| *start == sender);
        *(if is_sender { &mut senders } else { &mut others }) += count;
    }
    Ok((senders, others))
}
