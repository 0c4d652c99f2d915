//! What several points of a sweep need alike, computed once.
//!
//! Points that differ in one axis often have one baseline, which takes as long as what is held against it. The first
//! that asks computes it, and who asks meanwhile waits. Nothing that comes out hangs on who that was: the value is one
//! of inputs that all points have, of a name, and of the context's seed and whether it records.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A name, with the seed and whether is recorded.
type Key = (String, u64, bool);
/// A value, or none while nobody has computed it.
type Place = Arc<Mutex<Option<Arc<dyn Any + Send + Sync>>>>;

/// The values of a plan that have a name.
#[derive(Default)]
pub struct Shared {
    places: Mutex<BTreeMap<Key, Place>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Nothing yet.
    pub fn new() -> Shared {
        Shared::default()
    }

    /// The value of a name, computed unless it is there. What fails is not kept: the next one tries again.
    ///
    /// # Panics
    /// When the name has a value of another type.
    pub(crate) fn once<T: Send + Sync + 'static, E>(
        &self,
        (name, seed, trace): (&str, u64, bool),
        compute: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let key = (name.to_owned(), seed, trace);
        let place = Arc::clone(locked(&self.places).entry(key).or_default());
        let mut kept = locked(&place);
        let value = match &*kept {
            Some(value) => Arc::clone(value),
            None => {
                let value: Arc<dyn Any + Send + Sync> = Arc::new(compute()?);
                Arc::clone(kept.insert(value))
            }
        };
        drop(kept);
        Ok(value
            .downcast()
            .unwrap_or_else(|_| panic!("`{name}` is shared with two types")))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(locked(&self.places).keys())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_value_is_computed_once_for_each_name_and_seed() {
        let (shared, computed) = (Shared::new(), AtomicUsize::new(0));
        let value = |name: &str, seed: u64, trace: bool| {
            let compute = || Ok::<_, ()>(computed.fetch_add(1, Ordering::Relaxed));
            *shared.once((name, seed, trace), compute).expect("a value")
        };
        assert_eq!([value("a", 0, false), value("a", 0, false)], [0, 0]);
        assert_eq!(
            [value("a", 1, false), value("a", 0, true), value("b", 0, false)],
            [1, 2, 3]
        );
        assert_eq!([value("a", 1, false), value("b", 0, false)], [1, 3]);
    }

    #[test]
    fn a_failure_is_not_kept() {
        let shared = Shared::new();
        assert_eq!(
            shared.once(("a", 0, false), || Err::<u64, _>("interrupted")),
            Err("interrupted")
        );
        assert_eq!(
            shared.once(("a", 0, false), || Ok::<_, ()>(7_u64)),
            Ok(Arc::new(7))
        );
    }

    #[test]
    fn who_asks_meanwhile_waits() {
        let (shared, computed) = (Shared::new(), AtomicUsize::new(0));
        let compute = || {
            std::thread::yield_now();
            Ok::<_, ()>(computed.fetch_add(1, Ordering::Relaxed))
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(shared.once(("a", 0, false), compute), Ok(Arc::new(0))));
            }
        });
    }
}
