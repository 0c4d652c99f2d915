//! Sidecores that come and go with the load, against a fixed number of them.

use std::time::Duration;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::virtual_machine::Method;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric,
    Nature, Point, PointError, Side,
};

use super::setup::{self, Setup};

/// Fixed and dynamic sidecores under load that comes and goes.
pub struct Dynamic;

impl Experiment for Dynamic {
    fn about(&self) -> About {
        About {
            name: "sidecore.dynamic",
            question: "Can the monitor decide from the load how many cores should serve?",
            source: "none: Kumar et al., The Sidecore Approach, VI, announce it as future work and measure nothing",
            setting: "Virtual machines of one processor alternate between bursts of null requests and computing, 20 \
                      times; `guests` of them on `cores` cores. A dynamic sidecore is made when the exits that it \
                      would save cost more than its core is worth, and given back when they do not.",
            baseline: "no sidecore: every request leaves the guest",
            sidestep: "so many sidecores, or as many as the monitor decides",
            metric: Metric::lower("cycles until every guest is done", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(4)),
            reading: "With fewer guests than cores a sidecore costs nothing but energy: `polling in vain` is what it \
                      burnt, and with `saves-energy` it sleeps instead. With as many guests as cores a sidecore takes \
                      a core from one of them: fixed sidecores then lose, and the dynamic one should not.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("sidecores", &["0", "1", "2", "dynamic"])
                .about("how many cores serve")
                .source("chosen: fixed 0, 1 and 2 against dynamic")
                .axis(),
            Input::integers("guests", &[2, 4])
                .between(1, 32)
                .about("virtual machines")
                .source("chosen: fewer than cores, and as many")
                .axis(),
            Input::integer("cores", 4)
                .between(3, 64)
                .about("cores of the host")
                .source("Sidecore III: four logical processors"),
            Input::integer("burst", 400)
                .between(1, 100_000)
                .quick("100")
                .about("requests of a burst")
                .source("chosen: several epochs of the monitor"),
            Input::integer("pause", 100_000)
                .between(0, 100_000_000)
                .quick("30000")
                .about("rounds of computing between bursts, of some eight instructions")
                .source("chosen: as long as a burst"),
        ];
        inputs.extend(setup::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        setup::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        setup::costs(inputs)?;
        Ok(inputs.sweep(&["guests", "sidecores"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let guests = point.value("guests").count();
        let work = format!("bursts {} {}", inputs.count("burst"), inputs.count("pause"));
        let cores = inputs.count("cores") as usize;
        let measure = |sidecores| -> Result<Side, PointError> {
            let setup = Setup::new(inputs, cores, sidecores)?;
            let machines = (0..guests)
                .map(|number| setup.guest(&format!("guest {number}"), &work))
                .collect();
            let run = setup.run(machines, context)?;
            let sum = |of: fn(&sidestep_hypervisor::host::CoreReport) -> u64| {
                run.report.cores.iter().map(of).sum::<u64>()
            };
            let served = |method: Method| -> u64 {
                let requests = run.report.machines.iter().flat_map(|machine| &machine.requests);
                requests
                    .filter(|request| request.method == method)
                    .map(|request| request.count)
                    .sum()
            };
            Ok(Side::new(run.report.time.since(Cycle::START))
                .count("requests by exit", served(Method::Exit))
                .count("requests by sidecall", served(Method::Sidecall))
                .counter("guests executing", sum(|core| core.guest), "cycles")
                .counter("in the monitor for guests", sum(|core| core.monitor), "cycles")
                .counter("guests polling for answers", sum(|core| core.polling), "cycles")
                .counter("sidecores serving", sum(|core| core.serving), "cycles")
                .counter("sidecores polling in vain", sum(|core| core.looking), "cycles")
                .counter("sidecores asleep", sum(|core| core.asleep), "cycles")
                .traced(run.timeline))
        };
        let policy = match point.value("sidecores").to_string().as_str() {
            "dynamic" => SidecorePolicy::Dynamic { most: 2 },
            count => SidecorePolicy::Fixed(count.parse().expect("the choices are numbers")),
        };
        Ok(Measurement::new(
            measure(SidecorePolicy::Fixed(0))?,
            measure(policy)?,
        ))
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::bars(
                "What sidecores buy",
                Axis::new("sidecores", "sidecores", ""),
                Measure::Ratio,
                "times faster than without",
                "",
            )
            .split_by(&["guests"]),
        ]
    }
}
