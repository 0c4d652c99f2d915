//! A set of bounded size that forgets what was used longest ago: an associative memory, looked up in constant time.

/// Lists of numbers whose hashes fall together: a power of two.
const CHAINS: usize = 256;
/// No place.
const NONE: u16 = u16::MAX;

/// A place of the set.
#[derive(Clone, Copy)]
struct Place {
    number: u64,
    /// The next of its chain.
    chained: u16,
    /// Who was used more and less recently, in a circle.
    before: u16,
    behind: u16,
}

/// The numbers that were used last.
pub(crate) struct Recency {
    places: Vec<Place>,
    most: usize,
    chains: Box<[u16; CHAINS]>,
    /// The number that was used last.
    first: u16,
}

impl Recency {
    /// Nothing was used; `most` numbers fit, one at the least.
    pub fn new(most: usize) -> Recency {
        let most = most.clamp(1, usize::from(NONE));
        Recency {
            places: Vec::with_capacity(most),
            most,
            chains: Box::new([NONE; CHAINS]),
            first: 0,
        }
    }

    /// Whether a number is among them; it is the one that was used last then, in place of the one that was used
    /// longest ago if they were too many.
    #[inline]
    pub fn access(&mut self, number: u64) -> bool {
        let first = self.places.get(usize::from(self.first));
        if first.is_some_and(|first| first.number == number) {
            return true;
        }
        let mut at = self.chains[chain(number)];
        while let Some(place) = self.places.get(usize::from(at)) {
            if place.number == number {
                self.make_first(at);
                return true;
            }
            at = place.chained;
        }
        self.insert(number);
        false
    }

    fn make_first(&mut self, at: u16) {
        let Place { before, behind, .. } = self.places[usize::from(at)];
        self.places[usize::from(before)].behind = behind;
        self.places[usize::from(behind)].before = before;
        self.put_first(at);
    }

    /// Links a place in before the first.
    fn put_first(&mut self, at: u16) {
        let behind = self.first;
        let before = self.places[usize::from(behind)].before;
        let place = &mut self.places[usize::from(at)];
        (place.before, place.behind) = (before, behind);
        self.places[usize::from(before)].behind = at;
        self.places[usize::from(behind)].before = at;
        self.first = at;
    }

    fn insert(&mut self, number: u64) {
        let chained = self.chains[chain(number)];
        if self.places.len() < self.most {
            let at = self.places.len() as u16;
            let (before, behind) = (at, at);
            self.places.push(Place {
                number,
                chained,
                before,
                behind,
            });
            self.chains[chain(number)] = at;
            if at == 0 {
                self.first = 0;
            } else {
                self.put_first(at);
            }
            return;
        }
        // The last of the circle stands before the first: it only has to become the first itself.
        let last = self.places[usize::from(self.first)].before;
        self.unchain(last);
        let chained = self.chains[chain(number)];
        let place = &mut self.places[usize::from(last)];
        (place.number, place.chained) = (number, chained);
        self.chains[chain(number)] = last;
        self.first = last;
    }

    fn unchain(&mut self, place: u16) {
        let Place { number, chained, .. } = self.places[usize::from(place)];
        let head = &mut self.chains[chain(number)];
        if *head == place {
            *head = chained;
            return;
        }
        let mut at = *head;
        while self.places[usize::from(at)].chained != place {
            at = self.places[usize::from(at)].chained;
        }
        self.places[usize::from(at)].chained = chained;
    }
}

fn chain(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % CHAINS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Recency;

    /// The same as a list, the number that was used last first.
    fn access(list: &mut Vec<u64>, most: usize, number: u64) -> bool {
        let found = list.iter().position(|known| *known == number);
        if let Some(at) = found {
            list.remove(at);
        }
        list.insert(0, number);
        list.truncate(most);
        found.is_some()
    }

    proptest! {
        #[test]
        fn it_forgets_what_was_used_longest_ago(
            most in 1..40_usize,
            numbers in prop::collection::vec(0..64_u64, 0..600),
        ) {
            let mut recency = Recency::new(most);
            let mut list = Vec::new();
            for number in numbers {
                prop_assert_eq!(recency.access(number << 9), access(&mut list, most, number << 9));
            }
        }
    }
}
