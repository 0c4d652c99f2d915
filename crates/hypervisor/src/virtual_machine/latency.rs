//! How long requests took: a count, a sum, extremes and a histogram of bounded size for each kind and each way.
//!
//! A histogram keeps three decimal digits of a latency, so that percentiles above 2047 cycles are right to a
//! thousandth; the extremes and the sum are exact. However long a run is, it takes no more memory.

use hdrhistogram::Histogram;

use super::service::Server;
use crate::sidecall::request::Kind;

/// Latencies in cycles.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u64,
    least: u64,
    most: u64,
}

/// Decimal digits that a histogram keeps.
const DIGITS: u8 = 3;

impl Latencies {
    fn new() -> Latencies {
        Latencies {
            histogram: Histogram::new(DIGITS).expect("a histogram can keep 0 to 5 digits"),
            sum: 0,
            least: u64::MAX,
            most: 0,
        }
    }

    fn note(&mut self, cycles: u64) {
        self.sum = self.sum.saturating_add(cycles);
        self.least = self.least.min(cycles);
        self.most = self.most.max(cycles);
        // Not `saturating_record`: that one does not grow the histogram, and takes what is beyond it for the largest
        // value that it holds.
        self.histogram
            .record(cycles)
            .expect("a histogram grows to any latency");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The latency that so many of a thousand do not exceed.
    pub fn per_mille(&self, part: u64) -> u64 {
        // In integers: a rank that is rounded differently somewhere would be another result.
        let rank = (u128::from(self.count()) * u128::from(part)).div_ceil(1000) as u64;
        if rank == self.count() {
            return self.most;
        }
        let mut below = 0;
        for step in self.histogram.iter_recorded() {
            below += step.count_since_last_iteration();
            if below >= rank {
                return step.value_iterated_to().clamp(self.least, self.most);
            }
        }
        self.most
    }
}

/// The latencies of a virtual machine's requests, by kind and by way.
#[derive(Clone, Debug)]
pub struct RequestLatencies {
    by_exit: Vec<Option<Latencies>>,
    by_sidecall: Vec<Option<Latencies>>,
}

impl RequestLatencies {
    /// Of no requests.
    pub(super) fn new() -> RequestLatencies {
        // The last is for unknown kinds.
        RequestLatencies {
            by_exit: vec![None; Kind::ALL.len() + 1],
            by_sidecall: vec![None; Kind::ALL.len() + 1],
        }
    }

    pub(super) fn note(&mut self, kind: Option<Kind>, server: Server, cycles: u64) {
        let place = kind.map_or(Kind::ALL.len(), |kind| kind as usize);
        let latencies = match server {
            Server::OwnCore => &mut self.by_exit[place],
            Server::Sidecore => &mut self.by_sidecall[place],
        };
        latencies.get_or_insert_with(Latencies::new).note(cycles);
    }

    /// Those of requests that were made: kind (`None`: unknown) and way, first all by exit.
    pub fn made(&self) -> impl Iterator<Item = (Option<Kind>, Server, &Latencies)> {
        let kinds = || Kind::ALL.iter().copied().map(Some).chain([None]);
        let by_exit = kinds()
            .zip(&self.by_exit)
            .map(|(kind, latencies)| (kind, Server::OwnCore, latencies));
        let by_sidecall = kinds()
            .zip(&self.by_sidecall)
            .map(|(kind, latencies)| (kind, Server::Sidecore, latencies));
        by_exit
            .chain(by_sidecall)
            .filter_map(|(kind, server, latencies)| Some((kind, server, latencies.as_ref()?)))
    }

    /// How many requests were served.
    pub fn count(&self) -> u64 {
        self.made().map(|(_, _, latencies)| latencies.count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_sorted_list_to_a_thousandth(
            list in proptest::collection::vec(0u64..1 << 40, 1..200),
            part in 0u64..=1000,
        ) {
            let mut latencies = Latencies::new();
            list.iter().for_each(|cycles| latencies.note(*cycles));
            let mut sorted = list;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * part).div_ceil(1000).max(1) as usize;
            let exact = sorted[rank - 1];
            let found = latencies.per_mille(part);
            prop_assert!(found.abs_diff(exact) <= exact / 1000 + 1, "{found} for {exact}");
            prop_assert_eq!(latencies.least(), sorted[0]);
            prop_assert_eq!(latencies.most(), sorted[sorted.len() - 1]);
            prop_assert_eq!(latencies.sum(), sorted.iter().sum::<u64>());
        }
    }

    #[test]
    fn the_histogram_grows_with_what_it_is_given() {
        let mut latencies = Latencies::new();
        [0, 4, 4, 4, 62_577_703, u64::MAX]
            .iter()
            .for_each(|cycles| latencies.note(*cycles));
        assert_eq!([100, 200, 600].map(|part| latencies.per_mille(part)), [0, 4, 4]);
        let large = latencies.per_mille(800);
        assert!(large.abs_diff(62_577_703) <= 62_577, "{large}");
        assert_eq!(latencies.per_mille(1000), u64::MAX);
    }

    #[test]
    fn short_latencies_are_exact() {
        let mut latencies = Latencies::new();
        (1..=2000).for_each(|cycles| latencies.note(cycles));
        assert_eq!(
            [500, 990, 1000].map(|part| latencies.per_mille(part)),
            [1000, 1980, 2000]
        );
    }
}
