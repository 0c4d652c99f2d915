//! The network, with another TCP/IP stack as its guest.

mod connections;
mod datagrams;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv4Message,
    Icmpv4Packet, Icmpv6Packet, Icmpv6Repr, IpAddress, IpCidr, IpProtocol, Ipv4Packet, Ipv6Packet, NdiscRepr,
};

use super::addresses::{GATEWAY_6, NAME_SERVER_6, NETWORK_6, ROUTER_6, target};
use super::frames::Frames;
use super::{GATEWAY, GATEWAY_HARDWARE, GUEST, Link, UserNetwork, dhcp, router};
use crate::network::forward::Forward;

const GUEST_HARDWARE: EthernetAddress = EthernetAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
/// What a guest would make its address.
const GUEST_6: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0x5054, 0xff, 0xfe12, 0x3456);
/// Machine time between two steps.
const STEP_TICKS: u64 = 1_000_000;
/// So many steps, each of at least a tenth of a millisecond, are enough for anything on this host.
const STEPS_MAX: usize = 100_000;

/// A guest and its network.
struct Guest {
    network: UserNetwork,
    frames: Frames,
    interface: Interface,
    sockets: SocketSet<'static>,
    now: u64,
}

impl Guest {
    fn new(forwards: &[Forward]) -> Guest {
        let mut frames = Frames::default();
        let mut interface = Interface::new(Config::new(GUEST_HARDWARE.into()), &mut frames, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(GUEST.into(), 24)).expect("room");
            addresses.push(IpCidr::new(GUEST_6.into(), 64)).expect("room");
        });
        interface
            .routes_mut()
            .add_default_ipv6_route(GATEWAY_6)
            .expect("room");
        interface
            .routes_mut()
            .add_default_ipv4_route(GATEWAY)
            .expect("room");
        Guest {
            network: UserNetwork::new(forwards).expect("ports are free"),
            frames,
            interface,
            sockets: SocketSet::new(Vec::new()),
            now: 0,
        }
    }

    fn step(&mut self) {
        self.now += STEP_TICKS;
        let now = Instant::from_micros((self.now / 1000) as i64);
        self.interface.poll(now, &mut self.frames, &mut self.sockets);
        while let Some(frame) = self.frames.outgoing.pop_front() {
            self.network.send(&frame);
        }
        self.network.advance(self.now);
        while let Some(frame) = self.network.receive() {
            self.frames.incoming = Some(frame);
            self.interface.poll(now, &mut self.frames, &mut self.sockets);
        }
        thread::sleep(Duration::from_micros(100));
    }

    fn until(&mut self, mut done: impl FnMut(&mut Guest) -> bool) {
        for _ in 0..STEPS_MAX {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("nothing happened for {STEPS_MAX} steps");
    }

    fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    fn add_socket(&mut self) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; 1 << 14]);
        self.sockets.add(Socket::new(buffer(), buffer()))
    }

    fn connect(&mut self, to: impl Into<SocketAddr>) -> SocketHandle {
        let to = to.into();
        let handle = self.add_socket();
        let socket = self.sockets.get_mut::<Socket<'_>>(handle);
        socket
            .connect(
                self.interface.context(),
                (IpAddress::from(to.ip()), to.port()),
                50_000,
            )
            .expect("a good address");
        handle
    }

    /// Sends everything, closes, and answers what comes back until the other end closes.
    fn exchange(&mut self, handle: SocketHandle, mut data: &[u8]) -> Vec<u8> {
        let mut received = Vec::new();
        let mut closed = false;
        self.until(|guest| {
            let socket = guest.socket(handle);
            if socket.can_send() && !data.is_empty() {
                let sent = socket.send_slice(data).expect("open");
                data = &data[sent..];
            }
            if data.is_empty() && !closed && socket.may_send() {
                socket.close();
                closed = true;
            }
            while socket.can_recv() {
                let more = socket.recv(|bytes| (bytes.len(), bytes.to_vec())).expect("open");
                received.extend(more);
            }
            matches!(socket.state(), State::TimeWait | State::Closed)
        });
        received
    }
}

fn pattern(size: u32) -> Vec<u8> {
    (0..size).map(|index| (index * 7 + index / 251) as u8).collect()
}

/// A socket of the host's own by IPv6, if it has that.
fn loopback_6<T>(bind: impl FnOnce((Ipv6Addr, u16)) -> std::io::Result<T>) -> Option<T> {
    let bound = bind((Ipv6Addr::LOCALHOST, 0)).ok();
    tests_need::host(bound.is_some(), "this host has no IPv6 on its loopback").then_some(())?;
    bound
}

/// Sends a message of ICMPv6; the messages that come back, and to whom.
fn ask_6(from: Ipv6Addr, to: Ipv6Addr, message: &Icmpv6Repr<'_>) -> Vec<(Ipv6Addr, Vec<u8>)> {
    let mut guest = Guest::new(&[]);
    // So that the network knows where the guest is.
    let unused = guest.connect(SocketAddr::new(GATEWAY_6.into(), 1));
    guest.until(|guest| guest.socket(unused).state() == State::Closed);
    let mut frame = vec![0; 14 + 40 + message.buffer_len()];
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame[..]);
    ethernet.set_src_addr(GUEST_HARDWARE);
    ethernet.set_dst_addr(EthernetAddress([0x33, 0x33, 0, 0, 0, 2]));
    ethernet.set_ethertype(EthernetProtocol::Ipv6);
    let mut packet = Ipv6Packet::new_unchecked(ethernet.payload_mut());
    packet.set_version(6);
    packet.set_payload_len(message.buffer_len() as u16);
    packet.set_next_header(IpProtocol::Icmpv6);
    packet.set_hop_limit(255);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
    let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
    message.emit(&from, &to, &mut icmp, &Default::default());
    guest.network.send(&frame);
    let answers = std::iter::from_fn(|| guest.network.receive());
    let message = |frame: Vec<u8>| {
        let packet = Ipv6Packet::new_checked(&frame[14..]).expect("whole");
        let message = Icmpv6Packet::new_checked(packet.payload()).expect("whole");
        assert!(message.verify_checksum(&packet.src_addr(), &packet.dst_addr()));
        (packet.dst_addr(), packet.payload().to_vec())
    };
    answers.map(message).collect()
}

#[test]
fn a_router_says_which_network_it_is_and_who_knows_names() {
    let question = Icmpv6Repr::Ndisc(NdiscRepr::RouterSolicit { lladdr: None });
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
    let answers = ask_6(link_local, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2), &question);
    let [(to, answer)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(*to, router::ALL_NODES);
    let packet = Icmpv6Packet::new_checked(&answer[..]).expect("whole");
    let said = Icmpv6Repr::parse(&ROUTER_6, to, &packet, &Default::default());
    let Ok(Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert { prefix_info, .. })) = said else {
        panic!("{said:?}")
    };
    assert_eq!(prefix_info.map(|network| network.prefix), Some(NETWORK_6));
    assert!(answer.ends_with(&NAME_SERVER_6.octets()));
}

#[test]
fn nobody_else_has_an_address_that_a_guest_makes_itself() {
    for (target_addr, has_answer) in [(GUEST_6, false), (GATEWAY_6, true), (ROUTER_6, true)] {
        let lladdr = Some(GUEST_HARDWARE.into());
        let question = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, lladdr });
        let tail = target_addr.segments();
        let to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | tail[6] & 0xff, tail[7]);
        let answers = ask_6(GUEST_6, to, &question);
        assert_eq!(answers.len(), usize::from(has_answer), "{target_addr}");
    }
}

#[test]
fn the_gateway_alone_answers_echoes_by_ipv6() {
    let question = Icmpv6Repr::EchoRequest {
        ident: 1,
        seq_no: 2,
        data: b"anybody there?",
    };
    for (to, has_answer) in [
        (GATEWAY_6, true),
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), false),
    ] {
        assert_eq!(
            ask_6(GUEST_6, to, &question).len(),
            usize::from(has_answer),
            "{to}"
        );
    }
}

fn discover(
    message_type: DhcpMessageType,
    requested_ip: Option<Ipv4Addr>,
) -> Option<(DhcpMessageType, Ipv4Addr)> {
    let request = DhcpRepr {
        message_type,
        transaction_id: 7,
        secs: 0,
        client_hardware_address: GUEST_HARDWARE,
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: Ipv4Addr::UNSPECIFIED,
        server_ip: Ipv4Addr::UNSPECIFIED,
        router: None,
        subnet_mask: None,
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: false,
        requested_ip,
        client_identifier: Some(GUEST_HARDWARE),
        server_identifier: None,
        parameter_request_list: Some(&[1, 3, 6]),
        dns_servers: None,
        max_size: None,
        lease_duration: None,
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    };
    let mut bytes = vec![0; request.buffer_len()];
    request
        .emit(&mut DhcpPacket::new_unchecked(&mut bytes[..]))
        .expect("room");
    let answer = dhcp::answer(&bytes)?;
    let packet = DhcpPacket::new_checked(&answer[..]).expect("whole");
    let answer = DhcpRepr::parse(&packet).expect("good");
    assert_eq!(
        (answer.transaction_id, answer.server_identifier),
        (7, Some(GATEWAY))
    );
    Some((answer.message_type, answer.your_ip))
}

#[test]
fn dhcp_gives_the_guest_its_address() {
    assert_eq!(
        discover(DhcpMessageType::Discover, None),
        Some((DhcpMessageType::Offer, GUEST))
    );
    assert_eq!(
        discover(DhcpMessageType::Request, Some(GUEST)),
        Some((DhcpMessageType::Ack, GUEST))
    );
    let other = Ipv4Addr::new(192, 168, 0, 1);
    let refused = Some((DhcpMessageType::Nak, Ipv4Addr::UNSPECIFIED));
    assert_eq!(discover(DhcpMessageType::Request, Some(other)), refused);
    assert_eq!(discover(DhcpMessageType::Release, None), None);
}

#[test]
fn the_gateway_alone_answers_echoes() {
    for (to, answers) in [(GATEWAY, true), (Ipv4Addr::new(192, 0, 2, 1), false)] {
        let mut guest = Guest::new(&[]);
        // So that the network knows where the guest is.
        let unused = guest.connect(SocketAddr::new(GATEWAY.into(), 1));
        guest.until(|guest| guest.socket(unused).state() == State::Closed);
        let mut frame = vec![0; 14 + 20 + 8];
        let mut ethernet = EthernetFrame::new_unchecked(&mut frame[..]);
        ethernet.set_src_addr(GUEST_HARDWARE);
        ethernet.set_dst_addr(GATEWAY_HARDWARE);
        ethernet.set_ethertype(EthernetProtocol::Ipv4);
        let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
        packet.set_version(4);
        packet.set_header_len(20);
        packet.set_total_len(28);
        packet.set_hop_limit(64);
        packet.set_next_header(IpProtocol::Icmp);
        packet.set_src_addr(GUEST);
        packet.set_dst_addr(to);
        packet.fill_checksum();
        let mut echo = Icmpv4Packet::new_unchecked(packet.payload_mut());
        echo.set_msg_type(Icmpv4Message::EchoRequest);
        echo.fill_checksum();
        guest.network.send(&frame);
        assert_eq!(guest.network.receive().is_some(), answers, "{to}");
    }
}

#[test]
fn addresses_that_are_nobodys_lead_nowhere() {
    let to = |address: &str| target(format!("{address}:80").parse().expect("an address"), None);
    assert_eq!(to("10.0.2.2"), "127.0.0.1:80".parse().ok());
    assert_eq!(to("192.0.2.1"), "192.0.2.1:80".parse().ok());
    assert_eq!(to("[fec0::2]"), "[::1]:80".parse().ok());
    assert_eq!(to("[2001:db8::1]"), "[2001:db8::1]:80".parse().ok());
    let server = "192.0.2.53".parse().ok();
    assert_eq!(
        target("[fec0::3]:53".parse().expect("one"), server),
        "192.0.2.53:53".parse().ok()
    );
    for nowhere in [
        "10.0.2.3",
        "10.0.2.9",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "[fec0::3]",
        "[fec0::9]",
        "[fe80::1]",
        "[::1]",
        "[::]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
    ] {
        assert_eq!(to(nowhere), None, "{nowhere}");
    }
}

proptest! {
    /// Frames with a plausible beginning and anything behind it.
    #[test]
    fn no_frame_harms_the_host(
        frames in prop::collection::vec(
            (0usize..3, any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)),
            1..40,
        )
    ) {
        let mut network = UserNetwork::new(&[]).expect("no ports");
        for (now, (kind, has_header, tail)) in frames.into_iter().enumerate() {
            let mut frame = GATEWAY_HARDWARE.0.to_vec();
            frame.extend(GUEST_HARDWARE.0);
            frame.extend([[8, 6], [8, 0], [0x86, 0xdd]][kind]);
            if has_header && kind == 1 {
                // To addresses where nothing is: nothing may leave this host.
                let protocol = [1, 6, 17][tail.len() % 3];
                let mut header = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 2, 15, 10, 0, 2, 99];
                header[2..4].copy_from_slice(&(20 + tail.len() as u16).to_be_bytes());
                Ipv4Packet::new_unchecked(&mut header[..]).fill_checksum();
                frame.extend(header);
                frame.extend(tail);
            } else if has_header && kind == 2 {
                let protocol = [6, 17, 44, 58][tail.len() % 4];
                frame.extend([0x60, 0, 0, 0, 0, tail.len() as u8, protocol, 255]);
                frame.extend(GUEST_6.octets());
                frame.extend(Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 99).octets());
                frame.extend(tail);
            } else if kind != 1 {
                frame.extend(tail);
            }
            network.send(&frame);
            network.advance(now as u64 * STEP_TICKS);
            while network.receive().is_some() {}
        }
    }
}
