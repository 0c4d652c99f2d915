//! `[[network]]`, or an option for one: what a network device is connected to, and which device it is.

use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::devices::DeviceError;
use crate::network::Link;
use crate::network::forward::{Forward, NoForward};
use crate::network::tap::Tap;
use crate::network::udp::Udp;
use crate::network::user::UserNetwork;

/// Which device a machine has at its end of the cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkModel {
    /// A virtio network device.
    #[default]
    Virtio,
    /// Intel's 82540EM, for kernels whose driver is `e1000`.
    E1000,
}

/// `[[network]]`: a network device and what it is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterTable {
    /// Which device it is.
    #[serde(default)]
    pub model: NetworkModel,
    /// What it is connected to.
    #[serde(flatten)]
    pub network: NetworkTable,
}

impl FromStr for AdapterTable {
    type Err = NoNetwork;

    /// As an option says it: a network, with `model=MODEL` among what comes after its first comma.
    fn from_str(text: &str) -> Result<AdapterTable, NoNetwork> {
        let mut model = NetworkModel::default();
        let mut network = Vec::new();
        for part in text.split(',') {
            match part.strip_prefix("model=").filter(|_| !network.is_empty()) {
                None => network.push(part),
                Some("virtio") => model = NetworkModel::Virtio,
                Some("e1000") => model = NetworkModel::E1000,
                Some(other) => return Err(NoNetwork::Model(other.to_owned())),
            }
        }
        let network = network.join(",").parse()?;
        Ok(AdapterTable { model, network })
    }
}

/// What a network device, or a host of virtual machines, is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum NetworkTable {
    /// A network of the guest and this program.
    User {
        /// Ports of the host that lead into it.
        #[serde(default)]
        hostfwd: Vec<Forward>,
    },
    /// A tap interface of the host.
    Tap {
        /// Its name.
        name: String,
    },
    /// Another emulator's cable, a datagram for each frame.
    Udp {
        /// Where this end listens.
        listen: SocketAddr,
        /// Where the other one does.
        peer: SocketAddr,
    },
}

/// What is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoNetwork {
    /// An unknown kind.
    #[error(
        "`{0}` must be `user`, `user,hostfwd=tcp::PORT-:PORT`, `tap=NAME` or `udp=ADDRESS:PORT,peer=ADDRESS:PORT`"
    )]
    Kind(String),
    /// An unknown device.
    #[error("`model={0}` must be `model=virtio` or `model=e1000`")]
    Model(String),
    /// A forwarded port that is none.
    #[error(transparent)]
    Forward(#[from] NoForward),
}

impl FromStr for NetworkTable {
    type Err = NoNetwork;

    /// As an option says it: `user[,hostfwd=...]...`, `tap=NAME` or `udp=ADDRESS:PORT,peer=ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<NetworkTable, NoNetwork> {
        let wrong = || NoNetwork::Kind(text.to_owned());
        if let Some(name) = text.strip_prefix("tap=") {
            let name = name.to_owned();
            return Ok(NetworkTable::Tap { name });
        }
        if let Some(ends) = text.strip_prefix("udp=") {
            let (listen, peer) = ends.split_once(",peer=").ok_or_else(wrong)?;
            let [listen, peer] = [listen, peer].map(|end| end.parse().map_err(|_| wrong()));
            return Ok(NetworkTable::Udp {
                listen: listen?,
                peer: peer?,
            });
        }
        let mut parts = text.split(',');
        if parts.next() != Some("user") {
            return Err(wrong());
        }
        let forward = |part: &str| {
            let forward = part.strip_prefix("hostfwd=").ok_or_else(wrong)?;
            Ok::<Forward, NoNetwork>(forward.parse()?)
        };
        let hostfwd = parts.map(forward).collect::<Result<_, _>>()?;
        Ok(NetworkTable::User { hostfwd })
    }
}

impl NetworkTable {
    /// Plugs the cable in.
    ///
    /// # Errors
    /// What the host refuses.
    pub fn connect(&self) -> Result<Box<dyn Link>, DeviceError> {
        Ok(match self {
            NetworkTable::User { hostfwd } => {
                let network = UserNetwork::new(hostfwd);
                Box::new(network.map_err(|(forward, error)| DeviceError::Forward { forward, error })?)
            }
            NetworkTable::Tap { name } => {
                let name = name.clone();
                Box::new(Tap::open(&name).map_err(|error| DeviceError::Tap { name, error })?)
            }
            NetworkTable::Udp { listen, peer } => {
                let (listen, peer) = (*listen, *peer);
                Box::new(Udp::open(listen, peer).map_err(|error| DeviceError::Udp { listen, error })?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_said_as_qemu_says_them() {
        let parsed = |text: &str| text.parse::<NetworkTable>();
        assert_eq!(parsed("user"), Ok(NetworkTable::User { hostfwd: Vec::new() }));
        let Ok(NetworkTable::User { hostfwd }) = parsed("user,hostfwd=tcp::2222-:22,hostfwd=tcp::80-:80")
        else {
            panic!("a user network")
        };
        assert_eq!(hostfwd.len(), 2);
        let name = "tap0".to_owned();
        assert_eq!(parsed("tap=tap0"), Ok(NetworkTable::Tap { name }));
        let [listen, peer] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(
            parsed("udp=127.0.0.1:1,peer=127.0.0.1:2"),
            Ok(NetworkTable::Udp { listen, peer })
        );
        for wrong in [
            "",
            "usr",
            "user,",
            "user,hostfwd",
            "tap",
            "udp=127.0.0.1:1",
            "udp=a,peer=b",
        ] {
            assert_eq!(parsed(wrong), Err(NoNetwork::Kind(wrong.to_owned())));
        }
        assert!(matches!(
            parsed("user,hostfwd=tcp::1-:0"),
            Err(NoNetwork::Forward(_))
        ));
    }

    #[test]
    fn a_device_may_be_another_than_virtio() {
        let parsed = |text: &str| text.parse::<AdapterTable>();
        let adapter = parsed("user,model=e1000,hostfwd=tcp::2222-:22").expect("an adapter");
        assert_eq!(adapter.model, NetworkModel::E1000);
        assert_eq!(Ok(adapter.network), "user,hostfwd=tcp::2222-:22".parse());
        assert_eq!(
            parsed("tap=tap0").map(|adapter| adapter.model),
            Ok(NetworkModel::Virtio)
        );
        let cable = parsed("udp=127.0.0.1:1,peer=127.0.0.1:2,model=e1000");
        assert_eq!(cable.map(|adapter| adapter.model), Ok(NetworkModel::E1000));
        assert_eq!(
            parsed("user,model=ne2000"),
            Err(NoNetwork::Model("ne2000".to_owned()))
        );
        assert!(matches!(parsed("model=e1000"), Err(NoNetwork::Kind(_))));
    }

    #[test]
    fn a_table_has_no_unknown_keys() {
        let parsed = |text: &str| toml::from_str::<AdapterTable>(text);
        let adapter = parsed("kind = 'tap'\nname = 'tap0'\nmodel = 'e1000'").expect("an adapter");
        assert_eq!(adapter.model, NetworkModel::E1000);
        assert!(parsed("kind = 'user'").is_ok());
        for wrong in [
            "kind = 'user'\nmodels = 'e1000'",
            "kind = 'user'\nmodel = 'e100'",
            "model = 'e1000'",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
