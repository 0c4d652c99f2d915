//! The cores of a host and which of them are close: hardware threads of one core, cores that share a cache, sockets.

use serde::{Deserialize, Serialize};

use crate::identity::CoreId;

/// Where a core (hardware thread) is. The numbers name domains; cores with equal numbers share the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorePlace {
    /// The physical core; hardware threads of one core share its execution units.
    pub physical: u32,
    /// The last-level cache.
    pub cache: u32,
    /// The socket or NUMA node.
    pub socket: u32,
}

/// The cores of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    places: Vec<CorePlace>,
}

/// How cores are chosen for a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The free cores the members had before, then the lowest.
    FirstFit,
    /// The smallest domain (cache, socket, host) with room, the fullest such; in it, one thread of each physical core
    /// first.
    #[default]
    Nearest,
}

impl Topology {
    /// The host with these cores.
    ///
    /// # Panics
    /// Without cores.
    pub fn new(places: Vec<CorePlace>) -> Self {
        assert!(!places.is_empty(), "a host has at least one core");
        Self { places }
    }

    /// Cores that are all alike: one socket, one cache, one thread each.
    pub fn flat(cores: usize) -> Self {
        Self::regular(1, 1, cores, 1)
    }

    /// Sockets of caches of physical cores of hardware threads, numbered in that order.
    pub fn regular(sockets: usize, caches: usize, physical: usize, threads: usize) -> Self {
        let number = |index: usize| u32::try_from(index).expect("a host of fewer than 2^32 cores");
        let place = |core: usize| CorePlace {
            physical: number(core / threads),
            cache: number(core / (threads * physical)),
            socket: number(core / (threads * physical * caches)),
        };
        Self::new((0..sockets * caches * physical * threads).map(place).collect())
    }

    /// Its first cores, so many: those that guests have where the last ones serve.
    ///
    /// # Panics
    /// Without cores, or with more than there are.
    pub fn first(&self, cores: usize) -> Self {
        Self::new(self.places[..cores].to_vec())
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.places.len()
    }

    /// Where a core is.
    pub fn place(&self, core: CoreId) -> CorePlace {
        self.places[core.index()]
    }

    /// The other hardware threads of a core's physical core.
    pub fn siblings(&self, core: CoreId) -> impl Iterator<Item = CoreId> + '_ {
        let own = self.place(core);
        let all = self.places.iter().enumerate();
        let same = all.filter(move |&(other, place)| place.physical == own.physical && other != core.index());
        same.map(|(other, _)| CoreId::new(other))
    }

    /// Chooses a free core for each member of a set, given the core each had before; none when there is no room.
    pub fn choose(
        &self,
        is_free: &[bool],
        before: &[Option<CoreId>],
        placement: Placement,
    ) -> Option<Vec<CoreId>> {
        let free: Vec<CoreId> = (0..self.cores())
            .filter(|&core| is_free[core])
            .map(CoreId::new)
            .collect();
        if free.len() < before.len() {
            return None;
        }
        let domain = match placement {
            Placement::FirstFit => free,
            Placement::Nearest => self.by_physical_core(self.smallest_domain(free, before.len())),
        };
        let mut left = domain;
        let mut chosen: Vec<Option<CoreId>> = vec![None; before.len()];
        // A member that finds its old core in the domain keeps it, if that is among the cores the set would use.
        let room = before.len();
        for (member, &old) in before.iter().enumerate() {
            let usable = if placement == Placement::Nearest {
                room.min(left.len())
            } else {
                left.len()
            };
            if let Some(at) = old.and_then(|old| left[..usable].iter().position(|&core| core == old)) {
                chosen[member] = Some(left.remove(at));
            }
        }
        let mut rest = left.into_iter();
        Some(
            chosen
                .into_iter()
                .map(|core| core.unwrap_or_else(|| rest.next().expect("room was checked")))
                .collect(),
        )
    }

    /// The free cores of the smallest domain with room for `wanted`; among equals the one with the fewest free.
    fn smallest_domain(&self, free: Vec<CoreId>, wanted: usize) -> Vec<CoreId> {
        let domain_of: [fn(CorePlace) -> u32; 2] = [|place| place.cache, |place| place.socket];
        for domain in domain_of {
            let mut groups: std::collections::BTreeMap<u32, Vec<CoreId>> = std::collections::BTreeMap::new();
            for &core in &free {
                groups.entry(domain(self.place(core))).or_default().push(core);
            }
            let best = groups
                .into_values()
                .filter(|group| group.len() >= wanted)
                .min_by_key(Vec::len);
            if let Some(group) = best {
                return group;
            }
        }
        free
    }

    /// The same cores, the first thread of every physical core among them before any second.
    pub fn by_physical_core(&self, cores: Vec<CoreId>) -> Vec<CoreId> {
        let mut seen: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
        let mut ranked: Vec<(u32, CoreId)> = Vec::with_capacity(cores.len());
        for core in cores {
            let rank = seen.entry(self.place(core).physical).or_default();
            ranked.push((*rank, core));
            *rank += 1;
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, core)| core).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cores(numbers: &[u32]) -> Vec<CoreId> {
        numbers.iter().map(|&number| CoreId(number)).collect()
    }

    #[test]
    fn a_set_goes_to_the_smallest_domain_with_room() {
        let host = Topology::regular(2, 2, 2, 1);
        let free = [false, true, true, true, true, true, false, true];
        let choose = |members: usize, placement| host.choose(&free, &vec![None; members], placement);
        assert_eq!(choose(2, Placement::Nearest), Some(cores(&[2, 3])));
        assert_eq!(
            choose(1, Placement::Nearest),
            Some(cores(&[1])),
            "the fullest cache"
        );
        assert_eq!(choose(3, Placement::Nearest), Some(cores(&[1, 2, 3])), "a socket");
        assert_eq!(choose(3, Placement::FirstFit), Some(cores(&[1, 2, 3])));
        assert_eq!(choose(7, Placement::Nearest), None);
    }

    #[test]
    fn hardware_threads_of_one_core_are_used_last() {
        let host = Topology::regular(1, 1, 2, 2);
        assert_eq!(
            host.choose(&[true; 4], &[None; 2], Placement::Nearest),
            Some(cores(&[0, 2]))
        );
        assert_eq!(
            host.choose(&[true; 4], &[None; 2], Placement::FirstFit),
            Some(cores(&[0, 1]))
        );
        assert_eq!(host.siblings(CoreId(3)).collect::<Vec<_>>(), cores(&[2]));
    }

    #[test]
    fn a_member_keeps_its_core_when_it_can() {
        let host = Topology::flat(4);
        let before = [Some(CoreId(2)), None, Some(CoreId(0))];
        assert_eq!(
            host.choose(&[true; 4], &before, Placement::FirstFit),
            Some(cores(&[2, 1, 0]))
        );
    }

    proptest! {
        #[test]
        fn chosen_cores_are_free_and_distinct(
            free in proptest::collection::vec(any::<bool>(), 16),
            before in proptest::collection::vec(proptest::option::of(0_u32..16), 0..10),
            nearest: bool,
        ) {
            let host = Topology::regular(2, 2, 2, 2);
            let before: Vec<Option<CoreId>> = before.into_iter().map(|core| core.map(CoreId)).collect();
            let placement = if nearest { Placement::Nearest } else { Placement::FirstFit };
            let room = free.iter().filter(|&&free| free).count();
            match host.choose(&free, &before, placement) {
                None => prop_assert!(room < before.len()),
                Some(mut chosen) => {
                    prop_assert!(chosen.iter().all(|core| free[core.index()]));
                    prop_assert_eq!(chosen.len(), before.len());
                    chosen.sort_unstable();
                    chosen.dedup();
                    prop_assert_eq!(chosen.len(), before.len());
                }
            }
        }
    }
}
