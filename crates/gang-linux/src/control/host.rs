//! The cores this process may use, and how close they are to each other.

use std::collections::BTreeMap;
use std::fs;

use sidestep_gang::Topology;
use sidestep_gang::topology::CorePlace;

use crate::HostError;
use crate::scheduling::Scheduling;

/// The host's cores: the policy's numbers and the kernel's.
#[derive(Clone, Debug)]
pub struct Host {
    /// The kernel's numbers, by the policy's.
    pub cores: Vec<u32>,
    /// How close they are.
    pub topology: Topology,
}

impl Host {
    /// The cores that this process may use.
    ///
    /// # Errors
    /// When the kernel does not tell which they are.
    pub fn of_this_process() -> Result<Self, HostError> {
        let cores = Scheduling::of(0)?.cores;
        let number = |core: u32, file: &str| -> Option<u32> {
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/{file}"))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        // Physical cores are numbered within a socket.
        let mut physical: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let places = cores
            .iter()
            .map(|&core| {
                let socket = number(core, "topology/physical_package_id").unwrap_or(0);
                let within = number(core, "topology/core_id").unwrap_or(core);
                let next = physical.len() as u32;
                let physical = *physical.entry((socket, within)).or_insert(next);
                let cache = number(core, "cache/index3/id").unwrap_or(socket);
                CorePlace {
                    physical,
                    cache,
                    socket,
                }
            })
            .collect();
        Ok(Self {
            cores,
            topology: Topology::new(places),
        })
    }
}

/// Time all of some cores were idle so far, in nanoseconds, as `/proc/stat` counts it.
pub fn idle_ns(cores: &[u32]) -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let mut ticks = 0;
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let Some(core) = fields
            .next()
            .and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok())
        else {
            continue;
        };
        if cores.contains(&core) {
            // user, nice, system, then idle and waiting for devices.
            ticks += fields
                .skip(3)
                .take(2)
                .filter_map(|field| field.parse::<u64>().ok())
                .sum::<u64>();
        }
    }
    ticks * tick_ns
}
