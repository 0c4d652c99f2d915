//! Connections by TCP, from the guest and to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

/// Sends back what comes until it ends.
fn echo(listener: TcpListener) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut data = Vec::new();
        stream.read_to_end(&mut data).expect("all of it");
        stream.write_all(&data).expect("they read");
        data.len()
    })
}

#[test]
fn a_guest_reaches_the_hosts_loopback_by_the_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let server = echo(listener);
    let mut guest = Guest::new(&[]);
    let handle = guest.connect(SocketAddr::new(GATEWAY.into(), port));
    let data = pattern(300_000);
    assert!(guest.exchange(handle, &data) == data, "the same bytes come back");
    assert_eq!(server.join().expect("no panic"), data.len());
    guest.until(|guest| guest.network.connections.is_empty());
}

#[test]
fn a_refused_connection_is_one_for_the_guest() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let mut guest = Guest::new(&[]);
    let handle = guest.connect(SocketAddr::new(GATEWAY.into(), port));
    guest.until(|guest| guest.socket(handle).state() == State::Closed);
    assert!(guest.network.connections.is_empty());
}

#[test]
fn a_guest_finds_connections_of_another_network_broken() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let mut guest = Guest::new(&[]);
    let handle = guest.connect(SocketAddr::new(GATEWAY.into(), port));
    guest.until(|guest| guest.socket(handle).state() == State::Established);
    // As when the guest's machine is restored.
    guest.network = UserNetwork::new(&[]).expect("no ports");
    guest.socket(handle).send_slice(b"lost").expect("still open");
    guest.until(|guest| guest.socket(handle).state() == State::Closed);
}

#[test]
fn a_forwarded_port_leads_to_the_guest() {
    let forward: Forward = "tcp:127.0.0.1:0-:7".parse().expect("good");
    let mut guest = Guest::new(&[forward]);
    let at = guest.network.listening()[0];
    let handle = guest.add_socket();
    guest.socket(handle).listen(7).expect("free");
    let data = pattern(100_000);
    let sent = data.clone();
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(&sent).expect("the guest reads");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        answer
    });
    let mut received = Vec::new();
    guest.until(|guest| {
        let socket = guest.socket(handle);
        while socket.can_recv() {
            received.extend(socket.recv(|bytes| (bytes.len(), bytes.to_vec())).expect("open"));
        }
        let ended = received.len() == data.len();
        if ended && socket.may_send() {
            socket.send_slice(b"thanks").expect("open");
            socket.close();
        }
        ended && !socket.may_send()
    });
    guest.until(|_| client.is_finished());
    assert!(received == data);
    assert_eq!(client.join().expect("no panic"), b"thanks");
}

/// A guest with a connection to a host that does not read yet.
fn connected() -> (Guest, SocketHandle, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let mut guest = Guest::new(&[]);
    let handle = guest.connect(SocketAddr::new(GATEWAY.into(), port));
    guest.until(|guest| guest.socket(handle).state() == State::Established);
    let (host, _) = listener.accept().expect("it is connected");
    (guest, handle, host)
}

/// Bytes from the guest that the host has not taken.
fn waiting_bytes(network: &UserNetwork) -> usize {
    let sockets = network.sockets.iter();
    sockets
        .map(|(_, smoltcp::socket::Socket::Tcp(socket))| socket.recv_queue())
        .sum()
}

/// Whether reading ends with a reset, and how much came before.
fn read_until_end(mut host: TcpStream) -> (usize, bool) {
    let mut data = Vec::new();
    let result = host.read_to_end(&mut data);
    let is_reset = result.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
    (data.len(), is_reset)
}

#[test]
fn a_host_that_reads_late_gets_all_that_the_guest_sent() {
    let (mut guest, handle, host) = connected();
    host.shutdown(std::net::Shutdown::Write).expect("open");
    // Until the host's buffers are full, and the rest waits in the network.
    let mut sent = 0;
    let mut steps_waited = 0;
    guest.until(|guest| {
        let waits = waiting_bytes(&guest.network) > 0;
        steps_waited = if waits { steps_waited + 1 } else { 0 };
        let socket = guest.socket(handle);
        if !waits {
            sent += socket.send_slice(&[7; 1 << 14]).expect("open");
        }
        steps_waited == 100
    });
    guest.socket(handle).close();
    guest.until(|guest| !guest.socket(handle).is_open() || guest.socket(handle).state() == State::TimeWait);
    // Longer than any end of a connection is remembered.
    guest.now += 100_000 * STEP_TICKS;
    guest.until(|guest| guest.network.sockets.iter().next().is_none());
    let host = thread::spawn(move || read_until_end(host));
    guest.until(|_| host.is_finished());
    assert_eq!(host.join().expect("no panic"), (sent, false));
    guest.until(|guest| guest.network.connections.is_empty());
}

#[test]
fn a_guest_that_has_ended_gets_the_answer_without_a_wait() {
    const SECOND: u64 = 1_000_000_000;
    let (mut guest, handle, mut host) = connected();
    guest.socket(handle).close();
    guest.until(|guest| guest.socket(handle).state() == State::FinWait2);
    // Several times what the guest has room for, so that it closes its window and opens it again.
    let data = pattern(60_000);
    host.write_all(&data).expect("the host's own buffers take it");
    drop(host);
    let start = guest.now;
    assert!(guest.exchange(handle, &[]) == data);
    assert!(guest.now - start < SECOND / 2, "nothing had to be repeated");
}

#[test]
fn a_connection_that_the_guest_resets_is_reset_for_the_host() {
    let (mut guest, handle, host) = connected();
    guest.socket(handle).send_slice(b"part").expect("open");
    for _ in 0..10 {
        guest.step();
    }
    guest.socket(handle).abort();
    let host = thread::spawn(move || read_until_end(host));
    guest.until(|_| host.is_finished());
    assert!(host.join().expect("no panic").1);
}

#[test]
fn a_connection_that_the_host_resets_is_reset_for_a_guest_that_only_listens() {
    let (mut guest, handle, host) = connected();
    rustix::net::sockopt::set_socket_linger(&host, Some(Duration::ZERO)).expect("a socket");
    drop(host);
    guest.until(|guest| guest.socket(handle).state() == State::Closed);
    guest.until(|guest| guest.network.connections.is_empty());
}

#[test]
fn the_machines_end_resets_what_has_not_ended_and_completes_what_has() {
    for ends in [false, true] {
        let (mut guest, handle, host) = connected();
        let socket = guest.socket(handle);
        socket.send_slice(b"all of it").expect("open");
        if ends {
            socket.close();
        }
        // The guest's frames arrive, and the machine ends before they are handed on.
        let now = Instant::from_micros(guest.now as i64 / 1000);
        guest.interface.poll(now, &mut guest.frames, &mut guest.sockets);
        while let Some(frame) = guest.frames.outgoing.pop_front() {
            guest.network.send(&frame);
        }
        drop(guest);
        let (size, is_reset) = read_until_end(host);
        assert_eq!(is_reset, !ends);
        assert!(is_reset || size == b"all of it".len());
    }
}

#[test]
fn connections_by_ipv6_reach_the_hosts_loopback() {
    let Some(listener) = loopback_6(TcpListener::bind) else {
        return;
    };
    let port = listener.local_addr().expect("bound").port();
    let server = echo(listener);
    let mut guest = Guest::new(&[]);
    let handle = guest.connect(SocketAddr::new(GATEWAY_6.into(), port));
    let data = pattern(300_000);
    assert!(guest.exchange(handle, &data) == data, "the same bytes come back");
    assert_eq!(server.join().expect("no panic"), data.len());
    let handle = guest.connect(SocketAddr::new(GATEWAY_6.into(), port));
    guest.until(|guest| guest.socket(handle).state() == State::Closed);
}
