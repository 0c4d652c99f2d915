//! What an analysis finds of an experiment whose verdicts turn where they are known to.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use sidestep_lab::run::Plan;
use sidestep_lab::sensitivity::{Design, SensitivityError, analyse};
use sidestep_lab::{
    About, Comparison, Context, Experiment, Finding, Input, Inputs, Measurement, Metric, Number, Point,
    PointError, Quantity, Request, Row, Runner, Sensitivity, Side, Stated, Value, Verdict, report,
};

/// The gain is 1000 cycles over four transfers, halved with a slow bus, and three fifths with a deep pipeline as well.
struct Transfers;

impl Experiment for Transfers {
    fn about(&self) -> About {
        About::new("sample.transfers", Metric::lower("time", "cycles"))
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::integers("calls", &[1, 2]).source("the paper").axis(),
            Input::integer("transfer", 100)
                .between(1, 10_000)
                .unit("cycles")
                .source("estimate: a line"),
            Input::choice("bus", &["fast", "slow"]).source("chosen"),
            Input::integer("depth", 10)
                .between(1, 1000)
                .source("assumed")
                .range("5", "12"),
            Input::integer("entries", 64)
                .between(1, 1000)
                .source("chosen: a power of two"),
            Input::integer("exit", 1000).source("the paper"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        match inputs.count("entries").is_power_of_two() {
            true => Ok(inputs.sweep(&["calls"])),
            false => Err("`entries` must be a power of two".to_owned()),
        }
    }

    fn run_point(&self, inputs: &Inputs, _: &Point, _: &Context) -> Result<Measurement, PointError> {
        if inputs.count("entries") == 32 {
            return Err(PointError::Failed("too few entries".to_owned()));
        }
        let slow = if inputs.text("bus") == "slow" { 2 } else { 1 };
        let deep = if inputs.count("depth") > 11 { 5 } else { 4 };
        let sidecall = inputs.count("transfer") * slow * deep;
        Ok(Measurement::new(
            Side::new(inputs.count("exit")),
            Side::new(sidecall),
        ))
    }

    fn stated(&self, _: &Inputs, point: &Point) -> Vec<Stated> {
        match point.value("calls").integer() {
            1 => vec![Stated::at_least(Quantity::Ratio, 2, "the paper")],
            _ => Vec::new(),
        }
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let gain = rows[0].quantity(Quantity::Ratio).expect("both sides");
        vec![Finding {
            about: "a gain".to_owned(),
            stated: "a gain".to_owned(),
            source: "the paper".to_owned(),
            ours: gain.to_decimal(2),
            value: Some(gain),
            verdict: Verdict::of(gain > Number::decimal("0.9")),
            because: String::new(),
        }]
    }
}

fn analysis(jobs: usize, settings: &[&str]) -> Result<Sensitivity, SensitivityError> {
    let cancelled = AtomicBool::new(false);
    let mut run = |_: &str, plans: &[Plan]| -> Option<Vec<Comparison>> {
        let runner = Runner {
            jobs: NonZeroUsize::new(jobs).expect("some jobs"),
            cache: None,
            cancelled: &cancelled,
            observer: &(),
        };
        Some(runner.run(plans))
    };
    let request = Request {
        settings: settings.iter().map(|each| (*each).to_owned()).collect(),
        ..Request::default()
    };
    analyse(&Transfers, &request, Design::default(), &mut run)
}

#[test]
fn what_turns_a_verdict_is_found_with_the_place_where_it_does() {
    let analysis = analysis(2, &[]).expect("it runs");
    let names: Vec<&str> = analysis.claims.iter().map(|claim| claim.about.as_str()).collect();
    assert_eq!(names, ["a gain", "calls=1: ratio"]);

    let least_two = analysis.standpoint(1);
    let ranges: Vec<String> = (least_two.ranges.iter())
        .map(|(assumption, least, greatest)| format!("{} {least} {greatest}", assumption.key))
        .collect();
    // 1000 / (4 x 125) is 2; 7 halvings of 100 to 200 are exact to a cycle.
    assert_eq!(ranges, ["transfer 50 125"]);
    let choices: Vec<(&str, &Value)> = (least_two.choices.iter())
        .map(|(assumption, value)| (assumption.key.as_str(), *value))
        .collect();
    assert_eq!(choices, [("bus", &Value::from("slow"))]);
    assert!(least_two.pairs.is_empty(), "each of them turns it alone");

    // A slow bus and twice the transfers leave 1000 of 1600, of which neither alone turns the gain.
    let gain = analysis.standpoint(0);
    assert_eq!((gain.ranges.len(), gain.choices.len()), (0, 0));
    let pairs: Vec<String> = (gain.pairs.iter())
        .map(|pair| {
            pair.changes
                .iter()
                .map(|(at, value)| format!("{at}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(pairs, ["0=200 1=slow"], "{:?}", analysis.assumptions);
    assert_eq!(analysis.swings(1)[0].assumption.key, "transfer");
}

#[test]
fn what_cannot_be_run_is_said_and_the_rest_goes_on() {
    let found = analysis(1, &[]).expect("it runs");
    let table = report::sensitivity::table(&[found], 120);
    assert!(
        table.contains("not run with `entries`=32: calls=1: too few entries"),
        "{table}"
    );
    assert!(
        table.contains("holds for transfer from 50 to 125 cycles; not with bus=slow"),
        "{table}"
    );

    let error = analysis(1, &["entries=33"]).expect_err("a contradiction");
    assert!(
        error.to_string().contains("`entries` must be a power of two"),
        "{error}"
    );
    let error = analysis(1, &["entries=32"]).expect_err("nothing to start from");
    assert_eq!(error.to_string(), "sample.transfers: calls=1: too few entries");
}

#[test]
fn a_setting_of_the_user_is_what_is_varied() {
    let found = analysis(1, &["transfer=20", "bus=slow"]).expect("it runs");
    let transfer = &found.assumptions[0];
    assert_eq!(
        (&transfer.nominal, &transfer.others[..]),
        (&Value::Integer(20), &[10, 40].map(Value::Integer)[..])
    );
    let stays = found.standpoint(1);
    assert!(stays.ranges.is_empty() && stays.choices.is_empty());
}

#[test]
fn reports_do_not_depend_on_the_jobs_and_name_what_they_show() {
    let [one, other] = [1, 4].map(|jobs| [analysis(jobs, &[]).expect("it runs")]);
    assert_eq!(report::sensitivity::json(&one), report::sensitivity::json(&other));
    assert_eq!(report::sensitivity::csv(&one), report::sensitivity::csv(&other));
    let page = report::sensitivity::html(&one);
    assert_eq!(page, report::sensitivity::html(&other));
    assert_eq!(
        page.matches("<svg").count(),
        2,
        "a chart for each claim with a number"
    );

    let json: serde_json::Value = serde_json::from_str(&report::sensitivity::json(&one)).expect("JSON");
    assert_eq!(json["schema"], "sidestep.sensitivity/1");
    let claim = &json["analyses"][0]["claims"][1];
    assert_eq!(claim["crossings"][0]["turns"], 126);
    assert_eq!(claim["paper"], 2);

    let csv = report::sensitivity::csv(&one);
    let heading = "schema,experiment,claim,stated,source,paper,nominal,nominal_verdict,kind,input,value,";
    assert!(csv.starts_with(heading), "{csv}");
    assert!(
        csv.contains(",keeps,transfer,125,") && csv.contains(",turns,transfer,126,"),
        "{csv}"
    );
    let markdown = report::sensitivity::markdown(&one);
    let row = "| `sample.transfers` | calls=1: ratio | 2.5 | holds for `transfer` from 50 to 125 cycles; not with `bus`=slow |";
    assert!(markdown.contains(row), "{markdown}");
    #[cfg(feature = "parquet")]
    assert!(report::sensitivity::parquet(&one).starts_with(b"PAR1"));
}

#[test]
fn an_experiment_that_nothing_is_judged_of_runs_once() {
    let mut runs = 0;
    let mut run = |_: &str, plans: &[Plan]| {
        runs += plans.len();
        let runner = Runner {
            jobs: NonZeroUsize::MIN,
            cache: None,
            cancelled: &AtomicBool::new(false),
            observer: &(),
        };
        Some(runner.run(plans))
    };
    let found = analyse(&Unjudged, &Request::default(), Design::default(), &mut run).expect("it runs");
    assert!(report::sensitivity::table(&[found], 120).contains("no verdict can turn"));
    assert_eq!(runs, 1);
    let stopped = analyse(&Transfers, &Request::default(), Design::default(), &mut |_, _| {
        None
    });
    assert_eq!(stopped.expect_err("stopped"), SensitivityError::Interrupted);
}

/// As the other, but the paper says nothing.
struct Unjudged;

impl Experiment for Unjudged {
    fn about(&self) -> About {
        Transfers.about()
    }

    fn inputs(&self) -> Vec<Input> {
        Transfers.inputs()
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Transfers.points(inputs)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        Transfers.run_point(inputs, point, context)
    }
}
