//! The cores of a host with virtual machines, with a model of the Itanium 2's pipeline each.
//!
//! What guests execute takes what the model says; transitions take what the host's table says. A virtual processor that
//! moves to another core finds that core's caches; what the monitor's handlers touch is in them, too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::{Host, Span};
use sidestep_hypervisor::virtual_machine::{Core, CoreModel, MachineAddress};
use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::{Counters, Parameters, Pipeline};

use crate::machine::advance_clock;
use crate::shared::Shared;

/// Makes cores, and knows afterwards what they counted.
#[derive(Debug)]
pub struct ModelledCores {
    parameters: Parameters,
    pipelines: Mutex<Vec<Shared<Pipeline>>>,
}

impl ModelledCores {
    /// Cores with the processor that `parameters` describe.
    pub fn new(parameters: Parameters) -> ModelledCores {
        ModelledCores {
            parameters,
            pipelines: Mutex::default(),
        }
    }

    fn pipelines(&self) -> MutexGuard<'_, Vec<Shared<Pipeline>>> {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The processor that is modelled.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// What each core has counted while guests executed, in the order in which they were made.
    pub fn counters(&self) -> Vec<Counters> {
        let pipelines = self.pipelines();
        pipelines
            .iter()
            .map(|pipeline| pipeline.lock().finish())
            .collect()
    }
}

impl CoreModel for ModelledCores {
    fn core(&self) -> Box<dyn Core> {
        let mut pipeline = Pipeline::new(self.parameters.clone());
        pipeline.drive_clock();
        let shared = Shared::new(pipeline);
        self.pipelines().push(shared.clone());
        Box::new(ModelledCore(shared))
    }
}

/// One core.
struct ModelledCore(Shared<Pipeline>);

impl Core for ModelledCore {
    fn run(&mut self, processor: &mut Processor, cycles: u64) -> (Exit, u64) {
        let mut pipeline = self.0.lock();
        let before = pipeline.cycles();
        pipeline.halt_at(before.saturating_add(cycles));
        let exit = pipeline.run(processor, u64::MAX);
        // The monitor works on the processor before it goes on.
        pipeline.detach();
        advance_clock(processor, &mut pipeline);
        (exit, pipeline.cycles() - before)
    }

    fn enter(&mut self, owner: usize, _: usize) {
        self.0.lock().enter_space(owner as u64);
    }

    fn touch(&mut self, address: MachineAddress, bytes: u64, writes: bool) {
        self.0.lock().touch(address.on_hardware(), bytes, writes);
    }
}

/// Who was on which core when, and what devices did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// The names of cores, and of devices behind them.
    pub tracks: Vec<String>,
    /// The index of a track, who was there, from when on and for how long, in nanoseconds.
    pub spans: Vec<(usize, String, u64, u64)>,
    /// For each step of a packet's way the packet, the index of a track, what is done, from when on and for how long,
    /// in nanoseconds; in the order in which steps began.
    pub steps: Vec<(u64, usize, String, u64, u64)>,
    /// From when on, in nanoseconds, nothing was recorded any more, if there was more than is kept.
    pub ended: Option<u64>,
}

impl Occupancy {
    /// What hosts that a link joins have recorded, in the time of one clock: one behind the other, each with a prefix
    /// to the names of its tracks, the packets' steps in order. It ends where the first of them ends.
    pub fn of_all<'a>(hosts: impl IntoIterator<Item = (String, &'a Host)>, costs: &HostCosts) -> Occupancy {
        let mut all = Occupancy::default();
        for (prefix, host) in hosts {
            let one = Occupancy::of(host, costs);
            let first = all.tracks.len();
            let tracks = one.tracks.into_iter();
            all.tracks.extend(tracks.map(|track| format!("{prefix}{track}")));
            let spans = one.spans.into_iter();
            all.spans
                .extend(spans.map(|(track, who, start, duration)| (first + track, who, start, duration)));
            let steps = one.steps.into_iter();
            all.steps
                .extend(steps.map(|(packet, track, what, start, duration)| {
                    (packet, first + track, what, start, duration)
                }));
            all.ended = all.ended.into_iter().chain(one.ended).min();
        }
        if let Some(end) = all.ended {
            all.spans.retain(|(.., start, _)| *start < end);
            all.steps.retain(|(.., start, _)| *start < end);
        }
        all.steps.sort_by_key(|(.., start, _)| *start);
        all
    }

    /// What a host has recorded; empty unless it was told to.
    pub fn of(host: &Host, costs: &HostCosts) -> Occupancy {
        let (spans, steps) = (host.spans(), host.steps());
        let tracks = (spans.iter()).chain(steps.iter().map(|(_, span)| span));
        let tracks = tracks.map(|span| span.core + 1).max().unwrap_or(0);
        let cores = (0..host.cores()).map(|core| format!("core {core}"));
        let in_nanoseconds = |span: &Span| {
            let start = costs.nanoseconds(span.start.since(Cycle::START));
            let end = costs.nanoseconds((span.start + span.cycles).since(Cycle::START));
            (span.core, span.name.clone(), start, end - start)
        };
        let spans = spans.iter().map(in_nanoseconds);
        let steps = steps.iter().map(|(frame, span)| {
            let (track, name, start, duration) = in_nanoseconds(span);
            (*frame, track, name, start, duration)
        });
        Occupancy {
            tracks: cores.chain(host.devices()).take(tracks).collect(),
            spans: spans.collect(),
            steps: steps.collect(),
            ended: host
                .recording_ended()
                .map(|end| costs.nanoseconds(end.since(Cycle::START))),
        }
    }
}
