//! What one core does alone.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use super::sample::{Interval, sampled};
use super::{Options, Unavailable, refused, stay_on};

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
/// Bytes of a cache line, and of two that are fetched together.
const LINES: usize = 128;

/// Picoseconds a tick of the time-stamp counter.
pub fn tick(options: &Options) -> Result<Interval, Unavailable> {
    const SPAN: Duration = Duration::from_millis(2);
    let samples = (0..options.samples).map(|_| {
        let (start, first) = (Instant::now(), ticks());
        while start.elapsed() < SPAN {}
        let (elapsed, last) = (start.elapsed(), ticks());
        (elapsed.as_nanos() * 1000 / u128::from(last.wrapping_sub(first).max(1))) as u64
    });
    Ok(Interval::of(samples.collect()))
}

fn ticks() -> u64 {
    // SAFETY: the instruction reads a counter, and x86-64 Linux lets programs use it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Lines that do not fit the first-level cache but the second's, in an order that no prefetcher guesses.
pub fn cached_line(options: &Options) -> Result<Interval, Unavailable> {
    const COUNT: usize = (256 << 10) / LINES;
    #[derive(Clone, Copy)]
    #[repr(align(128))]
    struct Line {
        next: usize,
    }
    let mut lines = vec![Line { next: 0 }; COUNT];
    // A step that has no factor in common with the count visits every line.
    const STEP: usize = 1237;
    for index in 0..COUNT {
        lines[index * STEP % COUNT].next = (index + 1) * STEP % COUNT;
    }
    let mut at = 0;
    sampled(options.samples, |operations| {
        for _ in 0..operations {
            at = lines[at].next;
        }
        black_box(at);
        Ok(())
    })
}

/// Looks at a word that nobody changes.
pub fn poll(options: &Options) -> Result<Interval, Unavailable> {
    let slot = AtomicU64::new(0);
    sampled(options.samples, |operations| {
        for _ in 0..operations {
            if black_box(&slot).load(Ordering::Acquire) != 0 {
                break;
            }
        }
        Ok(())
    })
}

/// Calls one of several functions by a number that cannot be guessed.
pub fn branch(options: &Options) -> Result<Interval, Unavailable> {
    let handlers: [fn(u64) -> u64; 4] = [
        |state| state ^ 0x9e37_79b9,
        |state| state.wrapping_add(0x7f4a_7c15),
        |state| state.rotate_left(7),
        |state| !state,
    ];
    // What a handler computes must not reach the numbers, or they could fall into a short cycle.
    let (mut number, mut state) = (1_u64, 1_u64);
    sampled(options.samples, |operations| {
        for _ in 0..operations {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state = black_box(&handlers)[(number >> 62) as usize](state);
        }
        black_box(state);
        Ok(())
    })
}

/// Changes one of a virtual processor's registers in memory, where the next change finds it.
pub fn update(options: &Options) -> Result<Interval, Unavailable> {
    let mut registers = [0_u64; 128];
    sampled(options.samples, |operations| {
        for operation in 0..operations {
            let place = black_box(operation as usize & 1);
            registers[place] = registers[place].wrapping_add(1);
            black_box(&mut registers);
        }
        Ok(())
    })
}

/// A call that the kernel answers at once.
pub fn system_call(options: &Options) -> Result<Interval, Unavailable> {
    sampled(options.samples, |operations| {
        for _ in 0..operations {
            black_box(rustix::process::getppid());
        }
        Ok(())
    })
}

/// Signals that their handlers have seen, in every thread: a handler has nothing else that it could reach.
pub(super) static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Release);
}

/// The handler of SIGUSR2 while it is measured; then what it was before.
pub(super) struct Handler(libc::sigaction);

impl Handler {
    pub fn install() -> Result<Handler, Unavailable> {
        // SAFETY: both structures are plain data for which zeros are valid, and the handler only adds to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            match libc::sigaction(libc::SIGUSR2, &action, &mut before) {
                0 => Ok(Handler(before)),
                _ => Err(refused("handling a signal")(std::io::Error::last_os_error())),
            }
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: the structure is the one that the kernel has filled.
        unsafe { libc::sigaction(libc::SIGUSR2, &self.0, std::ptr::null_mut()) };
    }
}

/// A signal to the own thread.
pub fn signal(options: &Options) -> Result<Interval, Unavailable> {
    let _handler = Handler::install()?;
    sampled(options.samples, |operations| {
        for _ in 0..operations {
            // SAFETY: the signal has a handler.
            if unsafe { libc::raise(libc::SIGUSR2) } != 0 {
                return Err(refused("sending a signal")(std::io::Error::last_os_error()));
            }
        }
        Ok(())
    })
}

/// Anonymous memory.
pub(super) struct Mapping {
    start: *mut std::ffi::c_void,
    size: usize,
}

// SAFETY: the memory belongs to no thread, and is only changed through atomics or a unique reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(pages: usize) -> Result<Mapping, Unavailable> {
        let size = pages * PAGE;
        // SAFETY: a new mapping at an address that the kernel chooses takes nothing from anybody.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let start = start.map_err(refused("mapping memory"))?;
        // SAFETY: the range is the mapping. Large pages would hide faults; a kernel without them need not hear of it.
        let _ = unsafe { rustix::mm::madvise(start, size, rustix::mm::Advice::LinuxNoHugepage) };
        Ok(Mapping { start, size })
    }

    /// Stores to a page.
    pub fn touch(&self, page: usize) {
        self.word(page).fetch_add(1, Ordering::Relaxed);
    }

    fn word(&self, page: usize) -> &AtomicU64 {
        assert!(page < self.size / PAGE, "the page is mapped");
        // SAFETY: the address is in the mapping, aligned, and everybody accesses it atomically.
        unsafe { &*self.start.cast::<u8>().add(page * PAGE).cast::<AtomicU64>() }
    }

    /// Loads from a page.
    pub fn look(&self, page: usize) -> u64 {
        self.word(page).load(Ordering::Relaxed)
    }

    /// Gives every page back: the next reference finds none.
    fn empty(&self) -> Result<(), Unavailable> {
        // SAFETY: the range is the mapping, and nobody holds a reference to its contents.
        let emptied =
            unsafe { rustix::mm::madvise(self.start, self.size, rustix::mm::Advice::LinuxDontNeed) };
        emptied.map_err(refused("giving pages back"))
    }

    /// Takes the right to write page 0, or gives it back.
    fn protect(&self, writable: bool) -> Result<(), Unavailable> {
        let flags = if writable {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::READ
        };
        // SAFETY: the page is in the mapping, and nobody writes it while it cannot be written.
        let changed = unsafe { rustix::mm::mprotect(self.start, PAGE, flags) };
        changed.map_err(refused("protecting a page"))
    }

    /// Picoseconds in which a right is taken from a page that is in use, beside a system call that finds nothing to do.
    pub fn purges(&self, options: &Options, touch: impl Fn()) -> Result<Interval, Unavailable> {
        let mut samples = Vec::with_capacity(options.samples);
        const EACH: u32 = 64;
        for _ in 0..options.samples {
            let (mut purging, mut idle) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..EACH {
                self.protect(true)?;
                self.touch(0);
                touch();
                let start = Instant::now();
                self.protect(false)?;
                purging += start.elapsed();
                let start = Instant::now();
                self.protect(false)?;
                idle += start.elapsed();
            }
            let each = purging.saturating_sub(idle).as_nanos() * 1000 / u128::from(EACH);
            samples.push(each as u64);
        }
        self.protect(true)?;
        Ok(Interval::of(samples))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's, and goes with it.
        let _ = unsafe { rustix::mm::munmap(self.start, self.size) };
    }
}

/// First stores to pages.
pub fn page_fault(options: &Options) -> Result<Interval, Unavailable> {
    const PAGES: usize = 512;
    let mapping = Mapping::new(PAGES)?;
    let mut samples = Vec::with_capacity(options.samples);
    for _ in 0..options.samples {
        mapping.empty()?;
        let start = Instant::now();
        (0..PAGES).for_each(|page| mapping.touch(page));
        samples.push((start.elapsed().as_nanos() * 1000 / PAGES as u128) as u64);
    }
    Ok(Interval::of(samples))
}

/// A byte through a pipe and one back, between threads that share a core: each way is a write, a switch and a read.
pub fn context_switch(options: &Options) -> Result<Interval, Unavailable> {
    let (mut there, mut at_there) = pipe()?;
    let (mut back, mut at_back) = pipe()?;
    let core = options.cores.0;
    let both_ways = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stay_on(core);
            let mut byte = [0];
            while there.read_exact(&mut byte).is_ok() && at_back.write_all(&byte).is_ok() {}
        });
        let measured = sampled(options.samples, |operations| {
            for _ in 0..operations {
                at_there.write_all(&[0]).map_err(refused("writing to a pipe"))?;
                back.read_exact(&mut [0]).map_err(refused("reading a pipe"))?;
            }
            Ok(())
        });
        // The other thread ends when nothing can come any more.
        drop(at_there);
        measured
    });
    Ok(both_ways?.map(|time| time / 2))
}

fn pipe() -> Result<(File, File), Unavailable> {
    let (read, write) = rustix::pipe::pipe().map_err(refused("making a pipe"))?;
    Ok((File::from(read), File::from(write)))
}

/// A right taken from a page that only this core uses.
pub fn purge(options: &Options) -> Result<Interval, Unavailable> {
    Mapping::new(1)?.purges(options, || ())
}

/// Writes that have reached a disk, in a file without a name that goes away by itself.
pub fn disk(options: &Options) -> Result<Interval, Unavailable> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR);
    let file = File::from(file.map_err(refused("making a temporary file"))?);
    let block = [0x5e; PAGE];
    let mut samples = Vec::new();
    // Disks are slow: a few dozen say enough.
    for sample in 0..options.samples.min(40) {
        let start = Instant::now();
        let offset = sample as u64 * PAGE as u64;
        file.write_all_at(&block, offset)
            .and_then(|()| file.sync_data())
            .map_err(refused("writing to a temporary file"))?;
        samples.push(start.elapsed().as_nanos() as u64 * 1000);
    }
    Ok(Interval::of(samples))
}
