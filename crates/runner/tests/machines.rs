//! Machines with a kernel under two models, of which one books blocks as a whole: they do the same and every number is
//! the same.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use sidestep_guests::ia64::{KERNELS, PERFORMANCE_MONITOR};
use sidestep_ia64::{Driver, Exit};
use sidestep_itanium2::{Booking, Counters, Parameters, Profile};
use sidestep_machine::description::bare::begin;
use sidestep_machine::machine::VirtualTime;
use sidestep_machine::machine::hypercall::StandardCalls;
use sidestep_machine::{End, GuestMemory, Machine, MachineBuilder, MemoryRange, image};
use sidestep_runner::machine::Timed;

#[derive(Clone, Default)]
struct Console(Arc<Mutex<Vec<u8>>>);

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A machine without devices.
#[derive(Clone, Copy)]
struct Bare {
    image: &'static [u8],
    memory: u64,
    processors: usize,
    parameters: &'static str,
    quantum_ticks: u64,
    instructions_max: u64,
    profiles: bool,
}

/// What came of it.
#[derive(Debug, PartialEq)]
struct Outcome {
    end: End,
    console: String,
    executed: u64,
    times: Vec<u64>,
    counters: Vec<Counters>,
    profiles: Vec<Option<Profile>>,
}

impl Bare {
    /// The machine and its console.
    fn machine(&self) -> (Machine, Console) {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, self.memory)]).expect("memory");
        let loaded = image::load(&memory, self.image).expect("the image");
        let console = Console::default();
        let mut builder = MachineBuilder::new(memory, self.processors);
        builder.handle(StandardCalls::new(Box::new(console.clone()), self.parameters));
        let mut machine = builder.build();
        begin(&mut machine.cpus[0].processor, loaded.entry, 0, self.processors);
        (machine, console)
    }

    /// Runs it, with blocks booked as a whole or not.
    fn run(&self, books: bool) -> (Outcome, Booking) {
        let (mut machine, console) = self.machine();
        let executor = VirtualTime {
            quantum_ticks: self.quantum_ticks,
            alone_ticks: VirtualTime::default().quantum_ticks,
            instructions_max: self.instructions_max,
            ..VirtualTime::default()
        };
        let mut timed = Timed::each(&Parameters::default(), self.processors);
        for driver in &mut timed {
            driver.pipeline_mut().book_blocks(books);
            if self.profiles {
                driver.pipeline_mut().enable_profile();
            }
        }
        let end = executor.run_driven(&mut machine, &mut timed).end;
        let bytes = console.0.lock().expect("one thread").clone();
        let mut booking = Booking::default();
        let pipelines = timed.iter_mut().map(Timed::pipeline_mut);
        let (counters, profiles) = pipelines
            .map(|pipeline| {
                let counters = pipeline.finish();
                booking += pipeline.booking();
                (counters, pipeline.profile().cloned())
            })
            .unzip();
        let outcome = Outcome {
            end,
            console: String::from_utf8_lossy(&bytes).into_owned(),
            executed: machine.executed(),
            times: machine
                .cpus
                .iter()
                .map(|cpu| cpu.processor.application(44))
                .collect(),
            counters,
            profiles,
        };
        (outcome, booking)
    }

    /// Runs it both ways; answers how often blocks were booked.
    fn assert_equal(&self) -> Booking {
        let (computed, none) = self.run(false);
        assert_eq!(none.whole, 0);
        let (booked, booking) = self.run(true);
        assert_eq!(booked, computed, "{}", self.parameters);
        booking
    }
}

/// The kernel of `guests/ia64/kernel` with a program in it.
fn kernel(processors: usize, parameters: &'static str) -> Bare {
    Bare {
        image: KERNELS[processors - 1],
        memory: 256 << 20,
        processors,
        parameters,
        quantum_ticks: 200,
        instructions_max: 6_000_000,
        profiles: false,
    }
}

#[test]
fn kernels_cost_the_same_booked_and_computed() {
    for (processors, parameters, quantum_ticks) in [
        (1, "memory=256 format=long program=tests", 10_000),
        (1, "memory=256 format=short program=tests", 200),
        (2, "memory=256 format=long program=tests", 200),
        (2, "memory=256 format=short program=signals", 3_000),
        (1, "memory=256 format=long program=calls", 100_000),
        (1, "memory=256 format=long program=refill", 100_000),
    ] {
        let machine = Bare {
            quantum_ticks,
            ..kernel(processors, parameters)
        };
        let booking = machine.assert_equal();
        assert!(booking.whole > 10_000, "{parameters}: {booking}");
    }
}

#[test]
fn a_run_goes_on_for_its_cycles_however_many_instructions_they_issue() {
    const CYCLES: u64 = 1000;
    const LATE_MAX: u64 = 500;
    let (mut machine, _) = kernel(1, "memory=256 format=long program=tests").machine();
    let mut drivers = [Timed::new(Parameters::default())];
    let begins = VirtualTime {
        instructions_max: 500_000,
        ..VirtualTime::default()
    };
    begins.run_driven(&mut machine, &mut drivers);
    let (processor, [timed]) = (&mut machine.cpus[0].processor, &mut drivers);
    let mut whole = 0;
    for _ in 0..50 {
        let before = processor.instructions_retired();
        let exit = timed.run_for(processor, CYCLES, u64::MAX);
        let retired = processor.instructions_retired() - before;
        let cycles = timed.elapsed(retired);
        match exit {
            Exit::Attention => {
                assert!((CYCLES..CYCLES + LATE_MAX).contains(&cycles), "{cycles} cycles");
                whole += 1;
            }
            // A hypercall, which nobody serves here.
            Exit::Fault(_) => processor.skip_instruction(),
            exit => panic!("{exit:?}"),
        }
    }
    assert!(whole > 40, "{whole} runs came to their end");
}

#[test]
fn a_limit_of_instructions_is_exact_under_the_model() {
    for instructions_max in [1, 999_999, 1_234_567] {
        let machine = Bare {
            instructions_max,
            ..kernel(2, "memory=256 format=long program=tests")
        };
        let (outcome, _) = machine.run(true);
        assert_eq!((outcome.end, outcome.executed), (End::Limit, instructions_max));
    }
}

#[test]
fn cycles_by_bundle_are_the_same_booked_and_computed() {
    let machine = Bare {
        profiles: true,
        ..kernel(2, "memory=256 format=long program=tests")
    };
    let booking = machine.assert_equal();
    assert!(booking.whole > 10_000, "{booking}");
}

#[test]
fn guests_that_count_get_the_same_numbers_booked_and_computed() {
    for part in [
        "sample",
        "masked",
        "threshold",
        "events",
        "data",
        "branches",
        "fetches",
        "pages",
        "opcodes",
        "code",
        "addresses",
        "checks",
        "served",
    ] {
        let machine = Bare {
            image: PERFORMANCE_MONITOR,
            memory: 16 << 20,
            processors: 1,
            parameters: part,
            quantum_ticks: VirtualTime::default().quantum_ticks,
            instructions_max: 20_000_000,
            profiles: false,
        };
        machine.assert_equal();
    }
}
