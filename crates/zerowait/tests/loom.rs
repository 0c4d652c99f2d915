//! Every interleaving of the queue, the gate and the join: nothing lost, nothing twice, never two inside.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sidestep-zerowait --release --test loom`

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use sidestep_zerowait::Bring;
use sidestep_zerowait::model::{Bounded, Entered, FreeList, GateLock, JoinTable};

#[test]
fn two_producers_and_a_consumer_lose_and_double_nothing() {
    loom::model(|| {
        let queue = Arc::new(Bounded::new(2));
        let producers: Vec<_> = (0..2u64)
            .map(|producer| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.push(producer).is_ok())
            })
            .collect();
        let early = queue.pop();
        let accepted: Vec<bool> = producers
            .into_iter()
            .map(|producer| producer.join().unwrap())
            .collect();
        let mut taken: Vec<u64> = early
            .into_iter()
            .chain(std::iter::from_fn(|| queue.pop()))
            .collect();
        taken.sort_unstable();
        assert_eq!(accepted, [true, true], "two fit");
        assert_eq!(taken, [0, 1]);
    });
}

#[test]
fn two_consumers_share_out_what_there_is() {
    loom::model(|| {
        let queue = Arc::new(Bounded::new(2));
        queue.push(1u64).unwrap();
        queue.push(2).unwrap();
        let other = Arc::clone(&queue);
        let theirs = thread::spawn(move || other.pop());
        let ours = queue.pop();
        let mut taken: Vec<u64> = ours.into_iter().chain(theirs.join().unwrap()).collect();
        taken.extend(std::iter::from_fn(|| queue.pop()));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn a_full_queue_refuses_and_takes_again_after_a_pop() {
    loom::model(|| {
        let queue = Arc::new(Bounded::new(1));
        queue.push(1u64).unwrap();
        let other = Arc::clone(&queue);
        let consumer = thread::spawn(move || other.pop());
        let pushed = queue.push(2).is_ok();
        assert_eq!(consumer.join().unwrap(), Some(1));
        assert_eq!(queue.pop(), pushed.then_some(2));
    });
}

/// A caller comes to the gate; if it is told to start the gate, it serves until nobody waits.
fn call(gate: &GateLock, inside: &AtomicUsize, served: &AtomicUsize, word: u64) -> bool {
    let mut words = match gate.enter([word, 0, 0, 0]) {
        Entered::Start(words) => words,
        Entered::Waits => return true,
        Entered::Busy | Entered::Full => return false,
        Entered::Poisoned => panic!("nobody poisons"),
    };
    loop {
        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two inside");
        served.fetch_add(1 << (8 * words[0]), Ordering::Relaxed);
        inside.fetch_sub(1, Ordering::Relaxed);
        assert!(gate.body_ended());
        match gate.finish() {
            Some(next) => words = next,
            None => return true,
        }
    }
}

/// All interleavings of two callers; of three, those with at most three preemptions, which is where bugs are
/// and still ends.
fn gate_with_callers(capacity: Option<usize>, callers: u64) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (callers > 2).then_some(3);
    builder.check(move || {
        let gate = Arc::new(GateLock::new(capacity));
        let inside = Arc::new(AtomicUsize::new(0));
        let served = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = (1..callers)
            .map(|word| {
                let (gate, inside, served) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&served));
                thread::spawn(move || call(&gate, &inside, &served, word))
            })
            .collect();
        let mut admitted = usize::from(call(&gate, &inside, &served, 0));
        for (other, word) in others.into_iter().zip(1..) {
            admitted |= usize::from(other.join().unwrap()) << (8 * word);
        }
        assert_eq!(
            served.load(Ordering::Relaxed),
            admitted,
            "each that was admitted is served once, and no other"
        );
        assert_eq!(gate.waiting(), 0, "nobody is left behind");
    });
}

#[test]
fn a_gate_with_a_queue_serves_everyone_once() {
    gate_with_callers(Some(2), 2);
}

#[test]
fn a_gate_with_a_short_queue_serves_everyone_it_admits() {
    gate_with_callers(Some(1), 3);
}

#[test]
fn a_lock_or_retry_gate_serves_those_it_admits() {
    gate_with_callers(None, 3);
}

#[test]
fn a_hold_is_released_by_another_core_before_or_after_the_body_ends() {
    loom::model(|| {
        let gate = Arc::new(GateLock::new(Some(2)));
        let finished = Arc::new(AtomicUsize::new(0));
        assert_eq!(gate.enter([1, 0, 0, 0]), Entered::Start([1, 0, 0, 0]));
        gate.hold();
        let (other, turns) = (Arc::clone(&gate), Arc::clone(&finished));
        let releaser = thread::spawn(move || {
            if other.release().expect("it is held") {
                turns.fetch_add(1, Ordering::Relaxed);
                assert_eq!(other.finish(), None);
            }
        });
        if gate.body_ended() {
            finished.fetch_add(1, Ordering::Relaxed);
            assert_eq!(gate.finish(), None);
        }
        releaser.join().unwrap();
        assert_eq!(finished.load(Ordering::Relaxed), 1, "exactly one finishes");
        assert_eq!(gate.enter([2, 0, 0, 0]), Entered::Start([2, 0, 0, 0]));
    });
}

#[test]
fn the_last_of_two_signals_starts_the_join_with_both_words() {
    loom::model(|| {
        let joins = Arc::new(JoinTable::new(1, &[]));
        let (index, generation) = joins.activate(2).unwrap();
        let other = Arc::clone(&joins);
        let theirs = thread::spawn(move || {
            other
                .signal(index, generation, Bring::Add { slot: 0, word: 1 })
                .unwrap()
        });
        let ours = joins
            .signal(index, generation, Bring::Store { slot: 1, word: 5 })
            .unwrap();
        let fired: Vec<_> = ours.into_iter().chain(theirs.join().unwrap()).collect();
        assert_eq!(fired, [[1, 5, 0, 0]]);
        assert!(joins.activate(1).is_some(), "free again");
    });
}

#[test]
fn a_number_is_given_back_while_another_is_taken() {
    loom::model(|| {
        let free = Arc::new(FreeList::new(0, 2));
        let mine = free.take().unwrap();
        let other = Arc::clone(&free);
        let theirs = thread::spawn(move || {
            let number = other.take().expect("two for two");
            other.give(number);
            other.take().expect("two for two")
        });
        free.give(mine);
        let mine = free.take().expect("two for two");
        assert_ne!(mine, theirs.join().unwrap());
        assert_eq!(free.take(), None);
    });
}

/// What the stress run found: a last signal must not fail because somebody is in the middle of activating.
#[test]
fn a_join_fires_while_another_core_activates() {
    loom::model(|| {
        let joins = Arc::new(JoinTable::new(2, &[]));
        let (index, generation) = joins.activate(1).unwrap();
        let other = Arc::clone(&joins);
        let activator = thread::spawn(move || other.activate(1).is_some());
        assert_eq!(joins.signal(index, generation, Bring::Nothing), Ok(Some([0; 4])));
        assert!(activator.join().unwrap());
    });
}
