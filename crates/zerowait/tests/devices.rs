//! Sockets, files, eventfds and cancellation, through io_uring and through its fallback.

#![cfg(not(miri))]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidestep_zerowait::cores::{Config, Cores, Devices, Shutdown, StartError};
use sidestep_zerowait::device::{Completion, Descriptor, Operation};
use sidestep_zerowait::{Graph, Mode, Program, Reason, Report};

const AMPLE: Shutdown = Shutdown::Drain {
    at_most: Duration::from_secs(60),
};

/// Both interfaces, or only the fallback where io_uring is not permitted, which counts as left out.
fn interfaces() -> Vec<Devices> {
    let mut graph = Graph::new();
    let idle = graph.declare::<()>("idle", Mode::User);
    graph.define(idle, |_, ()| {});
    match start(graph.build().unwrap(), Devices::IoUring) {
        Ok(_) => vec![Devices::IoUring, Devices::Readiness],
        Err(error) => {
            tests_need::leave_out(&format!("io_uring is not permitted here ({error})"));
            vec![Devices::Readiness]
        }
    }
}

fn start(program: Program, devices: Devices) -> Result<Cores, StartError> {
    let config = Config {
        cores: 2,
        cores_max: 2,
        devices,
        operations: 64,
        buffers: 64,
        ..Config::default()
    };
    Cores::start(program, config)
}

fn well(report: &Report) {
    assert!(report.panics.is_empty(), "{report}");
}

/// Accepts for ever; each connection is received from and answered until it closes.
fn echo(listener: TcpListener) -> (Program, sidestep_zerowait::Port<()>) {
    let mut graph = Graph::new();
    let listen = graph.declare::<()>("listen", Mode::Kernel);
    let accepted = graph.declare::<Completion>("accepted", Mode::Kernel);
    let received = graph.declare::<Completion>("received", Mode::Kernel);
    let sent = graph.declare::<Completion>("sent", Mode::Kernel);
    let closed = graph.declare::<Completion>("closed", Mode::Kernel);
    let listener: Descriptor = listener.into();
    let (on_accept, again) = (
        graph.edge(listen, accepted).unwrap(),
        graph.edge(accepted, accepted).unwrap(),
    );
    let first = graph.edge(accepted, received).unwrap();
    let (on_sent, on_closed) = (
        graph.edge(received, sent).unwrap(),
        graph.edge(received, closed).unwrap(),
    );
    let (rest, next) = (
        graph.edge(sent, sent).unwrap(),
        graph.edge(sent, received).unwrap(),
    );
    graph.define(listen, move |cx, ()| {
        cx.submit(on_accept, Operation::Accept { listener }, 0).unwrap()
    });
    graph.define(accepted, move |cx, completion: Completion| {
        // Cancelled at shutdown.
        let Ok(socket) = completion.accepted() else { return };
        cx.submit(again, Operation::Accept { listener }, 0).unwrap();
        let buffer = cx.take_buffer().unwrap();
        cx.submit(first, Operation::Receive { socket, buffer }, 0)
            .unwrap();
    });
    graph.define(received, move |cx, completion: Completion| {
        let socket = completion.descriptor;
        match completion.result() {
            Ok(length @ 1..) => {
                let buffer = completion.buffer.unwrap();
                let send = Operation::Send {
                    socket,
                    buffer,
                    start: 0,
                    length: length as u32,
                };
                cx.submit(on_sent, send, length as u64).unwrap();
            }
            _ => {
                cx.return_buffer(completion.buffer.unwrap());
                cx.submit(on_closed, Operation::Close { descriptor: socket }, 0)
                    .unwrap();
            }
        }
    });
    graph.define(sent, move |cx, completion: Completion| {
        let (socket, all) = (completion.descriptor, completion.token as u32);
        let count = completion.result().unwrap() as u32;
        let buffer = completion.buffer.unwrap();
        if count < all {
            let send = Operation::Send {
                socket,
                buffer,
                start: count,
                length: all - count,
            };
            cx.submit(rest, send, u64::from(all - count)).unwrap();
        } else {
            cx.submit(next, Operation::Receive { socket, buffer }, 0).unwrap();
        }
    });
    graph.define(closed, |_, completion: Completion| {
        assert!(completion.result().is_ok())
    });
    let start = graph.port(listen);
    (graph.build().unwrap(), start)
}

#[test]
fn an_echo_service_answers_many_connections() {
    for devices in interfaces() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (program, port) = echo(listener);
        let cores = start(program, devices).unwrap();
        cores.send(port, ()).unwrap();
        let mut clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        for round in 0..5u8 {
            for (number, client) in clients.iter_mut().enumerate() {
                client.write_all(&[number as u8, round, 7]).unwrap();
            }
            for (number, client) in clients.iter_mut().enumerate() {
                let mut answer = [0; 3];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(answer, [number as u8, round, 7]);
            }
        }
        drop(clients);
        // The accept stays in flight for ever: it is cancelled and reported.
        let report = cores.shutdown(Shutdown::Drain {
            at_most: Duration::from_millis(300),
        });
        well(&report);
        assert_eq!(report.left.operations, 1, "{devices:?}: {report}");
        assert_eq!(report.left.buffers, 0, "{devices:?}: {report}");
        assert_eq!(report.thread("closed").unwrap().runs, 20, "{devices:?}: {report}");
    }
}

#[test]
fn a_file_is_written_read_back_and_errors_come_as_results() {
    for devices in interfaces() {
        let path = std::env::temp_dir().join(format!("zerowait-{devices:?}-{}", std::process::id()));
        let options = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        let file: Descriptor = options.into();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut graph = Graph::new();
        let begin = graph.declare::<()>("begin", Mode::Kernel);
        let step = graph.declare::<Completion>("step", Mode::Kernel);
        let (first, next) = (graph.edge(begin, step).unwrap(), graph.edge(step, step).unwrap());
        graph.define(begin, move |cx, ()| {
            let mut buffer = cx.take_buffer().unwrap();
            cx.buffer(&mut buffer)[..5].copy_from_slice(b"hello");
            cx.submit(
                first,
                Operation::Write {
                    file,
                    offset: 3,
                    buffer,
                    length: 5,
                },
                0,
            )
            .unwrap();
        });
        let log = Arc::clone(&seen);
        graph.define(step, move |cx, mut completion: Completion| {
            let result = completion.result().map_err(|error| error.kind());
            let note = |what: String| log.lock().unwrap().push(what);
            match completion.token {
                0 => {
                    note(format!("wrote {result:?}"));
                    cx.return_buffer(completion.buffer.unwrap());
                    cx.submit(next, Operation::Synchronise { file }, 1).unwrap();
                }
                1 => {
                    note(format!("synchronised {result:?}"));
                    let buffer = cx.take_buffer().unwrap();
                    cx.submit(
                        next,
                        Operation::Read {
                            file,
                            offset: 0,
                            buffer,
                            length: 100,
                        },
                        2,
                    )
                    .unwrap();
                }
                2 => {
                    let mut buffer = completion.buffer.take().unwrap();
                    note(format!(
                        "read {result:?} {:?}",
                        String::from_utf8_lossy(&cx.buffer(&mut buffer)[..8])
                    ));
                    cx.return_buffer(buffer);
                    cx.submit(next, Operation::Close { descriptor: file }, 3).unwrap();
                }
                3 => {
                    note(format!("closed {result:?}"));
                    let buffer = cx.take_buffer().unwrap();
                    cx.submit(
                        next,
                        Operation::Read {
                            file,
                            offset: 0,
                            buffer,
                            length: 1,
                        },
                        4,
                    )
                    .unwrap();
                }
                _ => {
                    // Another test may have been given the number meanwhile, so only that it answers is
                    // certain.
                    cx.return_buffer(completion.buffer.unwrap());
                }
            }
        });
        let port = graph.port(begin);
        let cores = start(graph.build().unwrap(), devices).unwrap();
        cores.send(port, ()).unwrap();
        let report = cores.shutdown(AMPLE);
        well(&report);
        assert!(
            report.is_drained() && report.left.buffers == 0,
            "{devices:?}: {report}"
        );
        assert_eq!(
            *seen.lock().unwrap(),
            [
                "wrote Ok(5)",
                "synchronised Ok(0)",
                "read Ok(8) \"\\0\\0\\0hello\"",
                "closed Ok(0)"
            ],
            "{devices:?}"
        );
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn an_eventfd_is_a_continuation_also_if_it_does_not_block() {
    use rustix::event::{EventfdFlags, eventfd};
    for devices in interfaces() {
        for flags in [
            EventfdFlags::CLOEXEC,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        ] {
            let ours = eventfd(0, flags).unwrap();
            let event: Descriptor = ours.try_clone().unwrap().into();
            let counts: Arc<Mutex<Vec<usize>>> = Arc::default();
            let mut graph = Graph::new();
            let wait = graph.declare::<()>("wait", Mode::Kernel);
            let rang = graph.declare::<Completion>("rang", Mode::Kernel);
            let (first, next) = (graph.edge(wait, rang).unwrap(), graph.edge(rang, rang).unwrap());
            graph.define(wait, move |cx, ()| {
                cx.submit(first, Operation::Event { event }, 0).unwrap()
            });
            let log = Arc::clone(&counts);
            graph.define(rang, move |cx, completion: Completion| {
                let mut log = log.lock().unwrap();
                log.push(completion.result().unwrap());
                if log.len() < 2 {
                    cx.submit(next, Operation::Event { event }, 0).unwrap();
                }
            });
            let port = graph.port(wait);
            let cores = start(graph.build().unwrap(), devices).unwrap();
            cores.send(port, ()).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            rustix::io::write(&ours, &3u64.to_ne_bytes()).unwrap();
            while counts.lock().unwrap().is_empty() {
                std::thread::yield_now();
            }
            rustix::io::write(&ours, &4u64.to_ne_bytes()).unwrap();
            let report = cores.shutdown(AMPLE);
            well(&report);
            assert!(report.is_drained(), "{devices:?}: {report}");
            assert_eq!(*counts.lock().unwrap(), [3, 4], "{devices:?}");
        }
    }
}

#[test]
fn a_full_device_pushes_back_and_a_leaving_core_cancels() {
    for devices in interfaces() {
        let listener: Descriptor = TcpListener::bind("127.0.0.1:0").unwrap().into();
        let refused: Arc<Mutex<Vec<Reason>>> = Arc::default();
        let errors: Arc<Mutex<Vec<i32>>> = Arc::default();
        let mut graph = Graph::new();
        let flood = graph.declare::<()>("flood", Mode::Kernel);
        let done = graph.declare::<Completion>("done", Mode::Kernel);
        let edge = graph.edge(flood, done).unwrap();
        let log = Arc::clone(&refused);
        graph.define(flood, move |cx, ()| {
            for token in 0..70 {
                if let Err(back) = cx.submit(edge, Operation::Accept { listener }, token) {
                    log.lock().unwrap().push(back.reason);
                }
            }
        });
        let log = Arc::clone(&errors);
        graph.define(done, move |_, completion: Completion| {
            log.lock()
                .unwrap()
                .push(completion.accepted().unwrap_err().raw_os_error().unwrap());
        });
        let port = graph.port(flood);
        let cores = start(graph.build().unwrap(), devices).unwrap();
        cores.send(port, ()).unwrap();
        while refused.lock().unwrap().len() < 6 {
            std::thread::yield_now();
        }
        assert_eq!(*refused.lock().unwrap(), [Reason::DeviceFull; 6], "{devices:?}");
        // Whichever core took the flood, its operations end as cancelled, and the other core runs the
        // completions.
        for core in [0, 1] {
            cores.leave(core).unwrap();
            if core == 0 {
                assert_eq!(cores.join().unwrap(), 0);
            }
        }
        let report = cores.shutdown(AMPLE);
        well(&report);
        assert!(report.is_drained(), "{devices:?}: {report}");
        assert_eq!(*errors.lock().unwrap(), [125; 64], "{devices:?}: ECANCELED each");
    }
}

#[test]
fn without_devices_an_operation_comes_back() {
    let seen: Arc<Mutex<Vec<Reason>>> = Arc::default();
    let mut graph = Graph::new();
    let ask = graph.declare::<()>("ask", Mode::Kernel);
    let done = graph.declare::<Completion>("done", Mode::Kernel);
    let edge = graph.edge(ask, done).unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)
        .unwrap()
        .into();
    let log = Arc::clone(&seen);
    graph.define(ask, move |cx, ()| {
        assert!(cx.take_buffer().is_none());
        let back = cx.submit(edge, Operation::Event { event }, 0).unwrap_err();
        assert_eq!(back.value, Operation::Event { event });
        log.lock().unwrap().push(back.reason);
    });
    graph.define(done, |_, _| unreachable!("nothing was submitted"));
    let port = graph.port(ask);
    let cores = start(graph.build().unwrap(), Devices::Off).unwrap();
    cores.send(port, ()).unwrap();
    well(&cores.shutdown(AMPLE));
    assert_eq!(*seen.lock().unwrap(), [Reason::NoDevices]);
}
