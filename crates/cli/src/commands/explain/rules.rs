//! The tables that the model goes by, as text: each row with its source.

use std::fmt::Write as _;

use sidestep_itanium2::Parameters;
use sidestep_itanium2::classes::ROWS;
use sidestep_itanium2::flags::Flags;
use sidestep_itanium2::parameters::{CacheShape, Cost};
use sidestep_itanium2::rules::{BEHIND, Length, RULES};
use sidestep_itanium2::scoreboard::BYPASSES;

/// All tables, with the numbers of a processor.
pub fn text(parameters: &Parameters) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} ({})", parameters.description, parameters.name);
    classes(&mut text, parameters);
    bypasses(&mut text, parameters);
    rules(&mut text, parameters);
    caches(&mut text, parameters);
    costs(&mut text, parameters);
    text
}

fn classes(text: &mut String, parameters: &Parameters) {
    let _ = writeln!(
        text,
        "\nInstructions: port in an M slot, in an I slot; cycles until the result is used, on a hit in the cache that serves it\n"
    );
    for row in ROWS {
        let port = |port: Option<sidestep_itanium2::dispersal::Port>| port.map_or("", |port| port.ports());
        let mut notes = vec![row.source];
        for (flag, note) in [
            (Flags::SPLIT_BEFORE, "issue splits before it"),
            (Flags::SPLIT_AFTER, "issue splits behind it"),
            (Flags::SYSTEM_QUEUE, "queue of system registers"),
            (Flags::TIMER, "a slow register"),
            (Flags::SECOND_LEVEL, "from the second-level cache"),
        ] {
            notes.extend(row.flags.contains(flag).then_some(note));
        }
        let _ = writeln!(
            text,
            "{:<8}{:<11}{:>3}  {:<62} {}",
            port(row.memory),
            port(row.integer),
            row.produces(parameters)
                .map_or(String::new(), |(latency, _)| latency.to_string()),
            row.what,
            notes.join("; ")
        );
    }
}

fn bypasses(text: &mut String, parameters: &Parameters) {
    let _ = writeln!(
        text,
        "\nBypasses: cycles more or fewer, by what produced a value and what uses it\n"
    );
    for row in BYPASSES {
        let source = row.later.or(row.earlier).map_or("", Cost::source);
        let _ = writeln!(
            text,
            "{:>+4}  {:<14} to {:<12} {source}",
            row.more(parameters),
            format!("{:?}", row.producer),
            format!("{:?}", row.used)
        );
    }
}

fn rules(text: &mut String, parameters: &Parameters) {
    let _ = writeln!(
        text,
        "\nBetween two instructions: cycles at least, and the counter of the wait\n"
    );
    for rule in RULES {
        let _ = writeln!(
            text,
            "{:>4}  {:<26} to {:<52} {:<24} {}",
            rule.cycles,
            rule.from.what(),
            rule.to.what(),
            rule.stall.event().name(),
            rule.source
        );
    }
    for (behind, parts) in BEHIND {
        for (stall, length) in *parts {
            let bubbles = match length {
                Length::Bubbles(bubbles) => u64::from(*bubbles),
                Length::Of(cost) => parameters.cost(*cost),
            };
            let _ = writeln!(
                text,
                "{:>4}  {:<26} to {:<52} {:<24} paper table 5",
                format!("+{bubbles}"),
                behind.what(),
                "whatever follows",
                stall.event().name()
            );
        }
    }
}

fn caches(text: &mut String, parameters: &Parameters) {
    let _ = writeln!(text, "\nCaches and translation buffers ({})\n", parameters.source);
    let mut cache = |name: &str, shape: CacheShape| {
        let _ = writeln!(
            text,
            "{:>4}  {name}: {} kB, {} ways, lines of {} bytes",
            shape.latency,
            shape.size >> 10,
            shape.ways,
            shape.line
        );
    };
    cache("first level, instructions", parameters.l1i);
    cache("first level, data", parameters.l1d);
    cache("second level", parameters.l2);
    cache("third level", parameters.l3);
    let _ = writeln!(text, "{:>4}  memory", parameters.memory);
    let _ = writeln!(
        text,
        "      each translation buffer: {} entries in the first level, {} in the second",
        parameters.tlb_first, parameters.tlb_second
    );
}

fn costs(text: &mut String, parameters: &Parameters) {
    let _ = writeln!(text, "\nLatencies, penalties and sizes\n");
    for cost in Cost::ALL {
        let _ = writeln!(
            text,
            "{:>4}  {:<110} {}",
            parameters.cost(*cost),
            cost.what(),
            cost.source()
        );
    }
}
