//! What passes between two cores: a thread on each, one of which measures.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::futex;

use super::core::{HANDLED, Handler, Mapping};
use super::sample::{Interval, sampled};
use super::{Options, Unavailable, refused, stay_on};

/// A cache line of its own, with the neighbour that is fetched along.
#[repr(align(128))]
struct Line<T>(T);

/// Lets `partner` execute on the second core while `own` measures on the first. The partner ends when it is told to.
fn beside<T>(
    options: &Options,
    partner: impl FnOnce(&AtomicBool) + Send,
    own: impl FnOnce() -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    if options.cores.0 == options.cores.1 {
        return Err(Unavailable::OneCore);
    }
    let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let core = options.cores.1;
    std::thread::scope(|scope| {
        let (stop, ready) = (&stop, &ready);
        let partner = scope.spawn(move || {
            let placed = stay_on(core);
            ready.store(true, Ordering::Release);
            if placed.is_ok() {
                partner(stop);
            }
            placed
        });
        while !ready.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // A partner that could not get to its core answers nobody: do not wait for it.
        let result = if partner.is_finished() {
            Err(Unavailable::OneCore)
        } else {
            own()
        };
        stop.store(true, Ordering::Release);
        match partner.join() {
            Ok(placed) => placed.and(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Half a round trip of a value that each core waits for and answers.
pub fn transfer(options: &Options) -> Result<Interval, Unavailable> {
    let line = Line(AtomicU64::new(0));
    let value = &line.0;
    let answer = |stop: &AtomicBool| {
        let mut next = 1;
        while !stop.load(Ordering::Relaxed) {
            if value.load(Ordering::Acquire) == next {
                value.store(next + 1, Ordering::Release);
                next += 2;
            }
        }
    };
    let mut last = 0;
    let round_trip = beside(options, answer, || {
        sampled(options.samples, |operations| {
            for _ in 0..operations {
                value.store(last + 1, Ordering::Release);
                last += 2;
                while value.load(Ordering::Acquire) != last {
                    std::hint::spin_loop();
                }
            }
            Ok(())
        })
    })?;
    Ok(round_trip.map(|time| time / 2))
}

/// Half a round trip of threads that sleep until the other wakes them.
pub fn wake(options: &Options) -> Result<Interval, Unavailable> {
    let (asked, answered) = (Line(AtomicU32::new(0)), Line(AtomicU32::new(0)));
    let (asked, answered) = (&asked.0, &answered.0);
    /// Sleeps until the word is no longer `value`.
    fn sleep(word: &AtomicU32, value: u32) {
        while word.load(Ordering::Acquire) == value {
            // The word has changed meanwhile, or a signal came: it is looked at again either way.
            let _ = futex::wait(word, futex::Flags::PRIVATE, value, None);
        }
    }
    fn tell(word: &AtomicU32) {
        word.fetch_add(1, Ordering::Release);
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }
    let answer = |stop: &AtomicBool| {
        for round in 0u32.. {
            sleep(asked, round);
            if stop.load(Ordering::Acquire) {
                return;
            }
            tell(answered);
        }
    };
    // Whoever stops the partner wakes it as well: it sleeps when nobody asks.
    let waker = |stop: &AtomicBool| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                tell(asked);
            });
            answer(stop);
        });
    };
    let mut round = 0;
    let round_trip = beside(options, waker, || {
        sampled(options.samples, |operations| {
            for _ in 0..operations {
                tell(asked);
                sleep(answered, round);
                round += 1;
            }
            Ok(())
        })
    })?;
    Ok(round_trip.map(|time| time / 2))
}

/// From sending a signal until its handler on the other core has been seen to execute.
pub fn remote_signal(options: &Options) -> Result<Interval, Unavailable> {
    let _handler = Handler::install()?;
    let thread = AtomicI32::new(0);
    let execute = |stop: &AtomicBool| {
        thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    beside(options, execute, || {
        let target = loop {
            match thread.load(Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                target => break target,
            }
        };
        let process = rustix::process::getpid().as_raw_nonzero().get();
        sampled(options.samples, |operations| {
            for _ in 0..operations {
                let before = HANDLED.load(Ordering::Acquire);
                // SAFETY: the signal has a handler, and the thread lives until it is told to stop.
                let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, target, libc::SIGUSR2) };
                if sent != 0 {
                    return Err(refused("sending a signal")(std::io::Error::last_os_error()));
                }
                while HANDLED.load(Ordering::Acquire) == before {
                    std::hint::spin_loop();
                }
            }
            Ok(())
        })
    })
}

/// Half a round trip of a datagram of 64 bytes.
pub fn packet(options: &Options) -> Result<Interval, Unavailable> {
    let socket = || UdpSocket::bind("127.0.0.1:0").map_err(refused("opening a socket"));
    let (own, other) = (socket()?, socket()?);
    // Nobody waits for ever: datagrams may be lost, and the partner looks whether it is to stop.
    const PATIENCE: Duration = Duration::from_millis(100);
    for (socket, peer) in [(&own, &other), (&other, &own)] {
        let peer = peer.local_addr().map_err(refused("opening a socket"))?;
        socket
            .connect(peer)
            .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
            .map_err(refused("opening a socket"))?;
    }
    let echo = |stop: &AtomicBool| {
        let mut bytes = [0; 64];
        while !stop.load(Ordering::Relaxed) {
            if let Ok(size) = other.recv(&mut bytes) {
                // A datagram that cannot be sent is one that is lost.
                let _ = other.send(&bytes[..size]);
            }
        }
    };
    let round_trip = beside(options, echo, || {
        sampled(options.samples, |operations| {
            let mut bytes = [0x5e; 64];
            for _ in 0..operations {
                own.send(&bytes)
                    .and_then(|_| own.recv(&mut bytes))
                    .map_err(refused("a datagram and its answer"))?;
            }
            Ok(())
        })
    })?;
    Ok(round_trip.map(|time| time / 2))
}

/// A right taken from a page that the other core has in its TLB: it is interrupted to purge it.
pub fn remote_purge(options: &Options) -> Result<Interval, Unavailable> {
    let mapping = Mapping::new(1)?;
    mapping.touch(0);
    let looks = Line(AtomicU64::new(0));
    let looks = &looks.0;
    let look = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            mapping.look(0);
            looks.fetch_add(1, Ordering::Release);
        }
    };
    beside(options, look, || {
        mapping.purges(options, || {
            // Two more looks: the second one began after this one asked.
            let seen = looks.load(Ordering::Acquire);
            while looks.load(Ordering::Acquire) < seen + 2 {
                std::hint::spin_loop();
            }
        })
    })
}
