//! The front end: 32 bytes a cycle into a buffer of eight bundles.

/// Pairs of bundles that the instruction buffer holds.
pub(super) const BUFFER_PAIRS: usize = 4;
/// Bytes of a pair of bundles, as a power of two.
pub(super) const PAIR_LOG2: u32 = 5;
/// No pair of bundles.
const NONE: u64 = u64::MAX;

/// Which bundles the front end has fetched last: what decides whether it fetches again.
pub(super) struct Position {
    /// The bundle of the last instruction.
    ip: u64,
    /// The pair that was fetched last.
    pair: u64,
    is_redirected: bool,
}

/// What an instruction's bundle is to the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bundle {
    /// That of the instruction before.
    Same,
    /// Another one, of the pair that was fetched last.
    Fetched,
    /// One that has to be fetched.
    New,
}

impl Position {
    /// Nothing was fetched.
    pub fn new() -> Position {
        Position {
            ip: 0,
            pair: NONE,
            is_redirected: true,
        }
    }

    /// The bundle of the last instruction.
    pub fn ip(&self) -> u64 {
        self.ip
    }

    /// The next instruction is not the one behind the last: a branch was taken, or the buffer is empty.
    #[inline]
    pub fn redirect(&mut self) {
        self.pair = NONE;
        self.is_redirected = true;
    }

    /// The last instruction was in the bundle at `ip`.
    #[inline]
    pub fn stay(&mut self, ip: u64) {
        self.ip = ip;
    }

    /// The last instruction was in the bundle at `ip`, whose pair was fetched last.
    #[inline]
    pub fn reach(&mut self, ip: u64) {
        self.ip = ip;
        self.pair = ip >> PAIR_LOG2;
        self.is_redirected = false;
    }

    /// Goes on to the bundle at `ip`.
    #[inline]
    pub fn go_to(&mut self, ip: u64) -> Bundle {
        if self.ip == ip && !self.is_redirected {
            return Bundle::Same;
        }
        self.is_redirected = false;
        self.ip = ip;
        let pair = ip >> PAIR_LOG2;
        if pair == self.pair {
            return Bundle::Fetched;
        }
        self.pair = pair;
        Bundle::New
    }
}

/// Cycles in which nothing is fetched though there is room for it, by what the pipeline has told the front end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// To start again.
    pub flushed: u64,
    /// To go to where a return or an indirect branch was predicted to.
    pub resteered: u64,
}

/// When bundles come.
pub(super) struct FrontEnd {
    /// When the bundles of the pair that was fetched last could be dispersed.
    pub available: u64,
    /// When each of the last pairs was dispersed, which made room in the buffer.
    pub dispersed: [u64; BUFFER_PAIRS],
    /// Which of them was the first.
    pub next: usize,
    /// What was lost since somebody looked.
    pub lost: Lost,
}

impl FrontEnd {
    /// An empty buffer.
    pub fn new(cycle: u64) -> FrontEnd {
        FrontEnd {
            available: cycle,
            dispersed: [0; BUFFER_PAIRS],
            next: 0,
            lost: Lost::default(),
        }
    }

    /// Fetches a pair that comes `more` cycles late and is dispersed when `expected` says.
    #[inline]
    pub fn fetch(&mut self, more: u64, expected: u64) {
        let at = (self.available + 1).max(self.dispersed[self.next]);
        self.dispersed[self.next] = expected;
        self.next = (self.next + 1) % BUFFER_PAIRS;
        self.available = at + more;
    }

    /// Loses cycles before the next fetch.
    pub fn resteer(&mut self, bubbles: u64) {
        self.available += bubbles;
        self.lost.resteered += bubbles;
    }

    /// Starts again with an empty buffer, whose first bundles can be dispersed behind `cycle`, so many bubbles later
    /// than if it had not.
    pub fn restart(&mut self, cycle: u64, bubbles: u64) {
        self.lost.flushed += bubbles;
        self.available = cycle;
        self.dispersed = [0; BUFFER_PAIRS];
    }
}
