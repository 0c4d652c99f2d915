//! What happened on a host, as data.

use std::sync::{Arc, Mutex};

use serde::{Serialize, Serializer};

use super::Host;
use super::card::{Card, CardCounts};
use crate::contention::ContentionCounts;
use crate::cycle::Cycle;
use crate::host::sidecores::{Worker, locked};
use crate::nic::Delivery;
use crate::nic::vif::VifCounts;
use crate::sidecall::request::Kind;
use crate::virtual_machine::{
    DetectionReport, DeviceKind, ExitCount, ExitCounts, ExitReason, InterruptCounts, Latencies, LockCounts,
    Method, Server, VirtualMachine,
};

/// Who was on which core, and what devices did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The core; further ones are [devices](crate::host::Host::devices).
    pub core: usize,
    /// The virtual machine and its processor, or the service.
    pub name: String,
    /// From when on.
    pub start: Cycle,
    /// For how long.
    pub cycles: u64,
}

/// What contention has cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContentionReport {
    /// What the cores share.
    pub hierarchy: String,
    /// For each core.
    pub cores: Vec<ContentionCounts>,
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
    /// The kind; `None`: of requests of which there is no such kind.
    #[serde(serialize_with = "name_of_kind")]
    pub kind: Option<Kind>,
    /// The way.
    pub method: Method,
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

/// A kind of request in reports.
pub fn kind_name(kind: Option<Kind>) -> &'static str {
    kind.map_or("unknown kind", Kind::name)
}

fn name_of_kind<S: Serializer>(kind: &Option<Kind>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind_name(*kind))
}

impl RequestReport {
    fn of((kind, server, latencies): (Option<Kind>, Server, &Latencies)) -> RequestReport {
        RequestReport {
            kind,
            method: match server {
                Server::OwnCore => Method::Exit,
                Server::Sidecore => Method::Sidecall,
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
    pub exits: Vec<ExitCount>,
    /// Intercepts without an exit.
    pub accelerated: u64,
    /// Purges of other processors' TLBs.
    pub remote_purges: u64,
    /// What the lock of its page tables cost, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_table_lock: Option<LockCounts>,
    /// Requests by kind and method.
    pub requests: Vec<RequestReport>,
    /// Which of its processors share memory, if that was found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<DetectionReport>,
}

impl VirtualMachineReport {
    /// Exits for one reason: none, if the report has no line for it.
    pub fn exits_for(&self, reason: ExitReason) -> ExitCount {
        let line = self.exits.iter().find(|exit| exit.reason == reason);
        line.copied().unwrap_or(ExitCount {
            reason,
            count: 0,
            cycles: 0,
        })
    }

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
            page_table_lock: machine.lock_counts(),
            requests: machine.latencies().made().map(RequestReport::of).collect(),
            detection: machine.detection(),
        }
    }
}

/// What became of one virtual interface, and what its card's interrupts did to its virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceReport {
    /// Frames and signals.
    #[serde(flatten)]
    pub counts: VifCounts,
    /// Interrupts for others, and signals in vain.
    #[serde(flatten)]
    pub interrupts: InterruptCounts,
}

/// What a card did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NicReport {
    /// How guests learn of packets.
    pub delivery: Delivery,
    /// What is no single interface's.
    #[serde(flatten)]
    pub counts: CardCounts,
    /// Each interface, as virtual machines are numbered.
    pub interfaces: Vec<InterfaceReport>,
}

/// What happened on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The table of costs.
    pub host: String,
    /// How far it has come.
    pub time: Cycle,
    /// The same in nanoseconds.
    pub time_ns: u64,
    /// Each core.
    pub cores: Vec<CoreReport>,
    /// Each virtual machine.
    pub machines: Vec<VirtualMachineReport>,
    /// The card, if the host has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicReport>,
    /// What contention has cost, if that is modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionReport>,
}

impl Host {
    /// What happened so far.
    pub fn report(&self) -> Report {
        let costs = &self.config.costs;
        let cores = (self.accounts.iter().enumerate()).map(|(core, account)| {
            let busy = account.cycles.guest + account.cycles.monitor + account.cycles.polling;
            let looking = account.sidecore.saturating_sub(account.serving + account.asleep);
            let used = busy + account.serving + looking + account.asleep;
            CoreReport {
                core,
                guest: account.cycles.guest,
                monitor: account.cycles.monitor,
                polling: account.cycles.polling,
                serving: account.serving,
                looking,
                asleep: account.asleep,
                idle: self.time.since(Cycle::START).saturating_sub(used),
            }
        });
        Report {
            host: costs.name.clone(),
            time: self.time,
            time_ns: costs.nanoseconds(self.time.since(Cycle::START)),
            cores: cores.collect(),
            machines: self
                .machines
                .iter()
                .map(|machine| VirtualMachineReport::of(&locked(machine)))
                .collect(),
            nic: self.sidecores.card().map(|card| self.nic_report(card)),
            contention: self.contention().map(|(hierarchy, cores)| ContentionReport {
                hierarchy: hierarchy.name.clone(),
                cores,
            }),
        }
    }

    fn nic_report(&self, card: &Card) -> NicReport {
        let (counts, interfaces) = card.counts();
        let interfaces = interfaces.into_iter().zip(&self.machines);
        NicReport {
            delivery: card.delivery(),
            counts,
            interfaces: interfaces
                .map(|(counts, machine)| InterfaceReport {
                    counts,
                    interrupts: locked(machine).interrupt_counts(),
                })
                .collect(),
        }
    }

    /// The devices of virtual machines by name, and what the card consists of, in the order in which
    /// [spans](Host::spans) number them behind the cores.
    pub fn devices(&self) -> Vec<String> {
        let named = |machine: &Arc<Mutex<VirtualMachine>>| {
            let owner = locked(machine).name().to_owned();
            DeviceKind::ALL.map(|device| format!("{} of {owner}", device.name()))
        };
        let card = self.sidecores.card().map_or_else(Vec::new, Card::tracks);
        self.machines.iter().flat_map(named).chain(card).collect()
    }

    /// What became of each frame: the number that tells it from others, and a span for each step, in the order in which
    /// they began; empty unless recording was asked for.
    pub fn steps(&self) -> Vec<(u64, Span)> {
        let Some(card) = self.sidecores.card() else {
            return Vec::new();
        };
        let first = self.config.cores + self.machines.len() * DeviceKind::ALL.len();
        let (recorded, end) = (card.steps(), self.recording_ended());
        let events = recorded.iter().flat_map(|steps| steps.events());
        let kept = events.filter(|step| end.is_none_or(|end| step.start < end));
        let steps = kept.map(|step| {
            let core = match card.track(step.place) {
                Ok(track) => first + track,
                Err(sidecore) => self.config.cores - 1 - sidecore,
            };
            let span = Span {
                core,
                name: step.name.to_owned(),
                start: step.start,
                cycles: step.cycles,
            };
            (step.frame, span)
        });
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|(frame, span)| (span.start, *frame));
        steps
    }

    /// From when on nothing is recorded any more, if there was more than is kept.
    pub fn recording_ended(&self) -> Option<Cycle> {
        let services = self.sidecores.services();
        let steps = self.sidecores.card().and_then(Card::steps);
        let ends = [
            self.spans.ended(),
            services.and_then(|services| services.ended()),
            steps.and_then(|steps| steps.ended()),
        ];
        ends.into_iter().flatten().min()
    }

    /// Who was on which core, which services ran, and what devices did; empty unless recording was asked for.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        // Epochs of one virtual processor on one core follow each other: one span.
        let mut open: Vec<Option<usize>> = vec![None; self.config.cores];
        let end = self.recording_ended();
        let is_kept = |start: Cycle| end.is_none_or(|end| start < end);
        for span in self.spans.events().iter().filter(|span| is_kept(span.start)) {
            let before = open[span.core].map(|at| &mut spans[at]);
            match before {
                Some(before) if before.name == span.name && before.start + before.cycles == span.start => {
                    before.cycles += span.cycles;
                }
                _ => {
                    open[span.core] = Some(spans.len());
                    spans.push(span.clone());
                }
            }
        }
        let services = self.sidecores.services();
        let services = services.iter().flat_map(|services| services.events());
        spans.extend(
            services
                .filter(|service| is_kept(service.start))
                .map(|service| Span {
                    core: match service.worker {
                        Worker::Core(core) => self.config.cores - 1 - core,
                        Worker::Device(device) => {
                            self.config.cores + service.machine * DeviceKind::ALL.len() + device as usize
                        }
                    },
                    name: format!(
                        "{} for {}",
                        kind_name(service.kind),
                        locked(&self.machines[service.machine]).name()
                    ),
                    start: service.start,
                    cycles: service.cycles,
                }),
        );
        spans
    }
}
