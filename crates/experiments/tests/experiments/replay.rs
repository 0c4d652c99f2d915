//! The pipeline model needs no processor: fed from a recording it counts what it counted beside the machine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

use sidestep_experiments::itanium::kernel::{Guest, Meter, Run};
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{
    Driver, Dynamic, Event, Frame, Interruption, Observer, PerformanceRegisters, Permission, Place, State,
    Translation,
};
use sidestep_ia64::{Exit, PhysicalAddress, Processor, TranslationSide, alat};
use sidestep_itanium2::instruction::StaticInstruction;
use sidestep_itanium2::{Counters, Parameters, Pipeline};

/// A question for a physical address, with its answer.
type Answer = (TranslationSide, u64, u64);

/// An instruction as it retired.
struct Retired {
    decoded: (Instruction, DecodedSlot),
    place: Place,
    executed: bool,
    reference: Option<u64>,
    taken: Option<u64>,
    answers: VecDeque<Answer>,
}

/// An instruction that is about to use a counter.
struct CounterUse {
    decoded: (Instruction, DecodedSlot),
    place: Place,
    executed: bool,
    registers: PerformanceRegisters,
    answers: VecDeque<Answer>,
}

/// An event that holds what it tells of.
enum Happened {
    Resumed(Box<State>),
    Status(u64),
    Region { index: usize, value: u64 },
    Branch { index: usize, value: u64 },
    Frame(Frame),
    AdvancedLoads(alat::Events),
    Walk { insertions: u64, entry: PhysicalAddress },
    PerformanceMonitor(Box<PerformanceRegisters>),
    Interrupted(Interruption),
}

impl Happened {
    fn of(event: &Event<'_>) -> Happened {
        match *event {
            Event::Resumed(state) => Happened::Resumed(Box::new(state.clone())),
            Event::Status(status) => Happened::Status(status),
            Event::Region { index, value } => Happened::Region { index, value },
            Event::Branch { index, value } => Happened::Branch { index, value },
            Event::Frame(frame) => Happened::Frame(frame),
            Event::AdvancedLoads(events) => Happened::AdvancedLoads(events),
            Event::Walk { insertions, entry } => Happened::Walk { insertions, entry },
            Event::PerformanceMonitor(registers) => Happened::PerformanceMonitor(Box::new(*registers)),
            Event::Interrupted(interruption) => Happened::Interrupted(*interruption),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            Happened::Resumed(state) => Event::Resumed(state),
            Happened::Status(status) => Event::Status(*status),
            Happened::Region { index, value } => Event::Region {
                index: *index,
                value: *value,
            },
            Happened::Branch { index, value } => Event::Branch {
                index: *index,
                value: *value,
            },
            Happened::Frame(frame) => Event::Frame(*frame),
            Happened::AdvancedLoads(events) => Event::AdvancedLoads(*events),
            Happened::Walk { insertions, entry } => Event::Walk {
                insertions: *insertions,
                entry: *entry,
            },
            Happened::PerformanceMonitor(registers) => Event::PerformanceMonitor(registers),
            Happened::Interrupted(interruption) => Event::Interrupted(interruption),
        }
    }
}

/// Whatever an observer is told.
enum Step {
    Retired(Retired),
    CounterUse(Box<CounterUse>),
    Happened(Happened),
    Clock,
}

/// Keeps what the answers were that the model got.
struct Noting<'a> {
    memory: &'a dyn Translation,
    answers: RefCell<VecDeque<Answer>>,
}

impl<'a> Noting<'a> {
    fn new(memory: &'a dyn Translation) -> Noting<'a> {
        Noting {
            memory,
            answers: RefCell::default(),
        }
    }
}

impl Translation for Noting<'_> {
    fn physical(&self, side: TranslationSide, address: u64) -> u64 {
        let physical = self.memory.physical(side, address);
        self.answers.borrow_mut().push_back((side, address, physical));
        physical
    }
}

/// Gives the answers of the recording; only what was asked then may be asked.
struct Recorded(RefCell<VecDeque<Answer>>);

impl Translation for Recorded {
    fn physical(&self, side: TranslationSide, address: u64) -> u64 {
        let answer = self.0.borrow_mut().pop_front();
        let (asked_side, asked, physical) =
            answer.expect("the model asks what it asked when it was recorded");
        assert_eq!((side, address), (asked_side, asked));
        physical
    }
}

/// A pipeline beside a processor, and all that it is told.
struct Recorder {
    pipeline: Pipeline,
    steps: Vec<Step>,
}

impl Observer for Recorder {
    type Static = ((Instruction, DecodedSlot), StaticInstruction);

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> Self::Static {
        ((*instruction, *slot), self.pipeline.decode(instruction, slot))
    }

    fn retired(&mut self, (decoded, known): &Self::Static, dynamic: &Dynamic<'_>) {
        let noting = Noting::new(dynamic.memory);
        self.pipeline.retired(
            known,
            &Dynamic {
                memory: &noting,
                ..*dynamic
            },
        );
        self.steps.push(Step::Retired(Retired {
            decoded: *decoded,
            place: dynamic.place,
            executed: dynamic.executed,
            reference: dynamic.reference,
            taken: dynamic.taken,
            answers: noting.answers.into_inner(),
        }));
    }

    fn event(&mut self, event: &Event<'_>) {
        self.pipeline.event(event);
        self.steps.push(Step::Happened(Happened::of(event)));
    }

    fn counters_used(
        &mut self,
        (decoded, known): &Self::Static,
        place: Place,
        executed: bool,
        memory: &dyn Translation,
        registers: &mut PerformanceRegisters,
    ) {
        let noting = Noting::new(memory);
        let before = *registers;
        self.pipeline
            .counters_used(known, place, executed, &noting, registers);
        self.steps.push(Step::CounterUse(Box::new(CounterUse {
            decoded: *decoded,
            place,
            executed,
            registers: before,
            answers: noting.answers.into_inner(),
        })));
    }

    fn clock(&mut self) -> Option<u64> {
        self.steps.push(Step::Clock);
        self.pipeline.clock()
    }

    fn interrupt(&mut self) -> Option<u8> {
        self.pipeline.interrupt()
    }

    fn permits(&mut self, place: Place, block: Range<u64>) -> Permission {
        self.pipeline.permits(place, block)
    }
}

impl Driver for Recorder {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run_observed(limit, self)
    }
}

impl Meter for Recorder {
    fn counters(&self) -> Option<Counters> {
        Some(self.pipeline.counters())
    }
}

fn replay(pipeline: &mut Pipeline, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Retired(retired) => {
                let known = pipeline.decode(&retired.decoded.0, &retired.decoded.1);
                let memory = Recorded(RefCell::new(retired.answers));
                pipeline.retired(
                    &known,
                    &Dynamic {
                        place: retired.place,
                        executed: retired.executed,
                        reference: retired.reference,
                        taken: retired.taken,
                        memory: &memory,
                    },
                );
            }
            Step::CounterUse(mut used) => {
                let known = pipeline.decode(&used.decoded.0, &used.decoded.1);
                let memory = Recorded(RefCell::new(used.answers));
                pipeline.counters_used(&known, used.place, used.executed, &memory, &mut used.registers);
            }
            Step::Happened(happened) => pipeline.event(&happened.event()),
            Step::Clock => _ = pipeline.clock(),
        }
    }
}

#[test]
fn the_model_counts_a_recorded_kernel_as_it_counts_the_machine() {
    let run = Run {
        guest: Guest::Kernel(1),
        parameters: "program=tests".to_owned(),
        memory_mb: 192,
        instructions_max: 1_000_000,
        quantum_ticks: Guest::Kernel(1).quantum_ticks(),
        keeps_dumps: false,
    };
    let mut beside = Pipeline::new(Parameters::default());
    beside.enable_profile();
    let mut recorder = [Recorder {
        pipeline: beside,
        steps: Vec::new(),
    }];
    // It does not come to its end within so few instructions; what it did until then is enough.
    let _ = run.run(&mut recorder, &|| false);
    let [
        Recorder {
            pipeline: mut beside,
            steps,
        },
    ] = recorder;
    let is_told_of = |wanted: fn(&Happened) -> bool| {
        steps
            .iter()
            .any(|step| matches!(step, Step::Happened(happened) if wanted(happened)))
    };
    assert!(is_told_of(|happened| matches!(
        happened,
        Happened::Interrupted(_)
    )));
    assert!(is_told_of(|happened| matches!(happened, Happened::Walk { .. })));
    assert!(
        steps
            .iter()
            .filter(|step| matches!(step, Step::Retired(_)))
            .count()
            > 500_000
    );

    let mut alone = Pipeline::new(Parameters::default());
    alone.enable_profile();
    replay(&mut alone, steps);
    assert_eq!(alone.finish(), beside.finish());
    assert!(
        alone.profile() == beside.profile(),
        "the cycles of some bundle differ"
    );
}
