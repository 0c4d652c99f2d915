//! Hosts whose guests have interfaces of a self-virtualised card: their inputs, and what guests have logged.

use std::sync::Arc;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, NicReport};
use sidestep_hypervisor::link::Link;
use sidestep_hypervisor::nic::{Delivery, NicConfig};
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig};
use sidestep_ia64::PhysicalAddress;
use sidestep_lab::{Assumption, Input, Inputs, Number, PointError, Timeline};
use sidestep_runner::host::Occupancy;

use super::table;

/// A run that takes longer does not end.
pub const END: Cycle = Cycle(1 << 36);

/// The ways to deliver interrupts, but for the one that the others are held against.
pub const WAYS: [&str; 5] = ["sidecore", "adaptive", "vector", "posted", "posted-by-sidecore"];

/// The inputs that describe hosts, cards and links, the same for every experiment.
pub fn inputs() -> Vec<Input> {
    let mut inputs = vec![
        Input::choice("host", &["xeon", "pentium-d", "itanium2-vti", "itanium2"])
            .about("the table of what transitions cost")
            .source("Sidecore III: dual 2-way HT Xeon 2.80 GHz; each entry's source is in the table"),
        Input::integer("engines", 2)
            .between(1, 16)
            .about("micro-engines of the card that serve interfaces")
            .source("estimate: the IXP2400 has eight, the paper does not say how many serve interfaces"),
        Input::integer("ring-entries", 64)
            .between(4, 256)
            .about("descriptors of each ring, a power of two")
            .source("estimate: the paper does not say"),
        Input::integer("register-bits", 8)
            .between(1, 64)
            .about("bits of the identifier register")
            .source("Sidecore III: an 8-bit wide identifier register"),
        Input::integer("latency-bound-us", 20)
            .between(0, 1_000_000)
            .about("how long the adaptive way keeps a packet waiting for others at the most")
            .source("chosen: within a fifth of a round trip of the time"),
        Input::integer("link-latency-ns", 5000)
            .between(100, 1_000_000_000)
            .about("how long a bit is on its way between the hosts")
            .source("estimate: one switch that stores and forwards"),
        Input::integer("link-megabits", 1000)
            .between(1, 1_000_000)
            .about("bits a microsecond of the link")
            .source("Sidecore III: a gigabit Ethernet board"),
        Input::integer("slot-us", 1000)
            .between(1, 1_000_000)
            .about("the length of a scheduling slot")
            .source("chosen: guests that wait for packets give their core back sooner"),
        Input::integer("host-threads", 1)
            .between(1, 64)
            .about("host threads that advance virtual machines; changes no result")
            .source("chosen: one is fastest for few cores"),
    ];
    inputs.extend(table::inputs());
    inputs
}

/// What an experiment with these inputs assumes.
pub fn assumptions(declared: &[Input], inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
    let costs = HostCosts::preset(inputs.text("host")).map_err(|error| error.to_string())?;
    table::assumptions(declared, inputs, costs, factor)
}

/// Hosts and links as the inputs describe them.
pub struct Network {
    pub costs: Arc<HostCosts>,
    pub link: Link,
    card: NicConfig,
    slot_ns: u64,
    threads: usize,
}

impl Network {
    /// What the inputs say.
    pub fn new(inputs: &Inputs) -> Result<Network, String> {
        let costs = HostCosts::preset(inputs.text("host")).map_err(|error| error.to_string())?;
        Ok(Network {
            costs: Arc::new(table::with(costs, inputs)?),
            link: Link {
                latency_ns: inputs.count("link-latency-ns"),
                megabits: inputs.count("link-megabits"),
                ..Link::GIGABIT
            },
            card: NicConfig {
                engines: inputs.count("engines") as usize,
                ring_entries: inputs.count("ring-entries"),
                register_bits: inputs.count("register-bits") as usize,
                latency_bound_ns: inputs.count("latency-bound-us") * 1000,
                ..NicConfig::new(Delivery::Master)
            },
            slot_ns: inputs.count("slot-us") * 1000,
            threads: inputs.count("host-threads") as usize,
        })
    }

    /// Host `number` with a guest for each work, so many cores for guests, and one more that polls if the way needs it.
    pub fn host(
        &self,
        number: u16,
        guest_cores: usize,
        delivery: Delivery,
        works: &[String],
        trace: bool,
    ) -> Result<Host, PointError> {
        let failed = |error: String| PointError::Failed(error);
        let machines: Result<Vec<_>, _> = (works.iter().enumerate())
            .map(|(index, work)| {
                let config = VirtualMachineConfig {
                    parameters: work.clone(),
                    ..VirtualMachineConfig::new(&format!("guest {index}"))
                };
                VirtualMachine::new(index, config, sidestep_guests::ia64::PACKETS)
            })
            .collect();
        let sidecores = usize::from(delivery.needs_sidecore());
        let config = HostConfig {
            cores: guest_cores + sidecores,
            costs: Arc::clone(&self.costs),
            sidecores: SidecorePolicy::Fixed(sidecores),
            polling: Polling {
                spin_cycles: 20_000,
                saves_energy: false,
            },
            scheduling: Scheduling {
                policy: PolicyName::Free,
                slot_ns: self.slot_ns,
            },
            core_model: None,
            services: Executor::VirtualTime,
            threads: self.threads,
            trace,
            nic: Some(NicConfig {
                delivery,
                host: number,
                ..self.card.clone()
            }),
        };
        let machines = machines.map_err(|error| failed(error.to_string()))?;
        Host::new(config, machines).map_err(|error| failed(error.to_string()))
    }

    /// Cycles as microseconds.
    pub fn microseconds(&self, cycles: u64) -> Number {
        Number::ratio(cycles, self.costs.clock_mhz)
    }

    /// What a host has recorded.
    pub fn timeline(&self, host: &Host) -> Timeline {
        let Occupancy {
            tracks, spans, steps, ..
        } = Occupancy::of(host, &self.costs);
        let mut timeline = Timeline::of_spans(tracks, spans);
        timeline.flows(steps);
        timeline
    }
}

/// The way of a name that an input offers.
pub fn delivery(name: &str) -> Delivery {
    let found = Delivery::ALL.into_iter().find(|delivery| delivery.name() == name);
    found.expect("the inputs offer the ways")
}

/// What the card of a host did.
pub fn card(host: &Host) -> NicReport {
    host.report().nic.expect("the host has a card")
}

/// What a guest has logged so far.
pub fn logged(host: &Host, index: usize) -> Result<Vec<u64>, PointError> {
    let machine = locked(&host.machines()[index]);
    let console = String::from_utf8_lossy(machine.console());
    if let Some(code) = machine.exit_code() {
        return Err(PointError::Failed(format!(
            "guest {index} ended with {code}: {console}"
        )));
    }
    let address = console
        .strip_prefix("log ")
        .and_then(|rest| rest.trim().parse().ok());
    let Some(address) = address.map(PhysicalAddress) else {
        return Ok(Vec::new());
    };
    let memory = machine.memory();
    let word = |number: u64| memory.read_value::<u64>(address + 8 * number);
    let samples = word(0).and_then(|count| (1..=count).map(word).collect());
    samples.map_err(|error| PointError::Failed(format!("the log of guest {index}: {error}")))
}

/// The `per_mille`th of sorted samples: so many of a thousand are no larger.
pub fn quantile(sorted: &[u64], per_mille: u64) -> u64 {
    let rank = (sorted.len() as u64 * per_mille).div_ceil(1000).max(1) - 1;
    sorted.get(rank as usize).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let sorted: Vec<u64> = (1..=1000).collect();
        assert_eq!(
            [1, 250, 500, 999, 1000].map(|part| quantile(&sorted, part)),
            [1, 250, 500, 999, 1000]
        );
        assert_eq!((quantile(&[7], 500), quantile(&[], 500)), (7, 0));
    }

    #[test]
    fn every_way_that_is_offered_exists() {
        for way in WAYS {
            assert_eq!(delivery(way).name(), way);
        }
    }
}
