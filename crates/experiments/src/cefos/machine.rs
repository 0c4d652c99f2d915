//! The chip of these experiments: its inputs, and what its counters say.

use sidestep_fuce::chip::{Cause, ChipConfig, Counters, Observation};
use sidestep_fuce::image::Image;
use sidestep_lab::{Breakdown, Drawing, Input, Inputs, Part, Side, Timeline};

/// The inputs that describe the chip, the same for every experiment.
pub fn inputs() -> Vec<Input> {
    vec![
        Input::integer("cache-bytes", 4096)
            .between(32, 1 << 20)
            .unit("bytes")
            .about("each unit's instruction cache, a power of two")
            .source("CEFOS 3.1"),
        Input::integer("pages", 1024)
            .between(1, 1024)
            .unit("pages")
            .about("activation control memory, 8 entries a page")
            .source("CEFOS 3.1"),
        Input::integer("queue", 1024)
            .between(1, 1024)
            .unit("threads")
            .about("the ready queue's length; it has no priorities")
            .source("CEFOS 3.1"),
        Input::integer("banks", 8)
            .between(1, 1024)
            .about("banks of shared memory, a power of two, interleaved by word")
            .source("chosen: a cache line is one word of each"),
        Input::integer("bank-cycles", 8)
            .between(1, 1000)
            .unit("cycles")
            .about("how long an access occupies its bank")
            .source("chosen: the random cycle of on-chip dynamic memory, about 8 ns at the paper's 1 GHz"),
        Input::integer("interconnect-cycles", 1)
            .between(0, 1000)
            .unit("cycles")
            .about("from a unit to the banks, and back again")
            .source("chosen: one register stage each way"),
        Input::integer("branch-cycles", 2)
            .between(0, 100)
            .unit("cycles")
            .about("lost after a taken branch")
            .source("chosen: fetch and decode of an in-order pipeline without prediction"),
        Input::integer("controller-cycles", 2)
            .between(1, 1000)
            .unit("cycles")
            .about("how long the thread activation controller serves a request")
            .source("chosen: one read and one write of a memory with a single port"),
        Input::switch("preload", true)
            .about("whether a busy unit takes its next thread in advance and loads its registers")
            .source("Fuce, as CEFOS [2] describes it"),
    ]
}

/// The chip that the inputs describe.
pub fn config(inputs: &Inputs, units: u64) -> ChipConfig {
    let number = |key: &str| inputs.count(key) as u32;
    ChipConfig {
        units: units as usize,
        instruction_cache_bytes: number("cache-bytes"),
        pages: number("pages") as u16,
        queue: number("queue") as u16,
        // The guests use less than the paper's 256 MB; the rest would only have to be cleared for every run.
        memory_bytes: 16 << 20,
        banks: number("banks") as usize,
        bank_cycles: number("bank-cycles"),
        interconnect_cycles: number("interconnect-cycles"),
        branch_penalty: number("branch-cycles"),
        controller_cycles: number("controller-cycles"),
        preload: inputs.switch("preload"),
        ..ChipConfig::default()
    }
}

/// Checks what the single inputs' bounds cannot.
pub fn check(inputs: &Inputs) -> Result<(), String> {
    for key in ["cache-bytes", "banks"] {
        if !inputs.count(key).is_power_of_two() {
            return Err(format!(
                "`{key}` must be a power of two, not {}",
                inputs.count(key)
            ));
        }
    }
    if inputs.count("cache-bytes") < 32 {
        return Err("`cache-bytes` must hold a line of 32 bytes".to_owned());
    }
    Ok(())
}

/// Counters of [`explain`] that findings and figures look at.
pub const SELF_CONTINUATIONS: &str = "self-continuations";
pub const HELD_CYCLES: &str = "loaded threads held while a unit was idle";

/// Adds what explains a run.
pub fn explain(side: Side, counters: &Counters) -> Side {
    let causes = Cause::ALL
        .iter()
        .map(|cause| Part::leaf(cause.name(), counters.of(*cause)))
        .collect();
    let controller = &counters.controller;
    side.count("threads", counters.threads())
        .count("continuations", controller.continuations)
        .count(SELF_CONTINUATIONS, controller.self_continuations)
        .count("locks denied", controller.locks_denied)
        .count("longest ready queue", counters.longest_queue)
        .count("threads spilled", controller.spills)
        .counter("controller busy", controller.busy_cycles, "cycles")
        .counter("bank conflicts", counters.bank_conflict_cycles, "cycles")
        .counter(HELD_CYCLES, counters.preload_held_cycles, "cycles")
        .draw(Drawing::Breakdown(Breakdown {
            title: "Where the units' cycles went".to_owned(),
            unit: "cycles".to_owned(),
            whole: Part::sum("unit cycles", causes),
        }))
}

/// Draws which thread each unit runs, and the length of the ready queue. A cycle of the paper's 1 GHz is a nanosecond.
pub struct Tracer<'a> {
    image: &'a Image,
    timeline: Timeline,
    queue: usize,
    queued: usize,
    /// Of each unit: its track, and what it runs since when.
    units: Vec<(usize, Option<(u32, u64)>)>,
}

impl<'a> Tracer<'a> {
    /// A tracer of a chip with so many units.
    pub fn new(image: &'a Image, units: u64) -> Tracer<'a> {
        let mut timeline = Timeline::default();
        let queue = timeline.track("ready queue");
        let units = (0..units)
            .map(|unit| (timeline.track(format!("unit {unit}")), None))
            .collect();
        Tracer {
            image,
            timeline,
            queue,
            queued: 0,
            units,
        }
    }

    /// Notes what a cycle changed.
    pub fn observe(&mut self, observation: &Observation) {
        let now = observation.cycle;
        if observation.queued != self.queued {
            self.queued = observation.queued;
            self.timeline
                .counter(self.queue, "threads", now, self.queued as i64);
        }
        for (number, (track, since)) in self.units.iter_mut().enumerate() {
            let running = observation.running(number).map(|(_, code)| code);
            if since.map(|(code, _)| code) == running {
                continue;
            }
            if let Some((code, start)) = since.take() {
                let name = self.image.describe(code);
                self.timeline.span(*track, name, start, now - start);
            }
            *since = running.map(|code| (code, now));
        }
    }

    /// The timeline; threads that still run are left out.
    pub fn finish(self) -> Timeline {
        self.timeline
    }
}
