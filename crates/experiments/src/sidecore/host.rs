//! Figure 1 on the machine at hand: a KVM guest that is left, and one whose requests a core serves.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sidestep_hypervisor::calibration::{Calibration, Options, Quantity, allowed_cores};
use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Nature, Number,
    Point, PointError, Side,
};
use sidestep_sidecall::line::Request;
use sidestep_sidecall::sidecore::{Sidecore, pin};
use sidestep_sidecall_kvm::devices::Devices;
use sidestep_sidecall_kvm::guest::Way;
use sidestep_sidecall_kvm::kind::{Kind, picoseconds};
use sidestep_sidecall_kvm::layout::{FRAMES, PAGE_BYTES, WINDOW_PAGES, order, page};
use sidestep_sidecall_kvm::machine::{Guest, Order};
use sidestep_sidecall_kvm::notified::Notified;
use sidestep_sidecall_kvm::operation::Operation;
use sidestep_sidecall_kvm::program::{Interrupt, StartError, ZeroWaitSidecore};
use sidestep_sidecall_kvm::service::{GuestService, serve};

use super::unavailable;
use crate::failed;
use crate::zerowait::processor_ns;

/// Requests of a sample: more than a look at the clock costs.
const BATCH: u64 = 16;
/// Samples of a round: as many requests as the window has pages.
const SAMPLES: usize = WINDOW_PAGES / BATCH as usize;
/// Bytes of a packet: as Ethernet has it.
const PACKET: u64 = 1500;
/// Changes of a page that was seen before, in a round.
const CHANGES: u64 = 64;
/// An entry of the window for the first page that it may show: present, writable, for users.
const MAPPED: u64 = (page::FRAMES * PAGE_BYTES) as u64 | 0b111;
/// How long a guest asks for nothing, how often; and how many looks in vain a sidecore makes before it sleeps.
const REST: Duration = Duration::from_millis(50);
const RESTS: usize = 5;
const LOOKS: u64 = 1 << 13;
/// Samples of each quantity that predicts.
const CALIBRATION_SAMPLES: usize = 20;
/// Cache lines that pass between the cores, as the model of sidecalls has it: the request's and the answer's.
const TRANSFERS: u64 = 2;

/// Latency of a null call, identification and a page table update.
pub struct Host;

impl Experiment for Host {
    fn about(&self) -> About {
        About {
            name: "sidecore.host",
            question: "What does a call of the monitor cost on this machine, by leaving the guest and by sidecall?",
            source: "Kumar et al., The Sidecore Approach, section II, Figure 1, on a real host",
            setting: "A guest of KVM on one core, its sidecore on another. `null` does nothing, `identification` \
                      returns a word, `map` creates an entry in a page table of the guest, `change` and `unmap` alter \
                      one that the guest has used and flush what it showed. `block` reads 4 kB of a file in the page \
                      cache, `packet` sends 1500 bytes to a socket of the host. One function serves the \
                      monitor's five on both sides; the devices' two are a system call by exit, and zero-wait threads \
                      with io_uring on the sidecore. The guest measures with its time-stamp counter.",
            baseline: "each request leaves the guest for this program",
            sidestep: "each request goes through memory to a sidecore that polls",
            metric: Metric::lower("time a call", "ns"),
            nature: Nature::Measured,
            takes: (Duration::from_secs(10), Duration::from_secs(30)),
            reading: "Medians of the samples of all rounds, the sides in turns; the interval holds the median with \
                      95 % confidence. Where the guest's loop takes many times the host's, KVM emulates the guest and \
                      no other number means anything. A KVM that is itself nested makes exits dearer than hardware \
                      does. Builds and other programs on the two cores disturb the sidecall more than the exit.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices(
                "operation",
                &[
                    "null",
                    "identification",
                    "map",
                    "change",
                    "unmap",
                    "block",
                    "packet",
                ],
            )
            .about("what is asked for")
            .source("Sidecore II, Figure 1")
            .axis(),
            Input::integer("rounds", 20)
                .between(1, 1000)
                .quick("5")
                .about("how often each side makes 512 calls, or 64 changes, in turns")
                .source("chosen: enough for a narrow interval"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&["operation"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let operation = match point.value("operation").to_string().as_str() {
            "null" => Operation::Null,
            "identification" => Operation::Identify,
            "change" => Operation::Change,
            "unmap" => Operation::Unmap,
            "block" => Operation::Read,
            "packet" => Operation::Send,
            _ => Operation::Map,
        };
        let rounds = inputs.count("rounds");
        // A thread of its own is pinned, so that the caller may run where it could before.
        std::thread::scope(|scope| {
            let measured = scope.spawn(|| measure(operation, rounds, context)).join();
            measured.unwrap_or_else(|_| Err(PointError::Panicked("the guest's thread".to_owned())))
        })
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Latency of calls on this machine (Figure 1)",
            Axis::new("operation", "operation", ""),
            Measure::Value,
            "time a call",
            "ns",
        )]
    }
}

fn measure(operation: Operation, rounds: u64, context: &Context) -> Result<Measurement, PointError> {
    let cores = allowed_cores().map_err(unavailable)?;
    let &[own, other, ..] = cores.as_slice() else {
        let reason = "a sidecore needs a second core, and this process may use one";
        return Err(PointError::Unavailable(reason.to_owned()));
    };
    let mut guest = Guest::new().map_err(unavailable)?;
    let options = Options {
        samples: CALIBRATION_SAMPLES,
        cores: (own, other),
    };
    let calibration = Calibration::measure(&options, |_| ()).map_err(unavailable)?;
    pin(own).map_err(unavailable)?;
    let kind = Kind::of(&mut guest).map_err(unavailable)?;

    let event = guest.notification().map_err(unavailable)?;
    let (mut interrupted, interrupt) = Guest::interrupt().map_err(unavailable)?;
    let is_device = is_device(operation);
    let host = HostDevices::new().map_err(unavailable)?;
    guest.attach(&host.devices);
    let start = |server: Server, way: Way, guest: &Guest| -> Result<Serving, StartError> {
        let caller = GuestService::new(guest.memory(), 0);
        let is_posted = way == Way::Posted;
        Ok(match server {
            Server::Nobody => Serving::Nobody,
            Server::Sidecore if is_posted => {
                let service = caller.interrupting(interrupt.try_clone()?);
                Serving::Sidecore(Sidecore::start(Some(other), vec![service], u64::MAX)?)
            }
            Server::Sidecore => Serving::Sidecore(Sidecore::start(Some(other), vec![caller], u64::MAX)?),
            Server::ZeroWait => {
                let interrupt = interrupt.try_clone()?;
                let posts = is_posted.then(|| {
                    // It fails where its count is full only, and then the guest has not taken the last one.
                    Box::new(move || drop(interrupt.write(1))) as Interrupt
                });
                let sidecore = ZeroWaitSidecore::start(other, guest.memory(), &host.devices, posts)?;
                Serving::ZeroWait(sidecore)
            }
            Server::Notified => {
                let callers = vec![caller.with_devices(&host.devices)];
                Serving::Notified(Notified::start(other, event.try_clone()?, callers)?)
            }
        })
    };
    let sidecore = if is_device {
        Server::ZeroWait
    } else {
        Server::Sidecore
    };
    let mut exit = Calls::new(Way::Exit, Server::Nobody);
    let mut notified = Calls::new(Way::Notify, Server::Notified);
    let mut posted = Calls::new(Way::Posted, sidecore);
    let mut sidecall = Calls::new(Way::Sidecall, sidecore);
    let mut zero_wait = Calls::new(Way::Sidecall, Server::ZeroWait);
    let mut hypercall = Calls::new(kind.hypercall, Server::Nobody);
    for round in 0..=rounds {
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
        let counts = round != 0;
        for calls in [&mut exit, &mut sidecall, &mut hypercall, &mut notified] {
            calls.round(&mut guest, operation, start, counts)?;
        }
        if !is_device {
            zero_wait.round(&mut guest, operation, start, counts)?;
        }
        posted.round(&mut interrupted, operation, start, counts)?;
    }
    let work = host.work_ps(operation, &guest);
    // Who waits for nobody serves no device, and sleeps and is woken the same.
    let rested = if is_device { Operation::Null } else { operation };
    let rest = Rest::of(&mut guest, rested, other, &kind, context)?;
    let predicted = |quantity, times: u64| {
        let median = calibration.get(quantity)?.median;
        Some(Number::ratio(median * times + work, 1000))
    };
    let mut baseline = exit.side(&kind);
    if let Some(time) = predicted(Quantity::GuestToProgram, 1) {
        baseline = baseline.counter("predicted", time, "ns");
    }
    if let Some(time) = hypercall.median(&kind) {
        baseline = baseline.counter("hypercall that the kernel answers", time, "ns");
    }
    if let Some(time) = notified.median(&kind) {
        baseline = baseline.counter("eventfd that wakes a thread", time, "ns");
    }
    baseline = baseline
        .counter("guest's loop", Number::ratio(kind.guest_ps, 1000), "ns")
        .counter("the program's loop", Number::ratio(kind.host_ps, 1000), "ns")
        .count("runs by itself", i64::from(kind.is_native()))
        .count("host is virtual", i64::from(kind.is_nested));
    let mut sidestep = sidecall.side(&kind);
    if let Some(time) = predicted(Quantity::Transfer, TRANSFERS) {
        sidestep = sidestep.counter("predicted", time, "ns");
    }
    if let Some(time) = zero_wait.median(&kind) {
        sidestep = sidestep.counter("by zero-wait threads", time, "ns");
    }
    if let Some(time) = posted.median(&kind) {
        sidestep = sidestep.counter("answer posted by an interrupt", time, "ns");
    }
    sidestep = sidestep
        .counter("core time of the sidecore while nobody calls", rest.share, "%")
        .counter("first call after it slept", rest.first, "ns");
    Ok(Measurement::new(baseline, sidestep))
}

/// What a sidecore takes that sleeps while its guest asks for nothing.
struct Rest {
    /// Of a core, in percent.
    share: Number,
    /// The median of calls that had to wake it, in nanoseconds.
    first: Number,
}

impl Rest {
    fn of(
        guest: &mut Guest,
        operation: Operation,
        core: usize,
        kind: &Kind,
        context: &Context,
    ) -> Result<Rest, PointError> {
        let callers = vec![GuestService::new(guest.memory(), 0)];
        let sidecore = Sidecore::start(Some(core), callers, LOOKS).map_err(unavailable)?;
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..RESTS {
            if context.cancelled() {
                return Err(PointError::Cancelled);
            }
            std::thread::sleep(REST);
            prepare(guest, operation, 1)?;
            let called = guest.run(Order::one(Way::Sidecall, operation));
            let called = called.map_err(failed)?;
            times.push(picoseconds(called.ticks[0], kind.tick_ps));
        }
        let elapsed = start.elapsed().as_nanos() as u64;
        let processor_ns = sidecore.end().processor_ns;
        times.sort_unstable();
        Ok(Rest {
            share: Number::ratio(100 * processor_ns, elapsed),
            first: Number::ratio(times[times.len() / 2], 1000),
        })
    }
}

/// Whether a device is asked, not the monitor.
fn is_device(operation: Operation) -> bool {
    matches!(operation, Operation::Read | Operation::Send)
}

/// Disk and network of the guest.
struct HostDevices {
    devices: Arc<Devices>,
    /// Whom packets go to: held, so that somebody is there. What it has no room for, the kernel drops.
    _receiver: UdpSocket,
}

impl HostDevices {
    fn new() -> std::io::Result<Self> {
        let (devices, receiver) = Devices::temporary(WINDOW_PAGES as u64)?;
        Ok(Self {
            devices: Arc::new(devices),
            _receiver: receiver,
        })
    }

    /// Picoseconds that a device's operation takes this program by itself; 0 for the monitor's, which are a part of a
    /// call.
    fn work_ps(&self, operation: Operation, guest: &Guest) -> u64 {
        if !is_device(operation) {
            return 0;
        }
        let order = ordered(Way::Exit, operation);
        let mut times: Vec<u64> = (0..SAMPLES)
            .map(|sample| {
                let start = Instant::now();
                for request in 0..BATCH {
                    let request = Request {
                        sequence: 0,
                        operation: operation as u64,
                        first: order.page + order.step * (sample as u64 * BATCH + request),
                        second: order.frame,
                    };
                    serve(&request, guest.memory(), Some(&self.devices));
                }
                start.elapsed().as_nanos() as u64 * 1000 / BATCH
            })
            .collect();
        times.sort_unstable();
        times[SAMPLES / 2]
    }
}

/// Who serves meanwhile.
#[derive(Clone, Copy)]
enum Server {
    /// The program that the guest is left for, or the kernel.
    Nobody,
    Sidecore,
    ZeroWait,
    Notified,
}

#[expect(dead_code, reason = "held for as long as it serves")]
enum Serving {
    Nobody,
    Sidecore(Sidecore<GuestService>),
    ZeroWait(ZeroWaitSidecore),
    Notified(Notified),
}

/// So many requests as a round has of those that need no preparation: for page after page of the window or block after
/// block, or for packets.
fn ordered(way: Way, operation: Operation) -> Order {
    let (page, step) = match operation {
        Operation::Send => (PACKET, 0),
        _ => (0, 1),
    };
    Order {
        page,
        step,
        batch: BATCH,
        samples: SAMPLES,
        ..Order::one(way, operation)
    }
}

/// Makes pages of the window as the operation needs them: not mapped to be mapped; to be changed or unmapped, mapped
/// and used, so that there is something to flush.
fn prepare(guest: &mut Guest, operation: Operation, pages: usize) -> Result<(), PointError> {
    let alters = matches!(operation, Operation::Change | Operation::Unmap);
    for index in 0..pages {
        guest
            .memory()
            .store(page::WINDOW, index, if alters { MAPPED } else { 0 });
    }
    if alters {
        let touch = Order {
            after: order::TOUCH,
            ..Order::one(Way::Count, Operation::Null)
        };
        guest.run(touch).map_err(failed)?;
    }
    Ok(())
}

/// The calls of one way.
struct Calls {
    way: Way,
    server: Server,
    /// Of each sample.
    ticks: Vec<u64>,
    /// Calls in a sample.
    batch: u64,
    processor_ns: u64,
    calls: u64,
}

impl Calls {
    fn new(way: Way, server: Server) -> Self {
        Self {
            way,
            server,
            ticks: Vec::new(),
            batch: 1,
            processor_ns: 0,
            calls: 0,
        }
    }

    /// As many calls as a round has; who serves them is there for as long as they take.
    fn round(
        &mut self,
        guest: &mut Guest,
        operation: Operation,
        start: impl Fn(Server, Way, &Guest) -> Result<Serving, StartError>,
        counts: bool,
    ) -> Result<(), PointError> {
        let alters = matches!(operation, Operation::Change | Operation::Unmap);
        // A guest takes one interrupt an order.
        let is_single = alters || self.way == Way::Posted;
        let (orders, order) = match is_single {
            true if alters => {
                let frame = FRAMES.start as u64 + 1;
                let order = Order::one(self.way, operation);
                (CHANGES, Order { frame, ..order })
            }
            true => {
                let order = ordered(self.way, operation);
                let (batch, samples) = (1, 1);
                (
                    CHANGES,
                    Order {
                        batch,
                        samples,
                        ..order
                    },
                )
            }
            false => (1, ordered(self.way, operation)),
        };
        self.batch = order.batch;
        let serving = start(self.server, self.way, guest).map_err(unavailable)?;
        for _ in 0..orders {
            prepare(guest, operation, if is_single { 1 } else { WINDOW_PAGES })?;
            let before = processor_ns();
            let outcome = guest.run(order).map_err(failed)?;
            let processor_ns = processor_ns() - before;
            if outcome.refused != 0 {
                return Err(failed(format!("{} requests were refused", outcome.refused)));
            }
            if counts {
                self.ticks.extend(outcome.ticks);
                self.processor_ns += processor_ns;
                self.calls += order.batch * order.samples as u64;
            }
        }
        drop(serving);
        Ok(())
    }

    /// The call of a rank among the samples that are in order.
    fn time(&self, rank: usize, kind: &Kind) -> Option<Number> {
        let mut ticks = self.ticks.clone();
        ticks.sort_unstable();
        let time = picoseconds(*ticks.get(rank)?, kind.tick_ps);
        Some(Number::ratio(time, 1000 * self.batch))
    }

    fn median(&self, kind: &Kind) -> Option<Number> {
        self.time(self.ticks.len() / 2, kind)
    }

    fn side(&self, kind: &Kind) -> Side {
        let count = self.ticks.len();
        // Ranks between which the median is with 95 % confidence, whatever the distribution.
        let reach = ((count * 9604 / 10_000).isqrt() + 1).min(count / 2);
        let mut side = self.median(kind).map_or_else(Side::absent, Side::new);
        for (name, rank) in [
            ("interval from", count / 2 - reach),
            ("interval to", count / 2 + reach),
        ] {
            if let Some(time) = self.time(rank.min(count.saturating_sub(1)), kind) {
                side = side.counter(name, time, "ns");
            }
        }
        // Of a call alone the clock of core time says nothing: the kernel brings it up to date now and then.
        if self.batch == 1 {
            return side;
        }
        side.counter(
            "core time a call",
            Number::ratio(self.processor_ns, self.calls.max(1)),
            "ns",
        )
    }
}
