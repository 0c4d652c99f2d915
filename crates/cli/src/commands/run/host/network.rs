//! The hosts of one run: one alone, one whose card's wire ends outside, or two that a link joins.

use std::error::Error;
use std::path::Path;
use std::slice;

use sidestep_hypervisor::description::{Description, WireEnd};
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{HostEnd, HostError};
use sidestep_hypervisor::link::Linked;
use sidestep_hypervisor::uplink::Uplinked;
use sidestep_hypervisor::{Cycle, Host};

use super::super::description;
use super::consoles::Guest;

/// Hosts that run together.
pub enum Network {
    /// One whose card, if it has one, has a wire that ends nowhere.
    Alone(Box<Host>),
    /// One whose card is connected to a network of this computer.
    Uplinked(Box<Uplinked>),
    /// Two, and the names of their descriptions.
    Linked(Box<Linked>, [String; 2]),
}

impl Network {
    /// Joins a host, whose clock has so many MHz and which may record a timeline, to what its description says.
    /// `prepare` is done to every other host.
    ///
    /// # Errors
    /// A description of another host that cannot be used, and what this computer refuses.
    pub fn join(
        (name, described, is_traced): (&str, &Description, bool),
        host: Host,
        clock_mhz: u64,
        end: WireEnd,
        prepare: impl FnOnce(&mut Host),
    ) -> Result<Network, Box<dyn Error>> {
        Ok(match end {
            WireEnd::Nowhere => Network::Alone(Box::new(host)),
            WireEnd::Outside(network) => {
                let outside = network.connect().map_err(|error| format!("{name}: {error}"))?;
                Network::Uplinked(Box::new(Uplinked::new(host, outside, clock_mhz)))
            }
            WireEnd::Host(path, link) => {
                let other_name = path.display().to_string();
                let (mut other, other_described) = build(&path, is_traced)?;
                prepare(&mut other);
                if other_described.link.is_some() || other_described.uplink.is_some() {
                    return Err(format!(
                        "{other_name}: `[link]` of {name} leads here: the wire ends there, and this description says \
                         no other end"
                    )
                    .into());
                }
                match other_described.card_number() {
                    None => {
                        return Err(format!(
                            "{other_name}: `[link]` of {name} leads here, where there is no card: add a table `[nic]`"
                        )
                        .into());
                    }
                    number if number == described.card_number() => {
                        return Err(format!(
                            "{name} and {other_name}: interfaces of both hosts would have the same addresses: give \
                             one `[nic]` another number, such as `host = 1`"
                        )
                        .into());
                    }
                    Some(_) => {}
                }
                let linked = Linked::new([host, other], &link, clock_mhz)?;
                Network::Linked(Box::new(linked), [name.to_owned(), other_name])
            }
        })
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host] {
        match self {
            Network::Alone(host) => slice::from_ref(host),
            Network::Uplinked(uplinked) => slice::from_ref(uplinked.host()),
            Network::Linked(linked, _) => linked.hosts(),
        }
    }

    /// The host, if it has the time for itself.
    pub fn alone(&mut self) -> Option<&mut Host> {
        match self {
            Network::Alone(host) => Some(host),
            Network::Uplinked(_) | Network::Linked(..) => None,
        }
    }

    /// The hosts, and what stands before the names of what is theirs: of two hosts, the files that describe these.
    pub fn prefixed(&self) -> impl Iterator<Item = (String, &Host)> {
        let prefixes = match self {
            Network::Alone(_) | Network::Uplinked(_) => vec![String::new()],
            Network::Linked(_, names) => names.iter().map(|name| prefix(name)).collect(),
        };
        prefixes.into_iter().zip(self.hosts())
    }

    /// Their virtual machines.
    pub fn guests(&self) -> Vec<Guest> {
        let of = |(prefix, host): (String, &Host)| {
            let machines = host.machines().to_vec();
            machines.into_iter().map(move |machine| {
                let name = locked(&machine).name().to_owned();
                Guest {
                    name: format!("{prefix}{name}"),
                    machine,
                }
            })
        };
        self.prefixed().flat_map(of).collect()
    }

    /// What a host is called where there are two.
    pub fn name_of(&self, host: usize) -> Option<&str> {
        match self {
            Network::Linked(_, names) => Some(&names[host]),
            Network::Alone(_) | Network::Uplinked(_) => None,
        }
    }

    /// What a link has lost, if it has.
    pub fn text_of_losses(&self) -> String {
        match self {
            Network::Linked(linked, [first, second]) if linked.lost() != [0, 0] => {
                let [there, back] = linked.lost();
                format!("\nthe link lost {there} frames to {second}, {back} to {first}\n")
            }
            _ => String::new(),
        }
    }

    /// The time.
    pub fn time(&self) -> Cycle {
        match self {
            Network::Linked(linked, _) => linked.time(),
            _ => self.hosts()[0].time(),
        }
    }

    /// Whether somebody outside lives in the hosts' time.
    pub fn reaches_outside(&self) -> bool {
        matches!(self, Network::Uplinked(_))
    }

    /// Goes on until `until`, or until all virtual machines have ended.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn run(&mut self, until: Cycle) -> Result<HostEnd, HostError> {
        match self {
            Network::Alone(host) => host.run(until),
            Network::Uplinked(uplinked) => uplinked.run(until),
            Network::Linked(linked, _) => linked.run(until),
        }
    }
}

fn build(path: &Path, is_traced: bool) -> Result<(Host, Description), Box<dyn Error>> {
    let name = path.display().to_string();
    let text = sidestep_files::read_text(path, sidestep_files::TEXT_BYTES_MAX);
    let text = text.map_err(|error| format!("{name}: {error}"))?;
    let described: Description = description::parse(&name, &text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let built = described.build(folder, is_traced, None);
    let (host, _) = built.map_err(|error| format!("{name}: {error}"))?;
    Ok((host, described))
}

/// What stands before the names of what is a host's.
fn prefix(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    format!("{}/", stem.to_string_lossy())
}
