//! A service of the user's own, asked by leaving the guest and through memory: whether a sidecore pays for it.

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::virtual_machine::{OwnService, VirtualMachine};
use sidestep_lab::{
    About, Axis, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Point, PointError,
};

use super::setup::{self, Setup};

/// Makes a service as it is before the first request: each side of each point has its own.
pub type MakeService = Box<dyn Fn() -> Result<Box<dyn OwnService>, String> + Send + Sync>;

/// An experiment on a service.
pub struct Served {
    name: &'static str,
    make: MakeService,
}

impl Served {
    /// An experiment of a name.
    pub fn new(name: &'static str, make: MakeService) -> Served {
        Served { name, make }
    }
}

impl Experiment for Served {
    fn about(&self) -> About {
        About {
            question: "Does a sidecore pay for a service of one's own?",
            source: "none: the service that is asked about",
            setting: "One virtual machine of one processor on two cores, which asks the service again and again and \
                      computes between its requests. It measures the requests alone with its interval time counter, in \
                      cycles of the host. The service's own work costs the same on either core; a cache line of the \
                      guest's is near on the guest's own core and comes over to a sidecore.",
            baseline: "each request leaves the guest",
            sidestep: "each request goes through memory to a sidecore",
            ..About::new(self.name, Metric::lower("cycles a request", "cycles"))
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("between", &[0, 1000])
                .between(0, 1_000_000)
                .about("rounds of computing before each request")
                .source("chosen: a busy guest, and one that lets the sidecore wait")
                .axis(),
            Input::integer("count", 1000)
                .between(1, 1_000_000)
                .quick("100")
                .about("how many requests are measured")
                .source("chosen: as sidecore.calls"),
            Input::integer("second", 0)
                .about("the second argument of each request; the first is its number, from 0 on")
                .source("chosen"),
            Input::integer("third", 0)
                .about("the third argument of each request")
                .source("chosen"),
        ];
        inputs.extend(setup::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        setup::costs(inputs)?;
        Ok(inputs.sweep(&["between"]))
    }

    fn run_point(&self, inputs: &Inputs, at: &Point, context: &Context) -> Result<Measurement, PointError> {
        let work = format!(
            "own {} {} {} {}",
            inputs.count("count"),
            at.value("between"),
            inputs.count("second"),
            inputs.count("third")
        );
        let measure = |sidecores| {
            let setup = Setup::new(inputs, 2, SidecorePolicy::Fixed(sidecores))?;
            let guest = setup.guest("guest", &work);
            let mut machine = VirtualMachine::new(0, guest, sidestep_guests::ia64::SERVICE)
                .map_err(|error| PointError::Failed(error.to_string()))?;
            machine.attach_own_service((self.make)().map_err(PointError::Failed)?);
            setup.run_machines(vec![machine], context)?.side()
        };
        Ok(Measurement::new(measure(0)?, measure(1)?))
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Latency of requests",
            Axis::new("between", "rounds of computing between requests", ""),
            Measure::Value,
            "cycles a request",
            "cycles",
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_hypervisor::virtual_machine::OwnServed;
    use sidestep_lab::{Comparison, Number, Quantity, Request, compare};

    /// A service that counts what it is asked, works for 500 cycles, and touches lines as the guest says.
    struct Counting(u64);

    impl OwnService for Counting {
        fn serve(&mut self, [number, lines, failing]: [u64; 3]) -> Result<OwnServed, String> {
            assert_eq!(
                number, self.0,
                "each side has a service of its own, and asks in order"
            );
            self.0 += 1;
            match failing != 0 && number == 3 {
                true => Err("the counter is worn out".to_owned()),
                false => Ok(OwnServed {
                    answer: self.0,
                    cycles: 500,
                    lines,
                }),
            }
        }
    }

    fn run(settings: &[&str]) -> Comparison {
        let experiment = Served::new("own.counting", Box::new(|| Ok(Box::new(Counting(0)))));
        let request = Request {
            settings: settings.iter().map(|each| each.to_string()).collect(),
            ..Request::quick()
        };
        compare(&experiment, &request).unwrap()
    }

    #[test]
    fn a_service_costs_its_work_and_the_lines_that_come_over() {
        let near = run(&["between=0", "second=0"]);
        let far = run(&["between=0", "second=10", "transfer=400", "cache-line=10"]);
        let of = |comparison: &Comparison, quantity| comparison.rows[0].quantity(quantity).unwrap();
        assert!(
            of(&near, Quantity::Ratio) > Number::ONE,
            "an exit costs more than a few lines"
        );
        // What its lines cost: ten near ones by exit, ten that come over by sidecall.
        let plain = run(&["between=0", "second=0", "transfer=400", "cache-line=10"]);
        let more = |quantity| of(&far, quantity) - of(&plain, quantity);
        assert_eq!(more(Quantity::Baseline), Number::from(100));
        // Where in its round the sidecore is when a request comes moves by less than a cycle a request.
        let over = more(Quantity::Sidestep) - Number::from(4000);
        assert!(over.abs() < Number::ONE, "{over}");
    }

    #[test]
    fn what_a_service_says_is_the_failure_of_the_point() {
        let failed = run(&["third=1"]);
        let said: Vec<String> = failed
            .rows
            .iter()
            .map(|row| row.result.clone().unwrap_err().to_string())
            .collect();
        assert_eq!(said, ["guest `guest`: the counter is worn out"; 2]);
    }
}
