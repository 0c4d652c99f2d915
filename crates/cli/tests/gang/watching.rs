//! `sidestep gang watch` of any program: what it finds.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use sidestep_gang_linux::setting::NUMA_BALANCING;

use super::{Folder, host, sidestep};

pub fn pages_fault_again() -> bool {
    tests_need::host(
        Path::new(NUMA_BALANCING).exists(),
        "this kernel has no NUMA balancing, so pages do not fault again",
    )
}

/// How many seconds a watch may take to see what is shared; on an idle host it takes a few.
pub const PATIENCE: &str = "40";

/// The most pages that a pair which shares nothing may seem to share, for each hundred of a pair that does.
pub const STRAY_PERCENT: u64 = 25;

#[test]
fn known_sharing_is_found() {
    if !tests_need::root("watching page faults of the host") || !pages_fault_again() {
        return;
    }
    let _host = host();
    let folder = Folder::new("watch");
    // The kernel makes pages fault some four times and then hardly ever: enough for pairs, not for sharing in which a
    // thread faults before each of several others. Those are tried where a VMM makes its own pages fault.
    for (pattern, threads) in [("pairs", 4), ("nobody", 2)] {
        find(pattern, threads, &folder);
    }
    assert!(folder.is_empty());
}

/// Watches a pattern until what it shares has been seen.
fn find(pattern: &str, threads: usize, folder: &Folder) {
    let count = threads.to_string();
    let watch = sidestep(&[
        "watch",
        "--state",
        folder.text(),
        "--steady",
        "--interval",
        "0.5",
        "--seconds",
        PATIENCE,
        "--",
    ])
    .args([
        env!("CARGO_BIN_EXE_sidestep"),
        "gang",
        "workload",
        pattern,
        "--pages",
        "64",
        "--seconds",
        "600",
    ])
    .args(["--threads", &count])
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .expect("the watch starts");
    let found = sharing_seen(watch, pattern, threads, |thread| thread);
    assert_sharing(pattern, threads, found);
}

/// What a watch found between threads that share, at least, and between strangers, at most, and the faults it had; both
/// `None` if it saw too few threads.
pub type Found = (Option<(Option<u64>, u64)>, u64);

/// Reads a watch's lines until what a pattern shares has been seen, or the watch's time is over; ends it.
/// `at_work` says which task a thread of the pattern is.
pub fn sharing_seen(
    mut watch: Child,
    pattern: &str,
    threads: usize,
    at_work: impl Fn(usize) -> usize,
) -> Found {
    let lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let kind = sidestep_gang_linux::workload::Pattern::ALL
        .iter()
        .find(|(name, _)| *name == pattern);
    let kind = kind.expect("a pattern").1;
    let pairs: Vec<(usize, usize)> = (0..threads)
        .flat_map(|right| (0..right).map(move |left| (left, right)))
        .collect();
    let shares = |&(left, right): &(usize, usize)| kind.is_shared(left, right, threads);
    let mut outcome = None;
    let mut faults = 0;
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let matrix: Vec<Vec<u64>> = serde_json::from_value(line["matrix"].clone()).expect("a matrix");
        faults = line["faults"].as_u64().expect("a count");
        if matrix.len() < at_work(threads) {
            continue;
        }
        let least = pairs
            .iter()
            .filter(|pair| shares(pair))
            .map(|&(left, right)| matrix[at_work(left)][at_work(right)])
            .min();
        let stray = pairs
            .iter()
            .filter(|pair| !shares(pair))
            .map(|&(left, right)| matrix[at_work(left)][at_work(right)])
            .max();
        outcome = Some((least, stray.unwrap_or(0)));
        let is_seen = least.map_or(faults > 64 * 2 * threads as u64, |least| least >= 8);
        if is_seen {
            break;
        }
    }
    // The pipe is closed; the watch ends, and with it the workload.
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&watch),
        rustix::process::Signal::TERM,
    )
    .expect("the watch is not collected yet");
    watch.wait().expect("the watch ends");
    (outcome, faults)
}

pub fn assert_sharing(pattern: &str, threads: usize, (outcome, faults): Found) {
    match outcome {
        Some((Some(least), stray)) if least >= 8 => {
            assert!(
                stray * 100 <= least * STRAY_PERCENT,
                "{pattern}: {stray} between strangers, {least} between pairs"
            );
            eprintln!(
                "{pattern} of {threads}: at least {least} between pairs, at most {stray} between strangers"
            );
        }
        Some((None, stray)) => {
            assert!(
                stray <= faults / 20,
                "{pattern}: {stray} events between strangers in {faults} faults"
            );
        }
        _ => {
            let seen = format!("{outcome:?} in {faults} faults");
            tests_need::host(
                false,
                &format!("too busy: {pattern} of {threads} not seen in {PATIENCE} s: {seen}"),
            );
        }
    }
}
