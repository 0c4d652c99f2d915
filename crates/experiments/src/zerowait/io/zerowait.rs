//! The services as zero-wait threads: accepted, received, read, sent.

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use sidestep_zerowait::cores::{Config, Cores, Devices, IdlePolicy, Shutdown};
use sidestep_zerowait::device::{Buffer, Completion, Descriptor, Operation};
use sidestep_zerowait::{Context, Edge, Graph, GraphError, Mode, Payload, Port};

use super::service::{BLOCK, Kind, REQUEST, Service, offset};

/// Operations and buffers beside those of the connections.
const SPARE: usize = 16;

/// Starts the server on a core of its own.
pub fn start(
    service: Service,
    listener: TcpListener,
    connections: usize,
) -> Result<Box<dyn FnOnce() -> Result<(), String>>, String> {
    let (closed, all_closed) = mpsc::channel();
    let mut graph = Graph::new();
    let port = draw(&mut graph, service, listener, connections, closed).map_err(|error| error.to_string())?;
    let config = Config {
        cores: 1,
        cores_max: 1,
        // The rivals' threads are not bound either, and the client needs a processor too.
        pin: false,
        devices: Devices::Automatic,
        // As the rivals do: whoever shares a processor with the client does not spin on it.
        idle: IdlePolicy {
            spin: Duration::ZERO,
            pause: Duration::ZERO,
            sleep: true,
        },
        operations: connections + SPARE,
        buffers: connections + SPARE,
        buffer_size: BLOCK,
        ..Config::default()
    };
    let program = graph.build().map_err(|error| error.to_string())?;
    let cores = Cores::start(program, config).map_err(|error| error.to_string())?;
    cores.send(port, ()).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let ended = all_closed.recv_timeout(Duration::from_secs(10));
        let report = cores.shutdown(Shutdown::Drain {
            at_most: Duration::from_secs(1),
        });
        match (ended, report.panics.first()) {
            (_, Some(panic)) => Err(format!("thread {} panicked: {}", panic.thread, panic.message)),
            (Err(_), None) => Err("the service did not see all connections close".to_owned()),
            (Ok(()), None) => Ok(()),
        }
    }))
}

fn draw(
    graph: &mut Graph,
    service: Service,
    listener: TcpListener,
    connections: usize,
    all_closed: mpsc::Sender<()>,
) -> Result<Port<()>, GraphError> {
    let listen = graph.declare::<()>("listen", Mode::Kernel);
    let accepted = graph.declare::<Completion>("accepted", Mode::Kernel);
    let received = graph.declare::<Completion>("received", Mode::Kernel);
    let read = graph.declare::<Completion>("read", Mode::Kernel);
    let sent = graph.declare::<Completion>("sent", Mode::Kernel);
    let closed = graph.declare::<Completion>("closed", Mode::Kernel);
    let listener: Descriptor = listener.into();

    let connection = graph.edge(listen, accepted)?;
    graph.define(listen, move |cx, ()| {
        submit(cx, connection, Operation::Accept { listener }, 0)
    });

    let (next, request) = (graph.edge(accepted, accepted)?, graph.edge(accepted, received)?);
    graph.define(accepted, move |cx, completion: Completion| {
        let socket = completion.accepted().expect("a connection");
        // The token counts the connections.
        let count = completion.token + 1;
        if count < connections as u64 {
            submit(cx, next, Operation::Accept { listener }, count);
        }
        let buffer = cx.take_buffer().expect("a buffer for each connection");
        submit(cx, request, Operation::Receive { socket, buffer }, 0);
    });

    let file: Option<Descriptor> = service.file.try_clone().ok().map(Descriptor::from);
    let (answer, block, end) = (
        graph.edge(received, sent)?,
        graph.edge(received, read)?,
        graph.edge(received, closed)?,
    );
    graph.define(received, move |cx, completion: Completion| {
        let socket = completion.descriptor;
        let length = completion.result().expect("a request or the end");
        let mut buffer = completion.buffer.expect("a receive has a buffer");
        match (length, service.kind, file) {
            (0, ..) => {
                cx.return_buffer(buffer);
                submit(cx, end, Operation::Close { descriptor: socket }, 0);
            }
            (length, Kind::File, Some(file)) => {
                assert!(length == REQUEST, "a request comes in one piece");
                let offset = offset(&cx.buffer(&mut buffer));
                let read = Operation::Read {
                    file,
                    offset,
                    buffer,
                    length: BLOCK as u32,
                };
                submit(cx, block, read, socket.into_words()[0]);
            }
            (length, ..) => send(cx, answer, socket, buffer, 0, length as u32),
        }
    });

    let answer = graph.edge(read, sent)?;
    graph.define(read, move |cx, completion: Completion| {
        assert_eq!(completion.result().ok(), Some(BLOCK), "the file has the block");
        let socket = Descriptor::from_words([completion.token, 0, 0, 0]);
        let buffer = completion.buffer.expect("a read has a buffer");
        send(cx, answer, socket, buffer, 0, BLOCK as u32);
    });

    let (rest, request) = (graph.edge(sent, sent)?, graph.edge(sent, received)?);
    graph.define(sent, move |cx, completion: Completion| {
        let socket = completion.descriptor;
        let (start, end) = (completion.token as u32, (completion.token >> 32) as u32);
        let sent = start + completion.result().expect("a client that listens") as u32;
        let buffer = completion.buffer.expect("a send has a buffer");
        if sent < end {
            send(cx, rest, socket, buffer, sent, end);
        } else {
            submit(cx, request, Operation::Receive { socket, buffer }, 0);
        }
    });

    let left = std::sync::atomic::AtomicUsize::new(connections);
    graph.define(closed, move |_, _| {
        if left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            // The receiver waits for just this.
            let _ = all_closed.send(());
        }
    });
    Ok(graph.port(listen))
}

fn submit(cx: &mut Context<'_>, edge: Edge<Completion>, operation: Operation, token: u64) {
    cx.submit(edge, operation, token)
        .expect("room for two operations of each connection");
}

/// Sends bytes `start..end` of a buffer; both travel in the token, because fewer may be sent.
fn send(
    cx: &mut Context<'_>,
    edge: Edge<Completion>,
    socket: Descriptor,
    buffer: Buffer,
    start: u32,
    end: u32,
) {
    let operation = Operation::Send {
        socket,
        buffer,
        start,
        length: end - start,
    };
    submit(cx, edge, operation, u64::from(end) << 32 | u64::from(start));
}
