use super::*;
use proptest::prelude::*;

fn declared() -> Vec<Input> {
    vec![
        Input::integers("calls", &[5, 10])
            .between(1, 10_000)
            .quick("5")
            .axis(),
        Input::integer("units", 4).between(1, 64).unit("units"),
        Input::ratio("threshold", "1.5").within("1", "100"),
        Input::durations("round-trip", &[0, 2000]).lasting(0, 1_000_000),
        Input::choice("queue", &["hardware", "software"]),
        Input::switch("preload", true),
        Input::file("matrix"),
    ]
}

fn with(settings: &[&str]) -> Result<Inputs, InputError> {
    let settings: Vec<String> = settings.iter().map(|text| text.to_string()).collect();
    Inputs::new("demo", &declared(), false, &settings)
}

#[test]
fn settings_replace_defaults() {
    let inputs = with(&["calls=7, 8", "round-trip=0,1.5us", "threshold=3/2", "preload=off"]).unwrap();
    assert_eq!(inputs.integers("calls"), [7, 8]);
    assert_eq!(inputs.durations_ns("round-trip"), [0, 1500]);
    assert_eq!(inputs.ratio("threshold"), Number::ratio(3, 2));
    assert!(!inputs.switch("preload"));
    assert_eq!(inputs.count("units"), 4);
    assert_eq!(inputs.text("matrix"), "");
}

#[test]
fn a_quick_run_has_its_own_defaults_which_a_setting_overrides() {
    let quick = |settings: &[String]| Inputs::new("demo", &declared(), true, settings).unwrap();
    assert_eq!(quick(&[]).integers("calls"), [5]);
    assert_eq!(quick(&["calls=9".to_owned()]).integers("calls"), [9]);
}

#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    for (setting, message) in [
        ("calls", "`calls` is not a setting; write key=value"),
        (
            "unit=3",
            "demo has no input `unit` (did you mean `units`?); its inputs are calls, units, threshold, \
             round-trip, queue, preload, matrix",
        ),
        ("units=0", "input `units`: `0` is not a whole number from 1 to 64"),
        (
            "calls=5,x",
            "input `calls`: `x` is not a whole number from 1 to 10000",
        ),
        (
            "calls=",
            "input `calls`: `` is not a whole number from 1 to 10000",
        ),
        ("calls=5,5", "input `calls`: `5` stands twice in the list"),
        (
            "queue=softwear",
            "input `queue`: `softwear` is not one of hardware, software (did you mean `software`?)",
        ),
        ("preload=yes", "input `preload`: `yes` is not on or off"),
        (
            "round-trip=2",
            "input `round-trip`: `2` is not a duration from 0ns to 1ms (such as 500ns, 2us, 1.5ms, 3s)",
        ),
        (
            "matrix=/nonexistent",
            "input `matrix`: cannot read `/nonexistent`: No such file or directory (os error 2)",
        ),
        ("matrix=/", "input `matrix`: cannot read `/`: is a directory"),
        (
            "threshold=0.5",
            "input `threshold`: `0.5` is not a decimal or ratio from 1 to 100 (such as 1.5 or 3/2)",
        ),
    ] {
        assert_eq!(with(&[setting]).unwrap_err().to_string(), message);
    }
    let twice = with(&["units=1", "units=2"]).unwrap_err();
    assert_eq!(twice.to_string(), "input `units` is set twice");
}

#[test]
#[should_panic(expected = "demo declares no input `calls`, or it is an axis")]
fn a_point_cannot_read_an_axis() {
    with(&[]).unwrap().without_axes(&declared()).integers("calls");
}

#[test]
fn a_sweep_visits_every_combination_the_last_list_fastest() {
    let inputs = with(&["round-trip=0,1us"]).unwrap();
    let points: Vec<String> = inputs
        .sweep(&["calls", "round-trip"])
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        points,
        [
            "calls=5 round-trip=0ns",
            "calls=5 round-trip=1us",
            "calls=10 round-trip=0ns",
            "calls=10 round-trip=1us"
        ]
    );
}

proptest! {
    #[test]
    fn any_setting_is_read_or_refused(text in "(calls|units|threshold|round-trip|queue|preload|matrix)=\\PC*") {
        let _ = with(&[&text]);
    }

    #[test]
    fn the_text_of_a_value_reads_back(ns in 0u64..=1_000_000, numerator in 100i64..5000) {
        let inputs = with(&[]).unwrap();
        prop_assert!(inputs.iter().count() == declared().len());
        for (key, value) in [
            ("round-trip", Value::list([Value::Duration { ns }])),
            ("threshold", Value::Ratio(Number::ratio(numerator, 77))),
        ] {
            let declaration = declared().into_iter().find(|input| input.key == key).unwrap();
            if let Value::Ratio(number) = &value && *number > Number::from(100) {
                continue;
            }
            prop_assert_eq!(declaration.parse(&value.to_string()), Ok(value));
        }
    }
}
