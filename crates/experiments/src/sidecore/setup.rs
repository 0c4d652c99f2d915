//! The host and the guest of these experiments: their inputs, a run, and what it shows.

use std::path::Path;
use std::sync::Arc;

use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, Report};
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::{
    CoreModel, ExitReason, Method, VirtualMachine, VirtualMachineConfig, Virtualization,
};
use sidestep_itanium2::{Counters, Parameters};
use sidestep_lab::{Assumption, Context, Input, Inputs, Number, PointError, Side, Timeline};
use sidestep_runner::host::{ModelledCores, Occupancy};

use super::table;
use crate::failed;
use crate::hosts::run_to_end;

/// Counters of [`Run::side`] that findings look at: the exits of a fault and of the update that it asks for, and how
/// long each takes.
pub const FAULTS: &str = "page faults reflected an operation";
pub const UPDATES: &str = "page table updates by exit an operation";
pub const FAULT_CYCLES: &str = "exit for a page fault";
pub const MEDIAN_CYCLES: &str = "request latency, median";

/// How many times better counts as lower, where the paper gives no number: by a twentieth at the least.
pub fn lower() -> Number {
    Number::ratio(21, 20)
}

/// About a tenth of a second of work.
const STRETCH_CYCLES: u64 = 10_000_000;

/// The inputs that describe host and guest, the same for every experiment.
pub fn inputs() -> Vec<Input> {
    let mut inputs = vec![
        Input::choice("host", &["pentium-d", "xeon", "itanium2-vti", "itanium2"])
            .about("the table of what transitions cost")
            .source("Sidecore II: a 3.0 GHz dual-core x86-64 with VT; each entry's source is in the table"),
        Input::file("host-file")
            .about("a table of one's own, as `sidestep calibrate` writes it, instead of `host`")
            .source("none: the host that is asked about"),
        Input::choice("virtualization", &["hardware", "ring-compression"])
            .about("how guests are kept from the monitor's state")
            .source("Sidecore II: with VT"),
        Input::switch("saves-energy", false)
            .about("whether an idle sidecore waits without executing")
            .source("Sidecore IV: it polls; a monitored wait is proposed"),
        Input::choice(
            "processor",
            &[
                "table",
                "itanium2",
                "itanium2-900",
                "itanium2-1000",
                "itanium2-1300",
                "itanium2-1500",
            ],
        )
        .about("what a guest's instructions take: what the table says, or what the model of a processor does")
        .source(
            "the table: there is no model of a core of 2005; with a model, the monitor's handlers touch the caches that \
             guests use",
        ),
        Input::integer("host-threads", 1)
            .between(1, 64)
            .about("host threads that advance virtual machines; changes no result")
            .source("chosen: one is fastest for one virtual machine"),
    ];
    inputs.extend(table::inputs());
    inputs
}

/// What an experiment with these inputs assumes.
pub fn assumptions(declared: &[Input], inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
    table::assumptions(declared, inputs, unset(inputs)?, factor)
}

/// The costs that the inputs name. Experiments look at them before the first point, so that what is wrong with a file
/// is said once.
pub fn costs(inputs: &Inputs) -> Result<HostCosts, String> {
    table::with(unset(inputs)?, inputs)
}

/// The table that the inputs name, before any of its entries is set.
fn unset(inputs: &Inputs) -> Result<HostCosts, String> {
    match inputs.text("host-file") {
        "" => HostCosts::preset(inputs.text("host")).map_err(|error| error.to_string()),
        file => {
            let text = sidestep_files::read_text(Path::new(file), sidestep_files::TEXT_BYTES_MAX)
                .map_err(|error| format!("{file}: cannot be read: {error}"))?;
            HostCosts::parse(&text).map_err(|error| format!("{file}: {error}"))
        }
    }
}

/// A host for one side of a point.
pub struct Setup {
    pub costs: Arc<HostCosts>,
    pub cores: usize,
    pub sidecores: SidecorePolicy,
    virtualization: Virtualization,
    saves_energy: bool,
    host_threads: usize,
    core_model: Option<Arc<ModelledCores>>,
}

impl Setup {
    /// The host that the inputs describe, with so many cores.
    pub fn new(inputs: &Inputs, cores: usize, sidecores: SidecorePolicy) -> Result<Setup, PointError> {
        let costs = costs(inputs).map_err(PointError::Failed)?;
        let virtualization = match inputs.text("virtualization") {
            "hardware" => Virtualization::Hardware,
            _ => Virtualization::RingCompression,
        };
        Ok(Setup {
            costs: Arc::new(costs),
            cores,
            sidecores,
            virtualization,
            saves_energy: inputs.switch("saves-energy"),
            host_threads: inputs.count("host-threads") as usize,
            core_model: match inputs.text("processor") {
                "table" => None,
                name => {
                    let parameters = Parameters::by_name(name).expect("the input offers the presets");
                    Some(Arc::new(ModelledCores::new(parameters)))
                }
            },
        })
    }

    /// A guest that does `work`.
    pub fn guest(&self, name: &str, work: &str) -> VirtualMachineConfig {
        VirtualMachineConfig {
            parameters: work.to_owned(),
            virtualization: self.virtualization,
            ..VirtualMachineConfig::new(name)
        }
    }

    /// What the cores have counted in the run, where they are modelled.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for counters in self.core_model.iter().flat_map(|model| model.counters()) {
            sum += counters;
        }
        sum
    }

    /// Runs virtual machines with the guest that makes every request to their ends.
    pub fn run(&self, machines: Vec<VirtualMachineConfig>, context: &Context) -> Result<Run, PointError> {
        self.run_image(sidestep_guests::ia64::REQUESTS, machines, context)
    }

    /// Runs virtual machines with a guest to their ends.
    pub fn run_image(
        &self,
        image: &[u8],
        machines: Vec<VirtualMachineConfig>,
        context: &Context,
    ) -> Result<Run, PointError> {
        let machines: Result<Vec<_>, _> = (machines.into_iter().enumerate())
            .map(|(index, config)| VirtualMachine::new(index, config, image))
            .collect();
        self.run_machines(machines.map_err(failed)?, context)
    }

    /// Runs virtual machines that are made already.
    pub fn run_machines(&self, machines: Vec<VirtualMachine>, context: &Context) -> Result<Run, PointError> {
        let config = HostConfig {
            cores: self.cores,
            costs: Arc::clone(&self.costs),
            sidecores: self.sidecores,
            polling: Polling {
                spin_cycles: 20_000,
                saves_energy: self.saves_energy,
            },
            scheduling: Scheduling {
                policy: PolicyName::Free,
                slot_ns: 1_000_000,
            },
            core_model: self.core_model.clone().map(|model| model as Arc<dyn CoreModel>),
            services: Executor::VirtualTime,
            threads: self.host_threads,
            trace: context.trace,
            nic: None,
        };
        let mut host = Host::new(config, machines).map_err(failed)?;
        let report = run_to_end(&mut host, STRETCH_CYCLES, context)?;
        let Occupancy { tracks, spans, .. } = Occupancy::of(&host, &self.costs);
        let timeline = Timeline::of_spans(tracks, spans);
        Ok(Run {
            host,
            report,
            timeline,
        })
    }
}

/// What a run shows.
pub struct Run {
    host: Host,
    pub report: Report,
    pub timeline: Timeline,
}

impl Run {
    /// The cycles from a guest's mark to another, less those from a third to a fourth: a measurement, and what it takes
    /// beside what is measured.
    pub fn between_marks(
        &self,
        index: usize,
        (begin, end): (u64, u64),
        (idle_begin, idle_end): (u64, u64),
    ) -> Result<u64, PointError> {
        let machine = locked(&self.host.machines()[index]);
        let time = |label| {
            let found = machine.marks().iter().find(|(marked, _)| *marked == label);
            found.map(|(_, time)| *time).ok_or_else(|| {
                let console = String::from_utf8_lossy(machine.console());
                PointError::Failed(format!("the guest has not marked {label}: {console}"))
            })
        };
        let measured = time(end)? - time(begin)?;
        Ok(measured.saturating_sub(time(idle_end)? - time(idle_begin)?))
    }

    /// The cycles and the number of operations that a guest has measured.
    pub fn measured(&self, index: usize) -> Result<(u64, u64), PointError> {
        let machine = locked(&self.host.machines()[index]);
        let console = String::from_utf8_lossy(machine.console());
        let mut words = console.lines().next_back().unwrap_or_default().split(' ').skip(1);
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match (number(), number()) {
            (Some(cycles), Some(count)) => Ok((cycles, count)),
            _ => Err(PointError::Failed(format!(
                "the guest has printed no measurement: {console}"
            ))),
        }
    }

    /// The cycles of an operation of the first guest, and what explains them.
    pub fn side(self) -> Result<Side, PointError> {
        let measured = self.measured(0)?;
        self.side_of(measured)
    }

    /// The same of so many cycles for so many operations.
    pub fn side_of(self, (cycles, count): (u64, u64)) -> Result<Side, PointError> {
        let machine = &self.report.machines[0];
        let faults = machine.exits_for(ExitReason::PageFault);
        let updates = (machine.requests.iter())
            .filter(|request| request.kind == Some(Kind::Map) && request.method == Method::Exit)
            .map(|request| request.count)
            .sum();
        let each = |number: u64| Number::ratio(number, count.max(1));
        let total: u64 = machine.exits.iter().map(|exit| exit.count).sum();
        let requests: u64 = machine.requests.iter().map(|request| request.count).sum();
        let looking: u64 = self.report.cores.iter().map(|core| core.looking).sum();
        let mut side = Side::new(Number::ratio(cycles, count.max(1)))
            .count("exits an operation", each(total))
            .count(FAULTS, each(faults.count))
            .count(UPDATES, each(updates))
            .counter(
                FAULT_CYCLES,
                Number::ratio(faults.cycles, faults.count.max(1)),
                "cycles",
            )
            .count("requests", requests)
            .counter("sidecores polling in vain", looking, "cycles")
            .traced(self.timeline);
        if let Some(most) = machine.requests.iter().max_by_key(|request| request.count) {
            side = side
                .counter("request latency, least", most.least, "cycles")
                .counter(MEDIAN_CYCLES, most.median, "cycles")
                .counter("request latency, 99 %", most.percentile_99, "cycles")
                .counter("request latency, most", most.most, "cycles");
        }
        Ok(side)
    }
}
