//! Programs under two pipelines, of which one books blocks as a whole: every number is the same.

mod programs;

use std::sync::{Arc, Mutex};

use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{
    Dynamic, Event, Observer, PerformanceRegisters, Place, Together, Translation,
};
use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::instruction::StaticInstruction;
use sidestep_itanium2::{Booking, Counters, Parameters, Pipeline};
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::Engine;

/// Two pipelines that are told the same.
struct Both {
    computed: Pipeline,
    booked: Pipeline,
}

impl Observer for Both {
    type Static = StaticInstruction;

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> StaticInstruction {
        self.computed.decode(instruction, slot)
    }

    fn retired(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        self.computed.retired(known, dynamic);
        self.booked.retired(known, dynamic);
    }

    fn stands_apart(&self, known: &StaticInstruction) -> bool {
        self.booked.stands_apart(known)
    }

    fn gathers(&mut self, identity: u64) -> bool {
        self.booked.gathers(identity)
    }

    fn retired_together(&mut self, together: &Together<'_, StaticInstruction>) {
        together.tell_each(&mut self.computed);
        self.booked.retired_together(together);
        assert_eq!(self.booked.cycles(), self.computed.cycles());
    }

    fn event(&mut self, event: &Event<'_>) {
        self.computed.event(event);
        self.booked.event(event);
    }

    fn counters_used(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        executed: bool,
        memory: &dyn Translation,
        registers: &mut PerformanceRegisters,
    ) {
        let mut others = *registers;
        self.computed
            .counters_used(known, place, executed, memory, registers);
        self.booked
            .counters_used(known, place, executed, memory, &mut others);
        assert_eq!(others, *registers);
    }
}

/// Runs a thread.
struct Thread(Arc<Mutex<Both>>);

impl Driver for Thread {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        let mut both = self.0.lock().expect("no thread has failed");
        processor.run_observed(limit, &mut *both)
    }
}

/// The pipelines of a program's threads.
#[derive(Default)]
struct Threads(Mutex<Vec<Arc<Mutex<Both>>>>);

impl std::fmt::Debug for Threads {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Threads")
    }
}

impl Engine for Threads {
    fn attach(&self) -> Box<dyn Driver + Send> {
        let mut computed = Pipeline::new(Parameters::default());
        computed.book_blocks(false);
        let booked = Pipeline::new(Parameters::default());
        let both = Arc::new(Mutex::new(Both { computed, booked }));
        let mut threads = self.0.lock().expect("no thread has failed");
        threads.push(Arc::clone(&both));
        Box::new(Thread(both))
    }

    fn forget(&self) {
        self.0.lock().expect("no thread has failed").clear();
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        Ok(String::new())
    }
}

/// What both pipelines of each thread have counted, and how often blocks were booked.
fn run(program: &str) -> (Vec<[Counters; 2]>, Booking) {
    let threads = Arc::new(Threads::default());
    programs::run(program, Arc::clone(&threads) as Arc<dyn Engine>);
    let mut booking = Booking::default();
    let threads = threads.0.lock().expect("no thread has failed");
    let counters = threads.iter().map(|both| {
        let mut both = both.lock().expect("no thread has failed");
        booking += both.booked.booking();
        [both.computed.finish(), both.booked.finish()]
    });
    (counters.collect(), booking)
}

#[test]
fn programs_cost_the_same_booked_and_computed() {
    // The first one checks the processor.
    for program in ["tour"].iter().chain(programs::OF_SPEED) {
        let (counters, booking) = run(program);
        assert!(!counters.is_empty(), "{program}");
        for [computed, booked] in counters {
            assert_eq!(computed, booked, "{program}");
        }
        let looked_up = booking.whole + booking.new;
        assert!(booking.whole * 2 > looked_up, "{program}: {booking}");
    }
}
