//! What happened on a host, for people.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::{ContentionReport, Report, VirtualMachineReport, kind_name};
use sidestep_hypervisor::virtual_machine::DetectionReport;
use sidestep_itanium2::{Counters, Event};
use sidestep_runner::host::ModelledCores;
use sidestep_runner::program;

/// What guests' instructions took on the model of each core, and what all of them lost cycles to.
pub fn text_of_cores(cores: &ModelledCores) -> String {
    let mut text = String::from("\ncore  instructions        cycles   cycles an instruction\n");
    let mut sum = Counters::default();
    for (core, counters) in cores.counters().into_iter().enumerate() {
        let instructions = counters.get(Event::InstructionsRetired);
        let cycles = counters.get(Event::CpuCycles);
        if instructions > 0 {
            let each = cycles as f64 / instructions as f64;
            text.push_str(&format!(
                "{core:>4}  {instructions:>12}  {cycles:>12}   {each:.3}\n"
            ));
        }
        sum += counters;
    }
    text.push('\n');
    text.push_str(&program::text_of(cores.parameters(), &sum, None));
    text
}

/// What was found out of one virtual machine's sharing, and what that cost.
fn text_of_detection(detection: &DetectionReport, machine: &VirtualMachineReport) -> String {
    let counts = detection.counts;
    let [guest, monitor, ..] = machine.cycles;
    let share = detection.cycles as f64 * 100.0 / (guest + monitor).max(1) as f64;
    let mut text = format!(
        "  sharing   {} pages taken away in {} rounds, {} faults, {} fills noted, {} accesses lost; {} cycles, \
         {share:.2} % of what it ran; {} rounds left out\n",
        counts.taken,
        counts.rounds,
        counts.faults,
        counts.fills,
        detection.lost,
        detection.cycles,
        counts.left_out
    );
    for found in &detection.found {
        text.push_str(&format!(
            "  sets      from cycle {} on: {}\n",
            found.time, found.sets
        ));
    }
    text
}

/// What contention has cost on each core.
fn text_of_contention(contention: &ContentionReport) -> String {
    let mut text = format!(
        "\n{}\ncore  shared hits  memory lines   cycles of shared hits       memory    bandwidth     siblings\n",
        contention.hierarchy
    );
    for (core, counts) in contention.cores.iter().enumerate() {
        text.push_str(&format!(
            "{core:>4} {:>12} {:>13} {:>23} {:>12} {:>12} {:>12}\n",
            counts.shared_hits,
            counts.memory_lines,
            counts.shared_cycles,
            counts.memory_cycles,
            counts.bandwidth_cycles,
            counts.sibling_cycles
        ));
    }
    text
}

/// The report for people.
pub fn text_of(report: &Report) -> String {
    let mut text = format!(
        "{}: {} cycles, {} us\n",
        report.host,
        report.time,
        report.time_ns / 1000
    );
    let passed = report.time.since(Cycle::START).max(1);
    let percent = |part: u64| format!("{:.1} %", part as f64 * 100.0 / passed as f64);
    text.push_str("\ncore      guest  monitor  polling  serving  looking   asleep     idle\n");
    for core in &report.cores {
        let parts = [
            core.guest,
            core.monitor,
            core.polling,
            core.serving,
            core.looking,
            core.asleep,
            core.idle,
        ];
        let parts: Vec<String> = parts
            .iter()
            .map(|part| format!("{:>8}", percent(*part)))
            .collect();
        text.push_str(&format!("{:>4}   {}\n", core.core, parts.join(" ")));
    }
    if let Some(contention) = &report.contention {
        text.push_str(&text_of_contention(contention));
    }
    if let Some(nic) = &report.nic {
        let counts = nic.counts;
        text.push_str(&format!(
            "\ncard, delivery `{}`: {} interrupts handled in {} cycles, {} signals by sidecores in {} cycles, \
             {} frames for nobody, {} for which engines had no room\n",
            nic.delivery.name(),
            counts.interrupts,
            counts.handling_cycles,
            counts.sidecore_signals,
            counts.sidecore_cycles,
            counts.unknown,
            counts.overrun
        ));
    }
    for (index, machine) in report.machines.iter().enumerate() {
        let code = machine
            .exit_code
            .map_or("still running".to_owned(), |code| format!("exit code {code}"));
        text.push_str(&format!(
            "\n{}: {code}, {} instructions, {} intercepts without exit, {} purges of other TLBs\n",
            machine.name, machine.instructions, machine.accelerated, machine.remote_purges
        ));
        if let Some(lock) = machine.page_table_lock {
            text.push_str(&format!(
                "  page tables' lock: taken {} times, {} of them after waiting, {} cycles lost\n",
                lock.taken, lock.contended, lock.cycles
            ));
        }
        for exit in &machine.exits {
            text.push_str(&format!(
                "  exit      {:<32} {:>10}   {:>14} cycles\n",
                exit.reason.name(),
                exit.count,
                exit.cycles
            ));
        }
        for request in &machine.requests {
            text.push_str(&format!(
                "  {:<9} {:<32} {:>10}   least {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, most {} cycles\n",
                request.method.name(),
                kind_name(request.kind),
                request.count,
                request.least,
                request.median,
                request.percentile_90,
                request.percentile_99,
                request.percentile_99_9,
                request.most
            ));
        }
        if let Some(detection) = &machine.detection {
            text.push_str(&text_of_detection(detection, machine));
        }
        if let Some(interface) = report.nic.as_ref().and_then(|nic| nic.interfaces.get(index)) {
            let (counts, interrupts) = (interface.counts, interface.interrupts);
            text.push_str(&format!(
                "  interface {} sent, {} received, {} dropped, {} refused; {} signals, {} redundant; preempted {} \
                 times for others, {} cycles\n",
                counts.sent,
                counts.received,
                counts.dropped,
                counts.refused,
                counts.signals,
                counts.redundant,
                interrupts.preemptions,
                interrupts.preempted_cycles
            ));
        }
    }
    text
}
