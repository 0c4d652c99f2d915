//! What happened on a host, as data.

use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::Host;
use crate::host::sidecores::{Worker, locked};
use crate::sidecall::request::Kind;
use crate::virtual_machine::{DeviceKind, ExitCounts, Latencies, Server, VirtualMachine};

/// Who was on which core, and what devices did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The core; further ones are [devices](crate::host::Host::devices).
    pub core: usize,
    /// The virtual machine and its processor, or the service.
    pub name: String,
    /// From when on, in cycles.
    pub start: u64,
    /// For how long.
    pub duration: u64,
}

/// What one core did, in cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoreReport {
    /// The core.
    pub core: usize,
    /// Executing guests.
    pub guest: u64,
    /// In the monitor, for a guest on this core.
    pub monitor: u64,
    /// A guest polling for an answer.
    pub polling: u64,
    /// As a sidecore: serving.
    pub serving: u64,
    /// As a sidecore: polling for requests.
    pub looking: u64,
    /// As a sidecore: waiting without executing.
    pub asleep: u64,
    /// Nothing.
    pub idle: u64,
}

/// Requests of one kind that were served one way, with latencies in cycles as the guest sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    /// The kind.
    pub kind: &'static str,
    /// `exit` or `sidecall`.
    pub method: &'static str,
    /// How many.
    pub count: u64,
    /// The sum of their latencies.
    pub cycles: u64,
    /// The smallest latency.
    pub least: u64,
    /// Half of them took no longer.
    pub median: u64,
    /// Of a hundred, ninety took no longer. Percentiles above 2047 are right to a thousandth.
    pub percentile_90: u64,
    /// Of a hundred, ninety-nine.
    pub percentile_99: u64,
    /// Of a thousand, all but one.
    pub percentile_99_9: u64,
    /// The largest latency.
    pub most: u64,
}

impl RequestReport {
    fn of((kind, server, latencies): (Option<Kind>, Server, &Latencies)) -> RequestReport {
        RequestReport {
            kind: kind.map_or("unknown kind", Kind::name),
            method: match server {
                Server::OwnCore => "exit",
                Server::Sidecore => "sidecall",
            },
            count: latencies.count(),
            cycles: latencies.sum(),
            least: latencies.least(),
            median: latencies.per_mille(500),
            percentile_90: latencies.per_mille(900),
            percentile_99: latencies.per_mille(990),
            percentile_99_9: latencies.per_mille(999),
            most: latencies.most(),
        }
    }
}

/// What one virtual machine did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualMachineReport {
    /// Its name.
    pub name: String,
    /// Its exit code, if it has ended.
    pub exit_code: Option<u64>,
    /// Why it ended without asking to.
    pub failure: Option<String>,
    /// Guest instructions.
    pub instructions: u64,
    /// Cycles of its processors: executing, in the monitor, polling, idle.
    pub cycles: [u64; 4],
    /// Exits by reason.
    pub exits: Vec<crate::virtual_machine::ExitCount>,
    /// Intercepts without an exit.
    pub accelerated: u64,
    /// Purges of other processors' TLBs.
    pub remote_purges: u64,
    /// Requests by kind and method.
    pub requests: Vec<RequestReport>,
}

impl VirtualMachineReport {
    fn of(machine: &VirtualMachine) -> VirtualMachineReport {
        let exits: ExitCounts = machine.exits();
        let mut cycles = [0; 4];
        for processor in machine.processors() {
            let spent = processor.cycles();
            for (sum, more) in cycles
                .iter_mut()
                .zip([spent.guest, spent.monitor, spent.polling, spent.idle])
            {
                *sum += more;
            }
        }
        VirtualMachineReport {
            name: machine.name().to_owned(),
            exit_code: machine.exit_code(),
            failure: machine.failure().map(str::to_owned),
            instructions: machine.instructions(),
            cycles,
            accelerated: exits.accelerated,
            exits: exits.occurred(),
            remote_purges: machine.remote_purges(),
            requests: machine.latencies().made().map(RequestReport::of).collect(),
        }
    }
}

/// What happened on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The table of costs.
    pub host: String,
    /// Cycles since the start.
    pub time: u64,
    /// The same in nanoseconds.
    pub time_ns: u64,
    /// Each core.
    pub cores: Vec<CoreReport>,
    /// Each virtual machine.
    pub machines: Vec<VirtualMachineReport>,
}

impl Host {
    /// What happened so far.
    pub fn report(&self) -> Report {
        let costs = &self.config.costs;
        let cores = (self.accounts.iter().enumerate()).map(|(core, account)| {
            let busy = account.cycles.guest + account.cycles.monitor + account.cycles.polling;
            let looking = account
                .served_epochs
                .saturating_sub(account.serving + account.asleep);
            let used = busy + account.serving + looking + account.asleep;
            CoreReport {
                core,
                guest: account.cycles.guest,
                monitor: account.cycles.monitor,
                polling: account.cycles.polling,
                serving: account.serving,
                looking,
                asleep: account.asleep,
                idle: self.time.saturating_sub(used),
            }
        });
        Report {
            host: costs.name.clone(),
            time: self.time,
            time_ns: costs.nanoseconds(self.time),
            cores: cores.collect(),
            machines: self
                .machines
                .iter()
                .map(|machine| VirtualMachineReport::of(&locked(machine)))
                .collect(),
        }
    }

    /// The devices of virtual machines by name, in the order in which [spans](Host::spans) number them behind the
    /// cores.
    pub fn devices(&self) -> Vec<String> {
        let named = |machine: &Arc<Mutex<VirtualMachine>>| {
            let owner = locked(machine).name().to_owned();
            DeviceKind::ALL.map(|device| format!("{} of {owner}", device.name()))
        };
        self.machines.iter().flat_map(named).collect()
    }

    /// Who was on which core, which services ran, and what devices did; empty unless recording was asked for.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        // Epochs of one virtual processor on one core follow each other: one span.
        let mut open: Vec<Option<usize>> = vec![None; self.config.cores];
        for span in &self.spans {
            let before = open[span.core].map(|at| &mut spans[at]);
            match before {
                Some(before) if before.name == span.name && before.start + before.duration == span.start => {
                    before.duration += span.duration;
                }
                _ => {
                    open[span.core] = Some(spans.len());
                    spans.push(span.clone());
                }
            }
        }
        let services = self.sidecores.services().into_iter();
        spans.extend(services.map(|service| Span {
            core: match service.worker {
                Worker::Core(core) => self.config.cores - 1 - core,
                Worker::Device(device) => {
                    self.config.cores + service.machine * DeviceKind::ALL.len() + device as usize
                }
            },
            name: format!(
                "{} for {}",
                service.kind.map_or("unknown kind", |kind| kind.name()),
                locked(&self.machines[service.machine]).name()
            ),
            start: service.start,
            duration: service.cycles,
        }));
        spans
    }
}
