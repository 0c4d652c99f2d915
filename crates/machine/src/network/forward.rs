//! Ports of the host that lead to the guest, as QEMU spells them: `tcp:[ADDRESS]:PORT-[ADDRESS]:PORT`, or `udp:...`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::user::GUEST;

/// What comes to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Transport {
    /// As options spell them.
    const NAMES: [(&str, Transport); 2] = [("tcp", Transport::Tcp), ("udp", Transport::Udp)];
}

/// A port of the host and where in the guest's network it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Forward {
    /// What it passes on.
    pub transport: Transport,
    /// Where the host listens: at every address if none is given.
    pub host: SocketAddrV4,
    /// Where they go.
    pub guest: SocketAddrV4,
}

/// What is not the description of a forwarded port.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` must be `tcp:[ADDRESS]:PORT-[ADDRESS]:PORT`, such as `tcp::2222-:22`, or the same with `udp`")]
pub struct NoForward(String);

impl FromStr for Forward {
    type Err = NoForward;

    fn from_str(text: &str) -> Result<Forward, NoForward> {
        let parse = || {
            let (name, ends) = text.split_once(':')?;
            let (_, transport) = Transport::NAMES.into_iter().find(|(known, _)| *known == name)?;
            let (host, guest) = ends.split_once('-')?;
            let guest = endpoint(guest, GUEST)?;
            let host = endpoint(host, Ipv4Addr::UNSPECIFIED)?;
            (guest.port() != 0).then_some(Forward {
                transport,
                host,
                guest,
            })
        };
        parse().ok_or_else(|| NoForward(text.to_owned()))
    }
}

impl TryFrom<String> for Forward {
    type Error = NoForward;

    fn try_from(text: String) -> Result<Forward, NoForward> {
        text.parse()
    }
}

impl From<Forward> for String {
    fn from(forward: Forward) -> String {
        let known = |(_, transport): &(_, Transport)| *transport == forward.transport;
        let (name, _) = (Transport::NAMES.into_iter().find(known)).expect("each has a name");
        format!("{name}:{}-{}", forward.host, forward.guest)
    }
}

/// `[ADDRESS]:PORT`.
fn endpoint(text: &str, default: Ipv4Addr) -> Option<SocketAddrV4> {
    let (address, port) = text.split_once(':')?;
    let address = if address.is_empty() {
        default
    } else {
        address.parse().ok()?
    };
    Some(SocketAddrV4::new(address, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_left_out() {
        let forward: Forward = "tcp::2222-:22".parse().expect("good");
        assert_eq!(forward.host.to_string(), "0.0.0.0:2222");
        assert_eq!(forward.guest.to_string(), "10.0.2.15:22");
        let forward: Forward = "udp:127.0.0.1:80-10.0.2.16:8080".parse().expect("good");
        assert_eq!(forward.transport, Transport::Udp);
        assert_eq!(forward.host.to_string(), "127.0.0.1:80");
        assert_eq!(forward.guest.to_string(), "10.0.2.16:8080");
        assert_eq!(String::from(forward).parse(), Ok(forward));
    }

    #[test]
    fn what_is_none_is_quoted() {
        for wrong in [
            "",
            "tcp",
            "sctp::1-:2",
            "udp::1",
            "tcp::1",
            "tcp::1-2",
            "tcp::x-:2",
            "tcp::1-:0",
            "tcp::65536-:1",
        ] {
            let error = wrong.parse::<Forward>().expect_err(wrong);
            assert!(
                error.to_string().starts_with(&format!("`{wrong}` must be")),
                "{error}"
            );
        }
    }
}
