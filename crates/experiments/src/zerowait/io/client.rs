//! The client: many connections on one thread, requests at their times, latencies from when they were due.
//!
//! It sleeps until an answer comes or a request is due, so that it takes no more of the host than the load costs: a
//! client that looked at the clock all the time would itself be what a service past saturation has to share with.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use sidestep_lab::{Number, PointError};
use sidestep_zerowait::Histogram;

use super::super::stopwatch::processor_ns;
use super::service::{Kind, REQUEST, Service, Start};

/// What the client does.
pub struct Load {
    /// How many connections are open.
    pub connections: usize,
    /// Requests offered each second, 0 for as many as are answered.
    pub offered: u64,
    /// How long it measures.
    pub time: Duration,
}

/// What the client saw.
#[derive(Default)]
pub struct Outcome {
    answered: u64,
    offered: u64,
    wall_ns: u64,
    service_ns: u64,
    /// Nanoseconds from when each answered request was due to its answer.
    pub latency: Histogram,
}

impl Outcome {
    /// Requests answered each second.
    pub fn per_second(&self) -> Number {
        Number::ratio(
            u128_of(self.answered) * 1_000_000_000,
            u128_of(self.wall_ns.max(1)),
        )
    }

    /// Requests that were due each second.
    pub fn offered_per_second(&self) -> Number {
        Number::ratio(
            u128_of(self.offered) * 1_000_000_000,
            u128_of(self.wall_ns.max(1)),
        )
    }

    /// Processor time of everything but the client, for each request answered.
    pub fn service_per_request(&self) -> Number {
        Number::ratio(self.service_ns, self.answered.max(1))
    }
}

fn u128_of(value: u64) -> i128 {
    i128::from(value)
}

/// The longest sleep of the client.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The longest wait for answers that are under way at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts the service, offers it the load, and ends it.
pub fn measure(start: Start, service: &Service, load: &Load) -> Result<Outcome, PointError> {
    let failed = |error: std::io::Error| PointError::Failed(format!("client: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let end = start(service.clone(), listener, load.connections).map_err(PointError::Failed)?;
    let mut client = Client::new(service.kind, load).map_err(failed)?;
    for _ in 0..load.connections {
        let stream = TcpStream::connect(address).map_err(failed)?;
        client.add(stream).map_err(failed)?;
    }
    // Else the kernel lets each sleep last 50 us longer, so as to wake up less often.
    let slack = set_current_timer_slack(NonZeroU64::new(1));
    slack.map_err(|error| failed(error.into()))?;
    let outcome = client.run(load).map_err(failed)?;
    set_current_timer_slack(None).map_err(|error| failed(error.into()))?;
    drop(client);
    end().map_err(PointError::Failed)?;
    Ok(outcome)
}

struct Client {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    answer: usize,
    buffer: Vec<u8>,
    kind: Kind,
    sent: u64,
    /// How many connections wait for an answer.
    under_way: usize,
}

struct Connection {
    stream: TcpStream,
    /// When the request under way was due, and how many bytes of its answer are missing.
    under_way: Option<(Instant, usize)>,
    /// The first byte that the answer must have.
    expected: u8,
    /// When requests were due that wait for the connection.
    due: VecDeque<Instant>,
}

impl Client {
    fn new(kind: Kind, load: &Load) -> std::io::Result<Client> {
        Ok(Client {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::with_capacity(load.connections),
            answer: kind.answer(),
            buffer: vec![0; 1 << 16],
            kind,
            sent: 0,
            under_way: 0,
        })
    }

    fn add(&mut self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let data = epoll::EventData::new_u64(self.connections.len() as u64);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)?;
        self.connections.push(Connection {
            stream,
            under_way: None,
            expected: 0,
            due: VecDeque::new(),
        });
        Ok(())
    }

    /// Offers the load for its time, a fifth of it to warm up.
    fn run(&mut self, load: &Load) -> std::io::Result<Outcome> {
        let begun = Instant::now();
        let measured_from = begun + load.time / 5;
        let until = measured_from + load.time;
        let mut outcome = Outcome::default();
        let mut marks = None;
        let mut scheduled = 0u64;
        let mut events = Vec::with_capacity(1024);
        if load.offered == 0 {
            (0..self.connections.len()).try_for_each(|index| self.send(index, begun))?;
        }
        loop {
            let mut now = Instant::now();
            if now >= until {
                break;
            }
            if now >= measured_from && marks.is_none() {
                marks = Some((now, processor_ns(), thread_ns()));
            }
            let measuring = marks.is_some();
            if load.offered > 0 {
                while due_at(begun, load.offered, scheduled) <= now {
                    let due = due_at(begun, load.offered, scheduled);
                    self.schedule(scheduled as usize % load.connections, due)?;
                    scheduled += 1;
                    outcome.offered += u64::from(measuring);
                }
                now = Instant::now();
            }
            // Where every connection waits for an answer, what becomes due has to wait too.
            let sleep = match load.offered > 0 && self.under_way < self.connections.len() {
                true => due_at(begun, load.offered, scheduled).saturating_duration_since(now),
                false => LOOK_EVERY,
            };
            self.look(&mut events, sleep.min(LOOK_EVERY))?;
            for event in events.drain(..) {
                let index = event.data.u64() as usize;
                let Some(due) = self.receive(index)? else { continue };
                let now = Instant::now();
                if measuring {
                    outcome.answered += 1;
                    outcome.latency.record((now - due).as_nanos() as u64);
                }
                match self.connections[index].due.pop_front() {
                    Some(due) => self.send(index, due)?,
                    None if load.offered == 0 => {
                        self.send(index, now)?;
                        outcome.offered += u64::from(measuring);
                    }
                    None => {}
                }
            }
        }
        if let Some((from, processor, thread)) = marks {
            outcome.wall_ns = from.elapsed().as_nanos() as u64;
            outcome.service_ns = (processor_ns() - processor).saturating_sub(thread_ns() - thread);
        }
        self.settle(&mut events)?;
        Ok(outcome)
    }

    /// A request is due on a connection: sends it, or lets it wait.
    fn schedule(&mut self, index: usize, due: Instant) -> std::io::Result<()> {
        if self.connections[index].under_way.is_some() {
            self.connections[index].due.push_back(due);
            return Ok(());
        }
        self.send(index, due)
    }

    fn send(&mut self, index: usize, due: Instant) -> std::io::Result<()> {
        self.sent += 1;
        self.under_way += 1;
        let mut request = [0; REQUEST];
        request[..8].copy_from_slice(&self.sent.to_le_bytes());
        let connection = &mut self.connections[index];
        connection.expected = self.sent as u8;
        connection.under_way = Some((due, self.answer));
        // One request at a time: it always fits the socket's buffer.
        connection.stream.write_all(&request)
    }

    fn look(&self, events: &mut Vec<epoll::Event>, at_most: Duration) -> std::io::Result<()> {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            Some(&timeout),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has arrived on a connection; when its request was due, if the answer is whole.
    fn receive(&mut self, index: usize) -> std::io::Result<Option<Instant>> {
        let connection = &mut self.connections[index];
        let Some((due, missing)) = connection.under_way else {
            return Ok(None);
        };
        let count = match connection.stream.read(&mut self.buffer[..missing]) {
            Ok(0) => {
                return Err(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the service closed a connection",
                ));
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        if missing == self.answer && self.buffer[0] != connection.expected {
            let what = format!(
                "a wrong answer of the {:?} service: {}",
                self.kind, self.buffer[0]
            );
            return Err(std::io::Error::new(ErrorKind::InvalidData, what));
        }
        connection.under_way = (count < missing).then_some((due, missing - count));
        if count < missing {
            return Ok(None);
        }
        self.under_way -= 1;
        Ok(Some(due))
    }

    /// Waits for the answers that are under way, so that no service is closed upon while it sends.
    fn settle(&mut self, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while self
            .connections
            .iter()
            .any(|connection| connection.under_way.is_some())
        {
            if Instant::now() > until {
                return Err(std::io::Error::new(
                    ErrorKind::TimedOut,
                    "the service does not answer",
                ));
            }
            self.look(events, LOOK_EVERY)?;
            for event in events.drain(..) {
                self.receive(event.data.u64() as usize)?;
            }
        }
        Ok(())
    }
}

/// When the request of this number is due, at so many a second.
fn due_at(begun: Instant, offered: u64, number: u64) -> Instant {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(offered);
    begun + Duration::from_nanos(nanos as u64)
}

/// Nanoseconds that a processor has spent on the calling thread.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
