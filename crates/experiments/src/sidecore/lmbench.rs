//! Figure 3 and the kernel compilation: context switches, page faults, and a workload with both kinds of fault.

use std::time::Duration;

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Side, Standing, Stated,
};

use super::setup::{self, Setup};

/// Context switches, page faults, builds.
pub struct Lmbench;

impl Experiment for Lmbench {
    fn about(&self) -> About {
        About {
            name: "sidecore.lmbench",
            question: "What do page table updates by sidecall buy a guest whose work is more than page faults?",
            source: "Kumar et al., The Sidecore Approach, section II-A, Figure 3 and the kernel compilation",
            setting: "One virtual machine of one processor on two cores. `context` switches among 16 address spaces, \
                      each with a working set of 16 kB, first touches included; `fault` touches pages that are not \
                      there; `build` touches anonymous and file pages in turn and computes between them, and \
                      `build-files-by-exit` does the same with file pages mapped by exit in any case, as in the \
                      paper. Those are stand-ins, whose guest does nothing else; `kernel-context` and `kernel-fault` \
                      are programs of a kernel with processes, pipes and demand paging, in the manner of LMbench's \
                      lat_ctx and lat_pagefault.",
            baseline: "page table updates leave the guest",
            sidestep: "page table updates go to a sidecore",
            metric: Metric::lower("cycles a switch, a fault, a job", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(2)),
            reading: "A context switch gains as much as its share of page faults. The build's ratio depends on how \
                      much it computes for each fault, an input that is chosen and not the paper's: what is to be seen \
                      is that the two build rows differ by what the file pages cost. Neither the build nor the \
                      context switch is judged for that reason: `rounds`, `work`, `files` and `anonymous` of the \
                      paper's are not known, and none was chosen to come near it. The kernel touches each page of \
                      `kernel-context` before it is measured, as LMbench does, so a switch makes no request and \
                      gains nothing. Its page fault has a kernel's exits beside that of the update, which are the same \
                      either way.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices(
                "workload",
                &[
                    "context",
                    "kernel-context",
                    "fault",
                    "kernel-fault",
                    "build-files-by-exit",
                    "build",
                ],
            )
            .about("what the guest does")
            .source("Sidecore II-A, Figure 3; the builds stand for the kernel compilation")
            .axis(),
            Input::integer("processes", 16)
                .between(1, 256)
                .about("address spaces of `context`")
                .source("Sidecore II-A"),
            Input::integer("rounds", 20)
                .between(1, 10_000)
                .quick("5")
                .about("how often each address space comes, and how many jobs a build has")
                .source("chosen: first touches are a twentieth of the switches"),
            Input::integer("faults", 2000)
                .between(1, 100_000)
                .quick("300")
                .about("pages of `fault`")
                .source("chosen: the model has no noise"),
            Input::integer("kilobytes", 16)
                .between(0, 1024)
                .about("the working set of each process of `kernel-context`")
                .source("Sidecore II-A"),
            Input::choice("format", &["long", "short"])
                .about("the kernel's page table format")
                .source(
                    "chosen: the long one is a table that software fills, as the shadow of the paper's guest",
                ),
            Input::choice("sidecalls", &["updates,purges", "updates", "purges"])
                .about("what the kernel asks a sidecore for")
                .source("Sidecore II-A: updates, and purges with a hardware that broadcasts them"),
            Input::integer("anonymous", 40)
                .between(0, 1000)
                .quick("4")
                .about("anonymous pages of a job")
                .source("chosen: fewer than file pages, as the paper says of its compilation"),
            Input::integer("files", 160)
                .between(0, 1000)
                .quick("16")
                .about("file pages of a job")
                .source("Sidecore II-A: the majority of the faults"),
            Input::integer("work", 50_000)
                .between(0, 10_000_000)
                .about("rounds of computing a page, of some eight instructions")
                .source("chosen: so that faults take a few hundredths of the time, as of a compilation"),
        ];
        inputs.extend(setup::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        setup::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        setup::costs(inputs)?;
        if inputs.count("anonymous") + inputs.count("files") > 1024 {
            return Err("`anonymous` and `files` are 1024 pages together at most: a job is 16 MB".to_owned());
        }
        Ok(inputs.sweep(&["workload"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let workload = point.value("workload").to_string();
        if let Some(program) = workload.strip_prefix("kernel-") {
            let measure = |sidecores| run_kernel(inputs, program, sidecores, context);
            return Ok(Measurement::new(measure(0)?, measure(1)?));
        }
        let count = |key: &str| inputs.count(key);
        let work = match workload.as_str() {
            "context" => format!("context {} {}", count("processes"), count("rounds")),
            "fault" => format!("fault {}", count("faults")),
            // A tenth of the rounds: a job is long.
            build => format!(
                "{build} {} {} {} {}",
                count("rounds").div_ceil(10),
                count("anonymous"),
                count("files"),
                count("work")
            ),
        };
        let measure = |sidecores| {
            let setup = Setup::new(inputs, 2, SidecorePolicy::Fixed(sidecores))?;
            setup.run(vec![setup.guest("guest", &work)], context)?.side()
        };
        Ok(Measurement::new(measure(0)?, measure(1)?))
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        match point.value("workload").to_string().as_str() {
            // The gain is that of the page faults among the switches, and how many those are is an input: `rounds`.
            "context" => vec![
                Stated::at_least(
                    Quantity::Ratio,
                    setup::lower(),
                    "Sidecore II-A, Figure 3: context switch lower; `rounds` decides it here",
                )
                .standing(Standing::Unjudged),
            ],
            "fault" => vec![Stated::at_least(
                Quantity::Ratio,
                setup::lower(),
                "Sidecore II-A, Figure 3: page fault lower, by a twentieth at the least",
            )],
            "kernel-fault" => vec![Stated::at_least(
                Quantity::Ratio,
                setup::lower(),
                "Sidecore II-A, Figure 3: page fault lower, by a twentieth at the least; of a kernel",
            )],
            "kernel-context" => vec![
                Stated::at_least(
                    Quantity::Ratio,
                    setup::lower(),
                    "Sidecore II-A, Figure 3: context switch lower, as page faults are; this one has none",
                )
                .standing(Standing::Unjudged),
            ],
            // Half of what the paper gained: within a wider tolerance nothing gained would agree as well.
            "build-files-by-exit" => vec![
                Stated::value(
                    Quantity::Ratio,
                    Number::ratio(676, 668),
                    "0.006",
                    "Sidecore II-A: kernel compilation, 676 s and 668 s; `work` decides it here",
                )
                .standing(Standing::Unjudged),
            ],
            _ => Vec::new(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "What sidecalls buy (Figure 3)",
            Axis::new("workload", "workload", ""),
            Measure::Ratio,
            "times faster with a sidecore",
            "",
        )]
    }
}

/// Pages that `kernel-fault` touches in a round, so many that mapping them takes little.
const PAGES: u64 = 100;

/// A program of the kernel in the manner of LMbench.
fn run_kernel(
    inputs: &Inputs,
    program: &str,
    sidecores: usize,
    context: &Context,
) -> Result<Side, PointError> {
    let count = |key: &str| inputs.count(key);
    let (work, operations) = match program {
        "context" => {
            let (processes, passes) = (count("processes").max(2), count("rounds"));
            let work = format!("context {processes} {} {passes}", count("kilobytes"));
            (work, processes * passes)
        }
        _ => {
            let (pages, rounds) = (PAGES.min(count("faults")), (count("faults") / PAGES).max(1));
            (format!("fault {pages} {rounds}"), pages * rounds)
        }
    };
    let (format, sidecalls) = (inputs.text("format"), inputs.text("sidecalls"));
    let work = format!("memory=256 format={format} sidecalls={sidecalls} program={work}");
    let setup = Setup::new(inputs, 2, SidecorePolicy::Fixed(sidecores))?;
    let mut guest = setup.guest("kernel", &work);
    guest.memory = 256 << 20;
    let image = sidestep_guests::ia64::KERNELS_WITH_SIDECALLS[0];
    let run = setup.run_image(image, vec![guest], context)?;
    let cycles = run.between_marks(0, (3, 4), (1, 2))?;
    run.side_of((cycles, operations))
}
