//! The pipeline's rules on short streams of instructions.

mod support;

use sidestep_ia64::encoding::{Bundle, Form, Operand, Template};
use sidestep_itanium2::parameters::Cost;
use sidestep_itanium2::{Event, Parameters, Stall};
use support::{CODE, Line, Stream, line};

const LOAD: Line = line("ld8", "M1", &[4, 5]);
const STORE: Line = line("st8", "M4", &[5, 6]);
const USE: Line = line("add", "A1", &[7, 4, 6]);
const ADD: Line = line("add", "A1", &[8, 9, 10]);
const DATA: u64 = 0x20_0000;

#[test]
fn a_loaded_value_is_late_by_the_level_that_answers() {
    let mut stream = Stream::new();
    // Memory, then the first level.
    for (bubbles, event) in [(99, Event::L3Misses), (0, Event::L1dReads)] {
        // The page is known already.
        stream.show(LOAD, Some(DATA + 4096 - 64), None);
        stream.rest();
        let before = stream.pipeline.finish();
        stream.show(LOAD, Some(DATA), None);
        stream.show(USE, None, None);
        let counters = stream.pipeline.finish() - before;
        assert_eq!(counters.get(Event::ExecutionGeneral), bubbles);
        assert_eq!(counters.get(event), 1);
    }
}

#[test]
fn a_minimum_of_vectors_is_a_multimedia_operation() {
    let mut stream = Stream::new();
    stream.rest();
    let minimum = line("pmin2", "I2", &[4, 5, 6]);
    assert_eq!(stream.distance(&[minimum, USE], Stall::GeneralGeneral).0, 3);
}

#[test]
fn a_loaded_address_costs_a_cycle_more() {
    let mut stream = Stream::new();
    stream.show(LOAD, Some(DATA), None);
    stream.rest();
    let before = stream.pipeline.finish();
    stream.show(LOAD, Some(DATA), None);
    stream.show(line("ld8", "M1", &[7, 4]), Some(DATA), None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::ExecutionGeneral), 1);
}

/// Bubbles of recirculation of a load so many groups behind a store.
fn recirculation(parameters: Parameters, stored: u64, loaded: u64, between: u64) -> u64 {
    let mut stream = Stream::on(parameters);
    stream.show(LOAD, Some(loaded), None);
    stream.rest();
    let before = stream.pipeline.finish();
    stream.show(STORE, Some(stored), None);
    for _ in 0..between {
        stream.show(ADD, None, None);
    }
    stream.show(LOAD, Some(loaded), None);
    (stream.pipeline.finish() - before).get(Event::L1dStoreRecirculation)
}

#[test]
fn a_load_close_behind_a_store_to_its_data_recirculates() {
    let usual = Parameters::default();
    let window = usual.cost(Cost::StoreWindow);
    for between in 0..5 {
        let bubbles = window.saturating_sub(between + 1);
        assert_eq!(
            recirculation(usual.clone(), DATA, DATA, between),
            bubbles,
            "{between}"
        );
        assert_eq!(
            recirculation(usual.clone(), DATA + 8, DATA, between),
            0,
            "{between}"
        );
        // As it would be if lines were compared.
        let lines = usual.clone().with(Cost::StoreUnitLog2, 6);
        assert_eq!(
            recirculation(lines.clone(), DATA + 56, DATA, between),
            bubbles,
            "{between}"
        );
        assert_eq!(recirculation(lines, DATA + 64, DATA, between), 0, "{between}");
    }
}

/// Shows one group of two floating-point loads.
fn show_pair(stream: &mut Stream, addresses: [u64; 2]) {
    let load = |register| {
        let form = Form::named("ldf8").find(|form| form.format == "M6");
        let encoded = form.expect("a form").encode(0, &[register, 5], &[]);
        encoded.expect("operands in range").slot
    };
    let nop = Form::named("nop.i").next().expect("a form").encode(0, &[0], &[]);
    let slots = [load(6), load(7), nop.expect("a number in range").slot];
    let reference = |slot: usize| (addresses.get(slot).copied(), None);
    // MMI with a stop.
    stream.show_bundle(Bundle::new(Template::new(0x09), slots), reference);
}

#[test]
fn the_second_of_two_loads_of_a_group_from_a_bank_of_the_second_level_is_late() {
    let more = Parameters::default().cost(Cost::BankConflict);
    // The banks are 16 bytes wide, and 16.
    for (second, is_same) in [
        (DATA + 8, true),
        (DATA + 16, false),
        (DATA + 256, true),
        (DATA + 248, false),
    ] {
        let mut stream = Stream::new();
        show_pair(&mut stream, [DATA, second]);
        stream.rest();
        let before = stream.pipeline.finish();
        show_pair(&mut stream, [DATA, second]);
        stream.show(line("getf.sig", "M19", &[4, 7]), None, None);
        let counters = stream.pipeline.finish() - before;
        let late = if is_same { more } else { 0 };
        assert_eq!(counters.get(Event::ExecutionFloat), 5 + late, "{second:#x}");
        assert_eq!(counters.get(Event::L2BankConflicts), u64::from(is_same));
    }
}

#[test]
fn loads_of_two_groups_meet_in_no_bank() {
    let load = line("ldf8", "M6", &[6, 5]);
    let mut stream = Stream::new();
    stream.show(load, Some(DATA), None);
    stream.rest();
    let before = stream.pipeline.finish();
    stream.show(load, Some(DATA), None);
    stream.show(load, Some(DATA), None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::L2BankConflicts), 0);
}

#[test]
fn what_finds_the_queue_of_the_second_level_full_waits_for_its_first_request() {
    let load = line("ldf8", "M6", &[6, 5]);
    let parameters = Parameters::default();
    let entries = parameters.cost(Cost::RequestQueueEntries);
    let memory = u64::from(parameters.memory);
    let mut stream = Stream::new();
    // The pages are known, the lines are not.
    stream.show(load, Some(DATA + 128 * 31), None);
    stream.show(load, Some(DATA + 128 * 63), None);
    stream.rest();
    let before = stream.pipeline.finish();
    let lines = (0..entries + 1).map(|index| index + u64::from(index >= 31));
    for line in lines {
        stream.show(load, Some(DATA + 128 * line), None);
    }
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::L3DataReadMisses), entries + 1);
    assert_eq!(counters.get(Event::L1dBackPressure), memory - entries);
}

#[test]
fn a_reference_across_two_lines_is_two() {
    for (address, is_misaligned, bubbles) in [(DATA + 48, 0, 0), (DATA + 52, 1, 0), (DATA + 60, 1, 1)] {
        let mut stream = Stream::new();
        stream.show(LOAD, Some(DATA), None);
        stream.show(LOAD, Some(DATA + 64), None);
        stream.rest();
        let before = stream.pipeline.finish();
        stream.show(LOAD, Some(address), None);
        stream.show(USE, None, None);
        let counters = stream.pipeline.finish() - before;
        assert_eq!(
            counters.get(Event::MisalignedLoads),
            is_misaligned,
            "{address:#x}"
        );
        assert_eq!(counters.get(Event::ExecutionGeneral), bubbles, "{address:#x}");
        assert_eq!(counters.get(Event::L1dReadMisses), 0);
    }
    // The second line comes from the second level.
    let mut stream = Stream::new();
    stream.show(LOAD, Some(DATA), None);
    stream.show(line("ldf8", "M6", &[6, 5]), Some(DATA + 64), None);
    stream.rest();
    let before = stream.pipeline.finish();
    stream.show(LOAD, Some(DATA + 60), None);
    stream.show(USE, None, None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::ExecutionGeneral), 5);
    assert_eq!(counters.get(Event::L1dReadMisses), 1);
}

#[test]
fn a_floating_point_load_passes_by_the_store_buffer_of_the_first_level() {
    let load = line("ldf8", "M6", &[6, 5]);
    let mut stream = Stream::new();
    stream.show(load, Some(DATA), None);
    stream.rest();
    let before = stream.pipeline.finish();
    stream.show(STORE, Some(DATA), None);
    stream.show(load, Some(DATA), None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::L1dStoreRecirculation), 0);
}

#[test]
fn what_issues_with_a_move_to_the_user_mask_does_not_wait_for_it() {
    let form = |name: &str, operand| {
        Form::named(name)
            .find(|form| form.operands.contains(&operand))
            .expect("a form")
            .encode(0, &[0, 2], &[])
            .expect("operands in range")
            .slot
    };
    let nop = |name: &str| {
        let form = Form::named(name).next().expect("a form");
        form.encode(0, &[0], &[]).expect("operands in range").slot
    };
    let mut stream = Stream::new();
    stream.rest();
    let before = stream.pipeline.finish();
    // One issue group of an MII bundle, and whatever follows.
    let slots = [form("mov", Operand::PsrUserMask), nop("nop.i"), nop("nop.i")];
    stream.show_bundle(Bundle::new(Template::new(0x01), slots), |_| (None, None));
    stream.show(ADD, None, None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.issue_cycles(), 2);
    assert_eq!(counters.get(Event::ExecutionSystem), 4);
}

#[test]
fn the_ninth_access_to_a_system_register_finds_the_queue_full() {
    let mut stream = Stream::new();
    stream.rest();
    let before = stream.pipeline.finish();
    for register in 0..9 {
        // Kernel registers, one a cycle, back after twelve.
        stream.show(line("mov.m", "M31", &[16 + register, 0]), None, None);
    }
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::L1dSystemQueue), 4);
}

#[test]
fn slow_registers_are_accessed_every_six_cycles() {
    let mut stream = Stream::new();
    stream.rest();
    let read = line("mov.m", "M31", &[4, 44]);
    assert_eq!(stream.distance(&[read, read], Stall::General).0, 6);
    let used = stream.distance(&[read, USE], Stall::General);
    assert_eq!(used.0, 36);
    assert_eq!(used.1.booked()[Stall::General as usize], 35);
}

#[test]
fn a_move_to_a_region_register_makes_a_reference_five_cycles_later_recirculate() {
    use sidestep_ia64::encoding::Operand;
    let to_region = support::with("mov", "M42", &[2, 3], Operand::Rr);
    for (between, bubbles) in [(3, 0), (4, 1), (5, 0)] {
        let mut stream = Stream::new();
        stream.show(LOAD, Some(DATA), None);
        stream.rest();
        let before = stream.pipeline.finish();
        stream.show(to_region, None, None);
        for _ in 0..between {
            stream.show(ADD, None, None);
        }
        stream.show(LOAD, Some(DATA), None);
        stream.show(ADD, None, None);
        let counters = stream.pipeline.finish() - before;
        assert_eq!(counters.get(Event::L1dRecirculation), bubbles, "{between}");
    }
}

#[test]
fn a_mispredicted_branch_costs_six_bubbles_and_a_predicted_one_none() {
    let mut stream = Stream::new();
    stream.rest();
    let branch = line("br.cond", "B1", &[0]);
    // Without a predicate there is nothing to predict but the target, which is in the instruction.
    let before = stream.pipeline.finish();
    stream.show(branch, None, Some(CODE));
    stream.show(ADD, None, None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::FlushBranch), 0);
    // A return without a call goes to another place than the stack of returns says.
    let before = stream.pipeline.finish();
    stream.show(line("br.ret", "B4", &[0]), None, Some(CODE));
    stream.show(ADD, None, None);
    let counters = stream.pipeline.finish() - before;
    assert_eq!(counters.get(Event::FlushBranch), 6);
    assert_eq!(counters.get(Event::ReturnsWrongTarget), 1);
}

/// A bundle of nops of a template.
fn nops(template: u8) -> Bundle {
    let template = Template::new(template);
    let units = template.units().expect("a template");
    let slots = units.map(|unit| {
        let name = format!("nop.{unit:?}").to_lowercase();
        Form::named(&name)
            .next()
            .expect("a nop")
            .encode(0, &[0], &[])
            .expect("nop 0")
            .slot
    });
    Bundle::new(template, slots)
}

#[test]
fn two_bundles_issue_in_a_cycle_where_their_ports_are_free() {
    // First bundle, second bundle with a stop, issue cycles; the first stands at an even place.
    let pairs = [
        (0x00, 0x01, 2), // MII MII: four I slots
        (0x08, 0x09, 1), // MMI MMI
        (0x0c, 0x0d, 1), // MFI MFI
        (0x10, 0x11, 1), // MIB MIB with nop.b
        (0x16, 0x01, 2), // BBB MII: always splits behind BBB
        (0x12, 0x09, 2), // MBB MMI
    ];
    for (first, second, cycles) in pairs {
        let mut stream = Stream::new();
        stream.rest();
        stream.ip = CODE + 64;
        let before = stream.pipeline.finish();
        stream.show_bundle(nops(first), |_| (None, None));
        stream.show_bundle(nops(second), |_| (None, None));
        let counters = stream.pipeline.finish() - before;
        assert_eq!(counters.issue_cycles(), cycles, "{first:#x} {second:#x}");
    }
}

#[test]
fn the_same_instructions_take_the_same_cycles() {
    let run = || {
        let mut stream = Stream::new();
        for round in 0..200u64 {
            stream.show(LOAD, Some(DATA + round * 712 % 65536), None);
            stream.show(USE, None, None);
            stream.show(STORE, Some(DATA + round * 1032 % 65536), None);
        }
        stream.pipeline.finish()
    };
    assert_eq!(run(), run());
}
