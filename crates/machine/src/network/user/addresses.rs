//! Who has which address, and where the host reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The gateway.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// The name server.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
/// The guest, if it asks DHCP.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The bits of the network's address.
pub const PREFIX_BITS: u8 = 24;

/// The gateway by IPv6.
pub const GATEWAY_6: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 2);
/// The name server.
pub const NAME_SERVER_6: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 3);
/// The gateway as the router that it is for the guest's link.
pub const ROUTER_6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
/// The network from which guests make their own addresses.
pub const NETWORK_6: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0);
/// The bits of its address.
pub const PREFIX_BITS_6: u8 = 64;

/// Whether an address is one of those that this program answers to itself.
pub fn is_own(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == GATEWAY || address == NAME_SERVER,
        IpAddr::V6(address) => [GATEWAY_6, NAME_SERVER_6, ROUTER_6].contains(&address),
    }
}

/// Whether an address is one of the guest's network.
pub fn is_in_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == GATEWAY.octets()[..3],
        IpAddr::V6(address) => {
            let of = |address: Ipv6Addr| address.to_bits() >> (128 - u32::from(PREFIX_BITS_6));
            of(address) == of(NETWORK_6) || address.is_unicast_link_local()
        }
    }
}

/// Where the host reaches what a guest calls `peer`; `None` where nothing is.
pub fn target(peer: SocketAddr, name_server: Option<IpAddr>) -> Option<SocketAddr> {
    const NAME_SERVER_PORT: u16 = 53;
    let address = peer.ip();
    let reached = if address == GATEWAY {
        Some(Ipv4Addr::LOCALHOST.into())
    } else if address == GATEWAY_6 {
        Some(Ipv6Addr::LOCALHOST.into())
    } else if address == NAME_SERVER || address == NAME_SERVER_6 {
        name_server.filter(|_| peer.port() == NAME_SERVER_PORT)
    } else {
        // An IPv4 address within an IPv6 one would lead around what is not reached by it.
        let nowhere = is_in_network(address)
            || address.is_loopback()
            || address.is_multicast()
            || address.is_unspecified()
            || matches!(address, IpAddr::V4(address) if address.is_broadcast())
            || matches!(address, IpAddr::V6(address) if address.to_ipv4().is_some());
        (!nowhere).then_some(address)
    };
    reached.map(|address| SocketAddr::new(address, peer.port()))
}

/// The host's first name server.
pub fn name_server() -> Option<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").ok()?;
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok())
        .next()
}
