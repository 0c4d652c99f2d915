//! The DHCP server (RFC 2131): the guest gets [`GUEST`], whatever it asks for.

use std::net::Ipv4Addr;

use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr};

use super::{GATEWAY, GUEST, NAME_SERVER};

/// Where the server listens.
pub const SERVER_PORT: u16 = 67;
/// Where clients do.
pub const CLIENT_PORT: u16 = 68;

const LEASE_SECONDS: u32 = 86_400;
const OPTION_NAME_SERVERS: u8 = 6;

/// The answer to a client's message, if it gets one.
pub fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let packet = DhcpPacket::new_checked(message).ok()?;
    let request = DhcpRepr::parse(&packet).ok()?;
    let asks_for_us = request.server_identifier.is_none_or(|server| server == GATEWAY);
    let asked = request.requested_ip.unwrap_or(request.client_ip);
    let message_type = match request.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request if !asks_for_us => return None,
        DhcpMessageType::Request if asked == GUEST => DhcpMessageType::Ack,
        DhcpMessageType::Request => DhcpMessageType::Nak,
        _ => return None,
    };
    let refused = message_type == DhcpMessageType::Nak;
    let given = |address| (!refused).then_some(address);
    let name_server = NAME_SERVER.octets();
    let options = [DhcpOption {
        kind: OPTION_NAME_SERVERS,
        data: &name_server,
    }];
    let reply = DhcpRepr {
        message_type,
        transaction_id: request.transaction_id,
        secs: 0,
        client_hardware_address: request.client_hardware_address,
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: given(GUEST).unwrap_or(Ipv4Addr::UNSPECIFIED),
        server_ip: GATEWAY,
        router: given(GATEWAY),
        subnet_mask: given(Ipv4Addr::new(255, 255, 255, 0)),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: request.broadcast,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(GATEWAY),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: (!refused).then_some(LEASE_SECONDS),
        renew_duration: None,
        rebind_duration: None,
        additional_options: if refused { &[] } else { &options },
    };
    let mut bytes = vec![0; reply.buffer_len()];
    reply.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..])).ok()?;
    Some(bytes)
}
