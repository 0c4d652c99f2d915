//! The sidecore of a guest with devices, as a program of zero-wait threads on a pinned core.
//!
//! Each processor of the guest has a continuation of the thread `look`, which continues to itself until its processor
//! has asked for something. What the monitor does, it does there. For a block or a packet it hands the kernel the
//! operation and ends; `done` answers when that has come to its end, and continues to `look`. So nobody waits: the
//! core serves the other processors, and a processor that has asked is not looked at until it has its answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sidestep_sidecall::sidecore::pin;
use sidestep_zerowait::cores::{Config, Cores, Devices as Interface, IdlePolicy, Shutdown};
use sidestep_zerowait::device::{self, Completion, Descriptor};
use sidestep_zerowait::{Attributes, Context, Edge, Graph, GraphError, Mode, Port};

use crate::devices::{Devices, Transfer};
use crate::layout::{PAGE_BYTES, PROCESSORS_MAX};
use crate::memory::GuestMemory;
use crate::operation::Status;
use crate::service::{Asked, answer, ask};

/// What is done with each answer beside writing it.
pub type Interrupt = Box<dyn Fn() + Send + Sync>;

/// Why there is no such sidecore.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The host gives no thread, no core or no descriptor.
    #[error("the host refuses a thread, its core or a descriptor")]
    Host(#[from] io::Error),
    /// The program is not one.
    #[error("the program of the sidecore: {0}")]
    Graph(#[from] GraphError),
    /// The core does not start.
    #[error("the core of the sidecore: {0}")]
    Core(#[from] sidestep_zerowait::cores::StartError),
}

/// A core that serves one guest until it is dropped.
pub struct ZeroWaitSidecore {
    cores: Option<Cores>,
    descriptors: [Descriptor; 2],
}

impl ZeroWaitSidecore {
    /// Serves the processors of the guest with this memory, on `core`. `interrupt` is called after each answer.
    ///
    /// # Errors
    /// When there can be no thread, or not on that core.
    pub fn start(
        core: usize,
        memory: &Arc<GuestMemory>,
        devices: &Arc<Devices>,
        interrupt: Option<Interrupt>,
    ) -> Result<Self, StartError> {
        let descriptors = devices.descriptors()?.map(Descriptor::from);
        let [disk, network] = descriptors;
        let services = Arc::new(Services {
            memory: Arc::clone(memory),
            devices: Arc::clone(devices),
            disk,
            network,
            interrupt,
            under_way: Default::default(),
        });
        // Whatever fails from here on, the descriptors are closed.
        let mut sidecore = Self {
            cores: None,
            descriptors,
        };
        let mut graph = Graph::new();
        let look = services.draw(&mut graph)?;
        let program = graph.build()?;
        let config = Config {
            cores: 1,
            cores_max: 1,
            devices: Interface::Automatic,
            // It is there to poll.
            idle: IdlePolicy {
                sleep: false,
                ..IdlePolicy::SHARED
            },
            operations: PROCESSORS_MAX,
            buffers: PROCESSORS_MAX,
            buffer_size: PAGE_BYTES,
            ..Config::default()
        };
        // An executor takes the cores that its starter may use, in order: here the one.
        let starter = thread::spawn(move || {
            pin(core)?;
            Ok::<_, StartError>(Cores::start(program, config)?)
        });
        let started = starter.join();
        let cores =
            started.unwrap_or_else(|_| Err(io::Error::other("the starting thread has panicked").into()))?;
        for processor in 0..PROCESSORS_MAX {
            let answered = memory.line(processor).answered();
            let sent = cores.send(look, (processor as u64, answered));
            assert!(sent.is_ok(), "an inbox has room for each processor");
        }
        sidecore.cores = Some(cores);
        Ok(sidecore)
    }
}

impl Drop for ZeroWaitSidecore {
    fn drop(&mut self) {
        if let Some(cores) = self.cores.take() {
            // Threads that panicked have been reported.
            cores.shutdown(Shutdown::Now);
        }
        for descriptor in self.descriptors {
            // SAFETY: it was opened for this alone. The program with the other copies is gone, and the operations on it
            // have ended with the core that had them.
            drop(unsafe { descriptor.into_owned() });
        }
    }
}

/// What the threads share.
struct Services {
    memory: Arc<GuestMemory>,
    devices: Arc<Devices>,
    disk: Descriptor,
    network: Descriptor,
    interrupt: Option<Interrupt>,
    /// The request of each processor that a device has. All threads are on one core.
    under_way: [AtomicU64; PROCESSORS_MAX],
}

impl Services {
    /// Draws the program; `look` takes a processor's number and that of its request that was answered last.
    fn draw(self: Arc<Self>, graph: &mut Graph) -> Result<Port<(u64, u64)>, GraphError> {
        let attributes = Attributes::new(Mode::Kernel).on_core(0);
        let look = graph.declare::<(u64, u64)>("look", attributes);
        let done = graph.declare::<Completion>("done", attributes);
        let (again, begun, next) = (
            graph.edge(look, look)?,
            graph.edge(look, done)?,
            graph.edge(done, look)?,
        );
        let looks = Arc::clone(&self);
        graph.define(look, move |cx, (processor, answered)| {
            if let Some(answered) = looks.look(cx, begun, processor, answered) {
                cx.continue_to(again, (processor, answered));
            }
        });
        graph.define(done, move |cx, completion| {
            let answered = self.done(cx, completion);
            cx.continue_to(next, answered);
        });
        Ok(graph.port(look))
    }

    /// Looks whether a processor has asked for something. The number of its request that was answered last; `None`
    /// while a device has one.
    fn look(
        &self,
        cx: &mut Context<'_>,
        begun: Edge<Completion>,
        processor: u64,
        answered: u64,
    ) -> Option<u64> {
        let line = self.memory.line(processor as usize);
        let sequence = line.announced();
        if sequence == answered {
            return Some(answered);
        }
        let asked = ask(&line.copy(sequence), &self.memory, Some(&self.devices));
        let result = asked.and_then(|asked| match asked {
            Asked::Monitor(value) => Ok(Some(value)),
            Asked::Device(_, transfer) => {
                self.begin(cx, begun, processor, transfer)?;
                self.under_way[processor as usize].store(sequence, Ordering::Relaxed);
                Ok(None)
            }
        });
        let result = result.transpose()?;
        self.answer(processor, sequence, result);
        Some(sequence)
    }

    /// Hands a device what it shall do.
    fn begin(
        &self,
        cx: &mut Context<'_>,
        begun: Edge<Completion>,
        processor: u64,
        transfer: Transfer,
    ) -> Result<(), Status> {
        let mut buffer = cx.take_buffer().expect("a buffer for each processor");
        let (operation, frame) = match transfer {
            Transfer::Read { offset, frame } => {
                let read = device::Operation::Read {
                    file: self.disk,
                    offset,
                    buffer,
                    length: PAGE_BYTES as u32,
                };
                (read, frame)
            }
            Transfer::Send { length, frame } => {
                self.memory
                    .read_page(frame, &mut cx.buffer(&mut buffer)[..length]);
                let send = device::Operation::Send {
                    socket: self.network,
                    buffer,
                    start: 0,
                    length: length as u32,
                };
                (send, frame)
            }
        };
        let token = processor | (frame as u64) << 32;
        let submitted = cx.submit(begun, operation, token);
        submitted.map_err(|refused| {
            let (device::Operation::Read { buffer, .. } | device::Operation::Send { buffer, .. }) =
                refused.value
            else {
                unreachable!("what was submitted comes back");
            };
            cx.return_buffer(buffer);
            Status::Failed
        })
    }

    /// A device has done what it was handed: the processor, and the number of its request, which is answered now.
    fn done(&self, cx: &mut Context<'_>, completion: Completion) -> (u64, u64) {
        let (processor, frame) = (completion.token & 0xffff_ffff, (completion.token >> 32) as usize);
        let result = completion.result();
        let mut buffer = completion.buffer.expect("each transfer has a buffer");
        let result = match result {
            Ok(PAGE_BYTES) if completion.descriptor == self.disk => {
                let bytes = cx.buffer(&mut buffer);
                let page = bytes.first_chunk().expect("a buffer is a page");
                self.memory.write_page(frame, page);
                Ok(PAGE_BYTES as u64)
            }
            Ok(sent) if completion.descriptor == self.network => Ok(sent as u64),
            // The file has become shorter, or the host refuses.
            _ => Err(Status::Failed),
        };
        cx.return_buffer(buffer);
        let sequence = self.under_way[processor as usize].load(Ordering::Relaxed);
        self.answer(processor, sequence, result);
        (processor, sequence)
    }

    fn answer(&self, processor: u64, sequence: u64, result: Result<u64, Status>) {
        self.memory
            .line(processor as usize)
            .answer(sequence, answer(result));
        if let Some(interrupt) = &self.interrupt {
            interrupt();
        }
    }
}
