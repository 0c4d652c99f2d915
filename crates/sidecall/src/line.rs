//! The protocol: a request and its answer in one cache line, so that a call moves it there and back, once.
//!
//! The caller writes its request, then a sequence number that it did not use for the request before. Who serves sees
//! the number change, copies the request, and writes answer and number. Either side may write anything at any time:
//! all accesses are atomic, and nothing is read twice.
//!
//! Who serves says that it sleeps and then looks once more; a caller writes its request and then looks whether the
//! other sleeps. A fence stands between the two on both sides, so one of them sees the other.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a line.
pub const WORDS: usize = 8;

/// What each word is.
pub mod word {
    /// The number of the request, written last.
    pub const SEQUENCE: usize = 0;
    /// What is asked for.
    pub const OPERATION: usize = 1;
    /// What it is about.
    pub const FIRST: usize = 2;
    /// What else it is about.
    pub const SECOND: usize = 3;
    /// The number of the request that is answered, written last.
    pub const ANSWERED: usize = 4;
    /// How it went.
    pub const STATUS: usize = 5;
    /// What was asked for.
    pub const VALUE: usize = 6;
    /// Not zero while who serves sleeps; the kernel's wait queue (futex) that it sleeps on.
    pub const ASLEEP: usize = 7;
}

/// A request as it was when it was copied: what the caller writes later changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number for it, any value.
    pub sequence: u64,
    /// What is asked for.
    pub operation: u64,
    /// What it is about.
    pub first: u64,
    /// What else it is about.
    pub second: u64,
}

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// How it went; zero is well.
    pub status: u64,
    /// What was asked for.
    pub value: u64,
}

/// The words that a caller and who serves it share; they should be one cache line.
#[derive(Clone, Copy)]
pub struct Line<'a>(&'a [AtomicU64; WORDS]);

impl<'a> Line<'a> {
    /// The line in these words.
    #[inline]
    pub fn new(words: &'a [AtomicU64; WORDS]) -> Self {
        Self(words)
    }

    /// Writes a request and announces it; whether who serves must be woken for it.
    #[inline]
    pub fn call(self, request: &Request) -> bool {
        self.0[word::OPERATION].store(request.operation, Ordering::Relaxed);
        self.0[word::FIRST].store(request.first, Ordering::Relaxed);
        self.0[word::SECOND].store(request.second, Ordering::Relaxed);
        self.0[word::SEQUENCE].store(request.sequence, Ordering::Release);
        fence(Ordering::SeqCst);
        self.0[word::ASLEEP].load(Ordering::Relaxed) != 0
    }

    /// The answer to the request with this number, if it is there.
    #[inline]
    pub fn answer_to(self, sequence: u64) -> Option<Answer> {
        let is_there = self.0[word::ANSWERED].load(Ordering::Acquire) == sequence;
        is_there.then(|| Answer {
            status: self.0[word::STATUS].load(Ordering::Relaxed),
            value: self.0[word::VALUE].load(Ordering::Relaxed),
        })
    }

    /// The number of the request that was announced last.
    #[inline]
    pub fn announced(self) -> u64 {
        self.0[word::SEQUENCE].load(Ordering::Acquire)
    }

    /// The number of the request that was answered last.
    #[inline]
    pub fn answered(self) -> u64 {
        self.0[word::ANSWERED].load(Ordering::Acquire)
    }

    /// Copies the request that was announced by `sequence`, each word once.
    #[inline]
    pub fn copy(self, sequence: u64) -> Request {
        Request {
            sequence,
            operation: self.0[word::OPERATION].load(Ordering::Relaxed),
            first: self.0[word::FIRST].load(Ordering::Relaxed),
            second: self.0[word::SECOND].load(Ordering::Relaxed),
        }
    }

    /// Answers the request with this number.
    #[inline]
    pub fn answer(self, sequence: u64, answer: Answer) {
        self.0[word::STATUS].store(answer.status, Ordering::Relaxed);
        self.0[word::VALUE].store(answer.value, Ordering::Relaxed);
        self.0[word::ANSWERED].store(sequence, Ordering::Release);
    }

    /// Says that who serves is about to sleep. It looks at the line once more before it does.
    #[inline]
    pub fn sleeps(self) {
        self.0[word::ASLEEP].store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that who serves is awake.
    #[inline]
    pub fn is_awake(self) {
        self.0[word::ASLEEP].store(0, Ordering::Relaxed);
    }

    /// Whether who serves said that it sleeps and nobody has woken it yet.
    #[inline]
    pub fn says_asleep(self) -> bool {
        self.0[word::ASLEEP].load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(target_os = "linux", target_endian = "little", not(loom)))]
impl Line<'_> {
    /// Wakes who serves. The word is cleared first: who is not asleep yet then does not fall asleep.
    pub fn wake(self) {
        self.is_awake();
        let queue = self.0[word::ASLEEP].as_ptr().cast_const();
        // SAFETY: the four lower bytes of a word that lives as long as the line, aligned as the word is. The kernel
        // takes their address and nobody reads or writes through this reference.
        let queue = unsafe { &*queue.cast::<std::sync::atomic::AtomicU32>() };
        // It can fail for addresses that are no memory only.
        let _ = rustix::thread::futex::wake(queue, rustix::thread::futex::Flags::empty(), 1);
    }

    /// What the kernel is told to wait for: the word that says that who serves sleeps, as long as it does.
    pub(crate) fn sleep(self) -> rustix::thread::futex::Wait {
        use rustix::thread::futex::{Wait, WaitFlags, WaitPtr};
        let mut wait = Wait::new();
        wait.val = 1;
        wait.uaddr = WaitPtr::new(self.0[word::ASLEEP].as_ptr().cast());
        wait.flags = WaitFlags::SIZE_U32;
        wait
    }

    /// The address of the word that announces requests.
    pub(crate) fn announcement(self) -> *const u64 {
        self.0[word::SEQUENCE].as_ptr().cast_const()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_changes_after_it_was_copied_stays_as_it_was() {
        let words = [const { AtomicU64::new(0) }; WORDS];
        let line = Line::new(&words);
        let request = Request {
            sequence: 9,
            operation: 1,
            first: 2,
            second: 3,
        };
        assert!(!line.call(&request));
        let copied = line.copy(line.announced());
        words[word::FIRST].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(copied, request);
        assert_eq!(line.answer_to(9), None);
        let answer = Answer { status: 4, value: 5 };
        line.answer(9, answer);
        assert_eq!(line.answer_to(9), Some(answer));
    }

    #[test]
    fn a_thread_that_serves_answers_another_one() {
        let words = [const { AtomicU64::new(0) }; WORDS];
        let line = Line::new(&words);
        let last = 20;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut served = 0;
                while served < last {
                    let sequence = line.announced();
                    if sequence != served {
                        served = sequence;
                        let request = line.copy(sequence);
                        let value = request.first + request.second;
                        line.answer(sequence, Answer { status: 0, value });
                    }
                    std::thread::yield_now();
                }
            });
            for sequence in 1..=last {
                line.call(&Request {
                    sequence,
                    operation: 0,
                    first: sequence,
                    second: 100,
                });
                let answer = loop {
                    match line.answer_to(sequence) {
                        Some(answer) => break answer,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(answer.value, sequence + 100);
            }
        });
    }

    #[test]
    fn a_caller_is_told_that_who_serves_sleeps() {
        let words = [const { AtomicU64::new(0) }; WORDS];
        let line = Line::new(&words);
        line.sleeps();
        let request = Request {
            sequence: 1,
            operation: 0,
            first: 0,
            second: 0,
        };
        assert!(line.call(&request));
        line.is_awake();
        assert!(!line.call(&request));
    }
}
