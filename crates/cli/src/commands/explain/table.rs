//! The table of cycles: what issued where, which bubbles came before it, and what each of them waited for.

use std::fmt::Write as _;

use sidestep_itanium2::instruction::StaticInstruction;
use sidestep_itanium2::profile::{Group, Issued};
use sidestep_itanium2::rules::RULES;
use sidestep_itanium2::scoreboard::Operand;
use sidestep_itanium2::{Counters, Event, Stall};

/// An instruction in the table.
pub struct Line {
    /// Its assembly.
    pub text: String,
    /// What it did, where it ran: the address it referred to, the branch it took.
    pub effect: String,
    /// Its operands and rules, if the model knows it.
    pub known: Option<StaticInstruction>,
}

/// When an instruction issued, and where it stands.
#[derive(Clone, Copy)]
struct Issue {
    cycle: u64,
    ip: u64,
    slot: u8,
}

/// Writes the groups; `line` gives the instructions, which are asked for in order.
pub fn write(text: &mut String, groups: &[Group], mut line: impl FnMut(&Issued) -> Line) {
    let _ = writeln!(text, "{:>6}  {:<5} {:>8}  instruction", "cycle", "port", "bundle");
    let Some(first) = groups.first().map(|group| group.cycle) else {
        return;
    };
    let mut past = Past::default();
    let mut before = first;
    for group in groups {
        let lines: Vec<Line> = group.instructions.iter().map(&mut line).collect();
        let mut until = before + 1;
        for (stall, length, owner) in group.bubbles.iter().filter(|_| group.cycle != first) {
            until += length;
            let plural = if *length == 1 { "" } else { "s" };
            let name = stall.event().name();
            let reason = match past.waited_for(&lines, *stall, until) {
                Some((issue, what)) => format!(
                    "waits for {:x}.{} of cycle {}: {what}",
                    issue.ip,
                    issue.slot,
                    issue.cycle - first
                ),
                None => format!("bundle {owner:x}"),
            };
            let _ = writeln!(text, "{:>13} {length} bubble{plural}: {name} ({reason})", "");
        }
        for (index, (issued, line)) in group.instructions.iter().zip(&lines).enumerate() {
            let cycle = match index {
                0 => (group.cycle - first).to_string(),
                _ => String::new(),
            };
            let (port, place) = (
                issued.port.to_string(),
                format!("{:x}.{}", issued.ip, issued.slot),
            );
            let row = format!(
                "{cycle:>6}  {port:<5} {place:>8}  {:<36} {}",
                line.text, line.effect
            );
            let _ = writeln!(text, "{}", row.trim_end());
        }
        past.take(group, &lines);
        before = group.cycle;
    }
}

/// Writes what the groups come to: cycles, groups, and the tree of bubbles.
pub fn write_sum(text: &mut String, groups: &[Group]) {
    let mut counters = Counters::default();
    for (stall, length, _) in groups.iter().skip(1).flat_map(|group| &group.bubbles) {
        counters.book(*stall, *length);
    }
    let bubbles = counters.get(Event::BackEndBubbleAll);
    let instructions: usize = groups.iter().map(|group| group.instructions.len()).sum();
    let _ = writeln!(
        text,
        "\n{} cycles: {} groups of {instructions} instructions, {bubbles} bubbles",
        groups.len() as u64 + bubbles,
        groups.len()
    );
    for (row, value) in counters.tree() {
        if value > 0 {
            let indent = usize::from(row.depth) * 2;
            let _ = writeln!(text, "{value:>6}  {:indent$}{}", "", row.event.name());
        }
    }
}

/// Who wrote each register last, and who began each rule.
#[derive(Default)]
struct Past {
    writers: Vec<(Operand, Issue, u64, String)>,
    rules: Vec<(usize, Issue, String)>,
    /// The instruction of the last group that everything behind it waits for.
    behind: Option<(Issue, String)>,
}

/// The longest bypass: a use may wait so many cycles more than the register's latency.
const BYPASS_MAX: u64 = 2;

impl Past {
    fn take(&mut self, group: &Group, lines: &[Line]) {
        self.behind = None;
        for (issued, line) in group.instructions.iter().zip(lines) {
            let Some(known) = line.known.filter(|_| issued.executed) else {
                continue;
            };
            let issue = Issue {
                cycle: group.cycle,
                ip: issued.ip,
                slot: issued.slot,
            };
            for destination in known.destinations() {
                self.writers.retain(|writer| writer.0 != destination.operand);
                let ready = group.cycle + u64::from(destination.latency);
                self.writers
                    .push((destination.operand, issue, ready, line.text.clone()));
            }
            for index in (0..RULES.len()).filter(|index| known.rules_from >> index & 1 != 0) {
                self.rules.retain(|rule| rule.0 != index);
                self.rules.push((index, issue, line.text.clone()));
            }
            if known.behind.is_some() {
                self.behind = Some((issue, line.text.clone()));
            }
        }
    }

    /// The instruction that a group of `lines` waits for until a cycle: who began a rule that ends then, wrote the
    /// operand that is ready last, or holds up everything behind it.
    fn waited_for(&self, lines: &[Line], stall: Stall, until: u64) -> Option<(Issue, &str)> {
        let known = || lines.iter().filter_map(|line| line.known);
        let rule = self.rules.iter().find(|(index, issue, _)| {
            let rule = &RULES[*index];
            rule.stall == stall
                && issue.cycle + u64::from(rule.cycles) == until
                && known().any(|known| known.rules_to >> index & 1 != 0)
        });
        if let Some((_, issue, text)) = rule {
            return Some((*issue, text.trim_start()));
        }
        let behind = self
            .behind
            .as_ref()
            .map(|(issue, text)| (*issue, text.trim_start()));
        if !stall.event().name().starts_with("BE_EXE_BUBBLE") {
            return behind;
        }
        let reads = |operand: Operand| {
            known().any(|known| {
                known.predicate == operand || known.sources().iter().any(|(source, _)| *source == operand)
            })
        };
        self.writers
            .iter()
            .filter(|writer| writer.0 != Operand::ALWAYS && writer.2 + BYPASS_MAX >= until && reads(writer.0))
            .max_by_key(|writer| writer.2)
            .map(|(_, issue, _, text)| (*issue, text.trim_start()))
            .or(behind)
    }
}
