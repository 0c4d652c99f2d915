//! What one access of host memory moves: atomically, so that processors share it.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// An unsigned integer that one memory access moves.
pub trait Value: Copy {
    /// Its size in bytes.
    const SIZE: u64;
    /// Loads it.
    ///
    /// # Safety
    /// `host` must be aligned and valid for reads.
    unsafe fn load(host: *mut u8) -> u64;
    /// Stores the low bytes of `value`.
    ///
    /// # Safety
    /// `host` must be aligned and valid for writes.
    unsafe fn store(host: *mut u8, value: u64);
    /// Exchanges it.
    ///
    /// # Safety
    /// `host` must be aligned and valid for reads and writes.
    unsafe fn exchange(host: *mut u8, value: u64) -> u64;
    /// Stores `value` if the memory holds `expected`; returns what the memory held.
    ///
    /// # Safety
    /// `host` must be aligned and valid for reads and writes.
    unsafe fn compare_exchange(host: *mut u8, expected: u64, value: u64) -> u64;
    /// Adds; returns what the memory held.
    ///
    /// # Safety
    /// `host` must be aligned and valid for reads and writes.
    unsafe fn fetch_add(host: *mut u8, value: u64) -> u64;
    /// Reverses the order of the low `SIZE` bytes.
    fn swap(value: u64) -> u64;
}

macro_rules! value {
    ($integer:ty, $atomic:ty) => {
        impl Value for $integer {
            const SIZE: u64 = size_of::<$integer>() as u64;

            #[inline(always)]
            unsafe fn load(host: *mut u8) -> u64 {
                // SAFETY: the caller guarantees an aligned pointer that is valid for reads.
                u64::from(unsafe { <$atomic>::from_ptr(host.cast()) }.load(Ordering::Relaxed))
            }

            #[inline(always)]
            unsafe fn store(host: *mut u8, value: u64) {
                // SAFETY: the caller guarantees an aligned pointer that is valid for writes.
                unsafe { <$atomic>::from_ptr(host.cast()) }.store(value as $integer, Ordering::Relaxed);
            }

            #[inline(always)]
            unsafe fn exchange(host: *mut u8, value: u64) -> u64 {
                // SAFETY: the caller guarantees an aligned pointer that is valid for reads and writes.
                let cell = unsafe { <$atomic>::from_ptr(host.cast()) };
                u64::from(cell.swap(value as $integer, Ordering::SeqCst))
            }

            #[inline(always)]
            unsafe fn compare_exchange(host: *mut u8, expected: u64, value: u64) -> u64 {
                // SAFETY: the caller guarantees an aligned pointer that is valid for reads and writes.
                let cell = unsafe { <$atomic>::from_ptr(host.cast()) };
                if expected > u64::from(<$integer>::MAX) {
                    return u64::from(cell.load(Ordering::SeqCst));
                }
                let answer = cell.compare_exchange(
                    expected as $integer,
                    value as $integer,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
                u64::from(answer.unwrap_or_else(|held| held))
            }

            #[inline(always)]
            unsafe fn fetch_add(host: *mut u8, value: u64) -> u64 {
                // SAFETY: the caller guarantees an aligned pointer that is valid for reads and writes.
                let cell = unsafe { <$atomic>::from_ptr(host.cast()) };
                u64::from(cell.fetch_add(value as $integer, Ordering::SeqCst))
            }

            #[inline(always)]
            fn swap(value: u64) -> u64 {
                u64::from((value as $integer).swap_bytes())
            }
        }
    };
}

value!(u8, AtomicU8);
value!(u16, AtomicU16);
value!(u32, AtomicU32);
value!(u64, AtomicU64);
