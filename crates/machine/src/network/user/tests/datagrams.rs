//! Datagrams by UDP, whole and in pieces.

use std::net::{IpAddr, UdpSocket};

use smoltcp::wire::{Ipv6FragmentHeader, UdpPacket};

use super::super::fragments::{Fragments, Piece};
use super::*;

/// The guest sends a datagram.
fn send_datagram(guest: &mut Guest, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> usize {
    let mut sender = Frames {
        guest: GATEWAY_HARDWARE,
        ..Frames::default()
    };
    sender.datagram(from, to, payload);
    let count = sender.outgoing.len();
    for mut frame in sender.outgoing {
        EthernetFrame::new_unchecked(&mut frame[..]).set_src_addr(GUEST_HARDWARE);
        guest.network.send(&frame);
    }
    count
}

/// The addresses and the payload of a packet, once the last of its pieces is there.
type Payload = Option<(IpAddr, IpAddr, Vec<u8>)>;

fn payload_4(fragments: &mut Fragments, bytes: &[u8]) -> Payload {
    let packet = Ipv4Packet::new_checked(bytes).expect("whole");
    assert!(packet.verify_checksum());
    let payload = match packet.more_frags() || packet.frag_offset() != 0 {
        true => fragments.take(0, &Piece::of_4(&packet))?,
        false => packet.payload().to_vec(),
    };
    Some((packet.src_addr().into(), packet.dst_addr().into(), payload))
}

fn payload_6(fragments: &mut Fragments, bytes: &[u8]) -> Payload {
    let packet = Ipv6Packet::new_checked(bytes).expect("whole");
    let payload = match packet.next_header() {
        IpProtocol::Ipv6Frag => {
            let (header, payload) = packet.payload().split_at(8);
            let place = Ipv6FragmentHeader::new_checked(&header[2..]).expect("whole");
            fragments.take(0, &Piece::of_6(&packet, &place, (header[0], payload)))?
        }
        _ => packet.payload().to_vec(),
    };
    Some((packet.src_addr().into(), packet.dst_addr().into(), payload))
}

/// Waits for a datagram to the guest: from where to where, what it says, and in how many pieces it came.
fn receive_datagram(guest: &mut Guest) -> (SocketAddr, SocketAddr, Vec<u8>, usize) {
    let mut fragments = Fragments::default();
    let mut count = 0;
    let mut received = None;
    guest.until(|guest| {
        guest.network.advance(0);
        while let Some(answer) = guest.network.receive() {
            let frame = EthernetFrame::new_checked(&answer[..]).expect("whole");
            assert_eq!(frame.dst_addr(), GUEST_HARDWARE);
            count += 1;
            received = match frame.ethertype() {
                EthernetProtocol::Ipv6 => payload_6(&mut fragments, frame.payload()),
                _ => payload_4(&mut fragments, frame.payload()),
            };
        }
        received.is_some()
    });
    let (from, to, payload) = received.expect("it came");
    let datagram = UdpPacket::new_checked(&payload[..]).expect("whole");
    assert!(datagram.verify_checksum(&from.into(), &to.into()));
    (
        SocketAddr::new(from, datagram.src_port()),
        SocketAddr::new(to, datagram.dst_port()),
        datagram.payload().to_vec(),
        count,
    )
}

/// Sends datagrams of these sizes to a host's socket by the gateway and back: in so many pieces each.
fn go_both_ways(server: &UdpSocket, gateway: IpAddr, guest_address: IpAddr, sizes: &[(u32, usize)]) {
    let to = SocketAddr::new(gateway, server.local_addr().expect("bound").port());
    let from = SocketAddr::new(guest_address, 4000);
    let mut guest = Guest::new(&[]);
    for &(size, pieces) in sizes {
        let question = pattern(size);
        assert_eq!(send_datagram(&mut guest, from, to, &question), pieces);
        let mut asked = vec![0; 1 << 16];
        let (size, back) = server.recv_from(&mut asked).expect("a datagram");
        assert!(asked[..size] == question);
        server.send_to(&question, back).expect("a way back");
        let (peer, own, answer, count) = receive_datagram(&mut guest);
        assert_eq!((peer, own, count), (to, from, pieces));
        assert!(answer == question);
    }
}

#[test]
fn datagrams_go_both_ways_in_one_piece_or_several() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let sizes = [(0, 1), (8, 1), (1472, 1), (1473, 2), (65_507, 45)];
    go_both_ways(&server, GATEWAY.into(), GUEST.into(), &sizes);
}

#[test]
fn datagrams_by_ipv6_go_both_ways_in_one_piece_or_several() {
    let Some(server) = loopback_6(UdpSocket::bind) else {
        return;
    };
    let sizes = [(0, 1), (1440, 1), (1441, 2), (65_487, 46)];
    go_both_ways(&server, GATEWAY_6.into(), GUEST_6.into(), &sizes);
}

#[test]
fn datagrams_to_a_forwarded_port_reach_the_guest_and_its_answers_their_senders() {
    let forwards = ["tcp:127.0.0.1:0-:7", "udp:127.0.0.1:0-:7"];
    let forwards = forwards.map(|text| text.parse::<Forward>().expect("good"));
    let mut guest = Guest::new(&forwards);
    let listening = guest.network.listening();
    let host = listening[1];
    // The network sends to who was there before.
    send_datagram(
        &mut guest,
        SocketAddr::new(GUEST.into(), 1),
        SocketAddr::new(GATEWAY.into(), 9),
        b"",
    );
    let senders = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
    let mut peers = Vec::new();
    for sender in &senders {
        sender.send_to(b"question", host).expect("it listens");
        let (peer, own, question, _) = receive_datagram(&mut guest);
        assert_eq!(
            (peer.ip(), own),
            (IpAddr::from(GATEWAY), SocketAddr::new(GUEST.into(), 7))
        );
        assert_eq!(question, b"question");
        peers.push(peer);
    }
    assert_ne!(peers[0], peers[1]);
    let first = peers[0];
    for (number, (sender, peer)) in senders.iter().zip(peers).enumerate() {
        let answer = format!("answer {number}");
        send_datagram(
            &mut guest,
            SocketAddr::new(GUEST.into(), 7),
            peer,
            answer.as_bytes(),
        );
        let mut received = [0; 64];
        let (size, from) = sender.recv_from(&mut received).expect("a datagram");
        assert_eq!(
            (&received[..size], from),
            (answer.as_bytes(), SocketAddr::V4(host))
        );
    }
    // The same sender keeps its port.
    senders[0].send_to(b"again", host).expect("it listens");
    assert_eq!(receive_datagram(&mut guest).0, first);
}
