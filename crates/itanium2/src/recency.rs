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
    /// Where the circle begins: the number that was used last, or the one before it.
    first: u16,
    /// The number that was used last: `first`, or the one behind it. Two that are used in turns need no new links.
    front: u16,
    /// The number in whose place the last new one came.
    replaced: Option<u64>,
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
            front: 0,
            replaced: None,
        }
    }

    /// The place of the number that was used last: below the most that fit.
    pub fn place(&self) -> usize {
        usize::from(self.front)
    }

    /// The number that had given way to the last new one, if one had to.
    pub fn replaced(&self) -> Option<u64> {
        self.replaced
    }

    /// Whether a number is among them; it is the one that was used last then, in place of the one that was used
    /// longest ago if they were too many.
    #[inline]
    pub fn access(&mut self, number: u64) -> bool {
        let Some(front) = self.places.get(usize::from(self.front)) else {
            self.insert(number);
            return false;
        };
        if front.number == number {
            return true;
        }
        let other = match self.front == self.first {
            true => front.behind,
            false => self.first,
        };
        if self.places[usize::from(other)].number == number {
            self.front = other;
            return true;
        }
        self.look_up(number)
    }

    /// As [`Recency::access`], for a number that is none of the two that were used last.
    fn look_up(&mut self, number: u64) -> bool {
        if self.front != self.first {
            self.make_first(self.front);
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
        (self.first, self.front) = (at, at);
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
            if at > 0 {
                self.put_first(at);
            }
            return;
        }
        // The last of the circle stands before the first: it only has to become the first itself.
        let last = self.places[usize::from(self.first)].before;
        self.unchain(last);
        let chained = self.chains[chain(number)];
        let place = &mut self.places[usize::from(last)];
        self.replaced = Some(place.number);
        (place.number, place.chained) = (number, chained);
        self.chains[chain(number)] = last;
        (self.first, self.front) = (last, last);
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
                let number = number << 9;
                let last = list.last().copied().filter(|_| list.len() == most);
                let found = recency.access(number);
                prop_assert_eq!(found, access(&mut list, most, number));
                prop_assert!(recency.place() < most);
                prop_assert_eq!(recency.places[recency.place()].number, number);
                if !found {
                    prop_assert_eq!(recency.replaced(), last);
                }
            }
        }
    }
}
