//! What the gateway says as an IPv6 router: the network from which guests make their addresses, and the name server
//! (RFC 4861, RFC 4862 and RFC 8106).

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::time::Duration;
use smoltcp::wire::{
    Icmpv6Packet, Icmpv6Repr, Ipv6Address, NdiscPrefixInfoFlags, NdiscPrefixInformation, NdiscRepr,
    NdiscRouterFlags,
};

use super::GATEWAY_HARDWARE;
use super::addresses::{NAME_SERVER_6, NETWORK_6, PREFIX_BITS_6, ROUTER_6};

/// The hop limit that neighbours' messages must have, so that none comes from farther away.
pub const HOP_LIMIT: u8 = 255;
/// How long what is said holds.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const ROUTER_LIFETIME: Duration = Duration::from_secs(9_000);

/// All on a link (RFC 4291, section 2.7.1).
pub const ALL_NODES: Ipv6Address = Ipv6Address::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The advertisement, as the payload of a packet from [`ROUTER_6`] to [`ALL_NODES`].
pub fn advertisement() -> Vec<u8> {
    let said = Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert {
        hop_limit: 64,
        flags: NdiscRouterFlags::empty(),
        router_lifetime: ROUTER_LIFETIME,
        reachable_time: Duration::ZERO,
        retrans_time: Duration::ZERO,
        lladdr: Some(GATEWAY_HARDWARE.into()),
        mtu: None,
        prefix_info: Some(NdiscPrefixInformation {
            prefix_len: PREFIX_BITS_6,
            flags: NdiscPrefixInfoFlags::ON_LINK | NdiscPrefixInfoFlags::ADDRCONF,
            valid_lifetime: LIFETIME,
            preferred_lifetime: LIFETIME,
            prefix: NETWORK_6,
        }),
    });
    let mut bytes = vec![0; said.buffer_len()];
    let mut packet = Icmpv6Packet::new_unchecked(&mut bytes[..]);
    said.emit(
        &ROUTER_6,
        &ALL_NODES,
        &mut packet,
        &ChecksumCapabilities::ignored(),
    );
    bytes.extend(name_server_option());
    Icmpv6Packet::new_unchecked(&mut bytes[..]).fill_checksum(&ROUTER_6, &ALL_NODES);
    bytes
}

/// The option that names the name server (RFC 8106, section 5.1).
fn name_server_option() -> Vec<u8> {
    const KIND: u8 = 25;
    /// In units of eight bytes.
    const LENGTH: u8 = 3;
    let mut option = vec![KIND, LENGTH, 0, 0];
    option.extend((LIFETIME.secs() as u32).to_be_bytes());
    option.extend(NAME_SERVER_6.octets());
    option
}
