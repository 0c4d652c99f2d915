//! What is left of a run for people and for CI systems: lines on the standard output, JUnit's XML.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::dialogue::{Done, Result, Step};

/// What a step is called.
pub fn name(step: Step, commands: &[String]) -> &str {
    match step {
        Step::Boot => "boot",
        Step::Command(index) => &commands[index],
        Step::Shutdown => "shut down",
    }
}

/// A line that says how a step ended.
pub fn line(done: &Done, commands: &[String]) -> String {
    let seconds = Duration::from_nanos(done.ticks).as_secs_f64();
    let name = name(done.step, commands);
    match &done.result {
        Result::Passed => format!("passed   {seconds:9.3} s  {name}\n"),
        Result::Failed(status) => format!("failed   {seconds:9.3} s  {name}: exit status {status}\n"),
        Result::Broken(reason) => format!("broken   {seconds:9.3} s  {name}: {reason}\n"),
    }
}

/// JUnit's XML: a test case for each step, with what was on the console meanwhile; times are the machine's.
pub fn junit(done: &[Done], commands: &[String]) -> std::result::Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new("sidestep ci");
    for done in done {
        let status = match &done.result {
            Result::Passed => TestCaseStatus::success(),
            Result::Failed(status) => not_passed(NonSuccessKind::Failure, format!("exit status {status}")),
            Result::Broken(reason) => not_passed(NonSuccessKind::Error, reason.clone()),
        };
        let mut case = TestCase::new(name(done.step, commands), status);
        case.set_classname("sidestep.ci");
        case.set_time(Duration::from_nanos(done.ticks));
        case.set_system_out_lossy(strip_ansi_escapes::strip(&done.output));
        suite.add_test_case(case);
    }
    // Those that were not reached are told apart from those that passed.
    let reached = done
        .iter()
        .filter(|done| matches!(done.step, Step::Command(_)))
        .count();
    for command in commands.iter().skip(reached) {
        let mut case = TestCase::new(command.as_str(), TestCaseStatus::skipped());
        case.set_classname("sidestep.ci");
        suite.add_test_case(case);
    }
    let mut report = Report::new("sidestep ci");
    report.add_test_suite(suite);
    report.to_string()
}

fn not_passed(kind: NonSuccessKind, message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_a_test_case_also_those_that_were_not_reached() {
        let commands = ["true", "a < b", "never"].map(str::to_owned);
        let done = |step, result| Done {
            step,
            result,
            output: b"\x1b[1mout\x1b[0m & more\r\n".to_vec(),
            ticks: 1_500_000_000,
        };
        let steps = [
            done(Step::Boot, Result::Passed),
            done(Step::Command(0), Result::Passed),
            done(Step::Command(1), Result::Failed(2)),
        ];
        let text = junit(&steps, &commands).expect("text is written");
        for expected in [
            r#"tests="4" skipped="1" errors="0" failures="1""#,
            r#"<testcase name="a &lt; b" classname="sidestep.ci" time="1.500">"#,
            r#"<failure message="exit status 2"/>"#,
            "<system-out>out &amp; more",
            "<skipped/>",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        let broken = [done(Step::Boot, Result::Broken("no prompt".to_owned()))];
        let text = junit(&broken, &[]).expect("text is written");
        assert!(text.contains(r#"<error message="no prompt"/>"#), "{text}");
        assert_eq!(line(&broken[0], &[]), "broken       1.500 s  boot: no prompt\n");
    }
}
