//! Random straight code: what the scheduler makes of it does the same, in as many cycles on the model as it says, and
//! the model breaks none of the scheduler's rules.

use std::time::Duration;

use proptest::prelude::*;
use sidestep_ia64::encoding::{Form, Instruction, Operand, Unit, UnitClass, decode};
use sidestep_itanium2::Parameters;
use sidestep_schedule::bundle::{Content, Packer, Placed};
use sidestep_schedule::checks::speculate_with_checks;
use sidestep_schedule::graph::Latencies;
use sidestep_schedule::groups::Checker;
use sidestep_schedule::program::padding::fit;
use sidestep_schedule::sequencing::{Effects, Parts};
use sidestep_schedule::speculate::speculate;
use sidestep_schedule::verify::{self, equivalence};
use sidestep_schedule::worlds::Worlds;
use sidestep_schedule::{Block, Graph, Options, optimize};

/// Kinds of instructions, by mnemonic and the kinds of their operands: registers of small sets, so that they meet.
const KINDS: &[(&str, &str)] = &[
    ("add", "rrr"),
    ("sub", "rrr"),
    ("and", "rrr"),
    ("adds", "rir"),
    ("shladd", "rrsr"),
    ("padd2", "rrr"),
    ("shl", "rrr"),
    ("extr.u", "rrss"),
    ("sxt4", "rr"),
    ("popcnt", "rr"),
    ("movl", "ri"),
    ("cmp.eq", "pprr"),
    ("cmp.lt.unc", "pprr"),
    ("cmp.eq.or", "pprr"),
    ("cmp.eq.and", "pprr"),
    ("tbit.z", "pprs"),
    ("ld8", "ra"),
    ("ld4", "rai"),
    ("ld8.s", "ra"),
    ("st8", "ar"),
    ("st4", "ari"),
    ("ldfd", "fa"),
    ("stfd", "af"),
    ("fma.d.s0", "ffff"),
    ("xma.l", "ffff"),
    ("fcmp.eq.s0", "ppff"),
    ("setf.sig", "fr"),
    ("getf.sig", "rf"),
    ("mov.i", "lr"),
    ("mov.m", "cr"),
    ("mov.m", "rc"),
    ("mov.m", "rk"),
    ("mov.m", "rt"),
    ("mov.m", "tr"),
    ("flushrs", ""),
    ("mf", ""),
    ("srlz.d", ""),
    ("rum", "u"),
    ("invala", ""),
    ("cmp.eq.or.andcm", "pprr"),
];

const GENERAL: [i64; 8] = [4, 5, 6, 7, 14, 15, 33, 34];

fn instruction(kind: usize, qualifier: u8, draws: &[u64]) -> Option<Instruction> {
    let (mnemonic, operands) = KINDS[kind % KINDS.len()];
    let values: Vec<i64> = operands
        .bytes()
        .zip(draws)
        .map(|(operand, draw)| match operand {
            b'r' | b'a' => GENERAL[(*draw % 8) as usize],
            b'f' => [6, 7, 8, 33][(*draw % 4) as usize],
            b'p' => [6, 7, 8, 9][(*draw % 4) as usize],
            b'i' => 8 * (*draw % 4) as i64,
            b's' => 1 + (*draw % 4) as i64,
            b'l' => 65,
            b'c' => 32,
            b'k' => 6,
            b't' => 36,
            _ => 8,
        })
        .collect();
    let forms = Form::named(mnemonic).filter(|form| form.operands.len() == values.len());
    forms.into_iter().find_map(|form| {
        let qualifier = if form.predicated {
            [0, 0, 6, 7][usize::from(qualifier % 4)]
        } else {
            0
        };
        let encoded = form.encode(qualifier, &values, &[]).ok()?;
        let unit = match form.class {
            UnitClass::A | UnitClass::I => Unit::I,
            UnitClass::M => Unit::M,
            UnitClass::B => Unit::B,
            UnitClass::F => Unit::F,
            UnitClass::LX => Unit::X,
        };
        let instruction = decode(unit, encoded.slot, encoded.long).ok()?;
        // A compare writes two predicates, a load with an update two registers: not the same ones.
        let is_legal = !operands.starts_with("pp") || values[0] != values[1];
        let updates = operands.contains("ai") && operands.starts_with('r') && values[0] == values[1];
        (is_legal && !updates).then_some(instruction)
    })
}

fn block(draws: &[(usize, u8, [u64; 4])]) -> Block {
    let instructions: Vec<Instruction> = draws
        .iter()
        .filter_map(|(kind, qualifier, draws)| instruction(*kind, *qualifier, draws))
        .collect();
    Block::new(&instructions, &Parameters::default()).expect("all of them can be placed")
}

/// The items of bundles, in order.
fn order(bundles: &[Placed]) -> Vec<usize> {
    let contents = bundles.iter().flat_map(|placed| placed.slots);
    let items = contents.filter_map(|content| match content {
        Content::Item(item) => Some(item),
        _ => None,
    });
    items.collect()
}

/// How many blocks are tried; `SIDESTEP_RANDOM_BLOCKS` sets more.
fn cases() -> u32 {
    match std::env::var("SIDESTEP_RANDOM_BLOCKS") {
        Ok(text) => text.parse().expect("SIDESTEP_RANDOM_BLOCKS is a number"),
        Err(_) => 48,
    }
}

/// The block's instructions, for a failure.
fn listing(block: &Block) -> Vec<String> {
    let items = block.items.iter().map(|item| {
        let instruction = &item.instruction;
        let (predicate, form) = (instruction.predicate(), instruction.form());
        format!("(p{predicate}) {} {:x}", form.mnemonic, instruction.slot)
    });
    items.collect()
}

#[test]
fn every_kind_of_instruction_exists() {
    for (kind, name) in KINDS.iter().enumerate() {
        let found = (0..64).find_map(|draw| instruction(kind, 0, &[draw, draw + 1, draw + 2, draw + 3]));
        assert!(found.is_some(), "{name:?}");
    }
}

#[test]
fn a_block_that_is_longer_than_a_page_is_compared_as_well() {
    // Additions of registers that hold no NaT everywhere, and loads.
    // add r14 = r4, r5; ld8 r15 = [r14]; add r6 = r6, r15: the sum of two addresses is no place where code stands.
    let draws = [(0, 0, [4, 0, 1, 0]), (16, 0, [5, 4, 0, 0]), (0, 0, [2, 2, 5, 0])];
    let block = block(&draws.repeat(400));
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let outcome = optimize(&block, &options);
    let own: Vec<usize> = (0..block.items.len()).collect();
    let compared = equivalence::compare(&block, (&block, &own, &outcome.bundles), 32);
    assert!(compared.is_ok_and(|compared| compared.completed > 0));
}

#[test]
fn what_writes_the_predicate_of_an_exclusive_one_stays_behind_it() {
    // cmp.eq p7, p6; (p7) shl; (p6) fcmp.eq p7, p8: the second one comes first if its operands do.
    let draws = [
        (11, 0, [681, 12, 279, 0]),
        (6, 3, [0, 0, 0, 0]),
        (25, 2, [757, 134, 501, 253]),
    ];
    let block = block(&draws);
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::from_secs(5),
    };
    let outcome = optimize(&block, &options);
    let own: Vec<usize> = (0..block.items.len()).collect();
    let compared = equivalence::compare(&block, (&block, &own, &outcome.bundles), 64);
    assert!(
        compared.is_ok_and(|compared| compared.completed > 0),
        "{:?}",
        listing(&block)
    );
    let graph = Graph::new(&block, Latencies::Architectural);
    assert!(graph.path(1, 2).is_some());
}

#[test]
fn what_is_under_one_of_two_exclusive_predicates_does_not_wait_for_what_is_under_the_other() {
    // cmp.eq p6, p7; (p7) getf r7; (p6) mov ar.unat = r7, and what fills the cycle before: the processor executes one
    // of the two. With both, the second would wait for the first.
    let draws = [
        (38, 0, [0, 0, 0, 0]),
        (38, 0, [0, 0, 0, 0]),
        (11, 0, [305, 592, 0, 0]),
        (27, 3, [39, 580, 267, 411]),
        (2, 3, [63, 127, 105, 230]),
        (29, 2, [382, 343, 116, 462]),
        (19, 0, [161, 854, 516, 528]),
        (7, 2, [444, 304, 398, 516]),
        (33, 0, [419, 27, 915, 976]),
    ];
    let block = block(&draws);
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::from_secs(5),
    };
    let outcome = optimize(&block, &options);
    assert_eq!((outcome.listed, outcome.cycles, outcome.modelled), (7, 7, 7));
    assert!(outcome.is_optimal());
    let ordered = Worlds::of(&block).in_order(&order(&outcome.bundles));
    let bundles: Vec<_> = outcome
        .bundles
        .iter()
        .map(|placed| placed.encode(&block.items))
        .collect();
    let cycles = |executed: &dyn Fn(usize) -> bool| {
        let world = (0..block.items.len()).map(executed).collect();
        verify::timeline(&bundles, &world, &options.parameters)
            .last()
            .map(|group| group.cycle + 1)
    };
    assert_eq!(ordered.iter().count(), 2);
    let each: Vec<_> = ordered.iter().map(|world| cycles(&|item| world[item])).collect();
    assert_eq!((each, cycles(&|_| true)), (vec![Some(7), Some(4)], Some(8)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_schedule_does_the_same_in_as_many_cycles_as_it_says(
        draws in prop::collection::vec((0usize..1000, 0u8..4, prop::array::uniform4(0u64..1000)), 1..24)
    ) {
        let parameters = Parameters::default();
        let block = block(&draws);
        prop_assume!(!block.items.is_empty());
        let options = Options { parameters: parameters.clone(), time_limit: Duration::from_secs(5) };
        let outcome = optimize(&block, &options);
        // A schedule that holds in several worlds may be shorter in each.
        let worlds = Worlds::of(&block);
        let is_kept = match worlds.are_several() {
            true => outcome.cycles >= outcome.modelled,
            false => outcome.cycles == outcome.modelled,
        };
        prop_assert!(is_kept, "solver {} and model {}: {:?}", outcome.cycles, outcome.modelled, listing(&block));
        prop_assert!(outcome.bound <= outcome.modelled);
        prop_assert!(outcome.cycles <= outcome.listed);
        // What the model does with the result breaks no rule of the graph.
        let order = order(&outcome.bundles);
        let bundles: Vec<_> = outcome.bundles.iter().map(|placed| placed.encode(&block.items)).collect();
        for (world, ordered) in worlds.iter().zip(worlds.in_order(&order).iter()) {
            let placement = verify::placement(&bundles, ordered, &parameters);
            let mut cycles = vec![0; block.items.len()];
            for (item, cycle) in order.iter().zip(&placement) {
                cycles[*item] = *cycle;
            }
            let graph = Graph::in_worlds(&block, Latencies::Of(&parameters), &worlds, &[world]);
            prop_assert_eq!(graph.broken(&cycles), Vec::<String>::new());
        }
        // No two of a group depend on each other in a way that asks for a stop, but under exclusive predicates.
        let effects: Vec<Effects> = block.items.iter().map(|item| item.effects).collect();
        for group in outcome.schedule.groups() {
            for (place, first) in group.iter().enumerate() {
                for second in &group[place + 1..] {
                    let are_exclusive = effects[*first].qualifier != 0 && effects[*second].qualifier != 0
                        && effects[*first].qualifier != effects[*second].qualifier;
                    let conflict = effects[*first].conflict(&effects[*second]);
                    prop_assert!(are_exclusive || !conflict.is_parted_by_stop(), "{first} and {second}");
                }
            }
        }
        let own: Vec<usize> = (0..block.items.len()).collect();
        if let Err(difference) = equivalence::compare(&block, (&block, &own, &outcome.bundles), 12) {
            prop_assert!(false, "{}", difference);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_schedule_does_the_same_in_any_room_that_it_fits_into(
        draws in prop::collection::vec((0usize..1000, 0u8..4, prop::array::uniform4(0u64..1000)), 1..24)
    ) {
        let parameters = Parameters::default();
        let block = block(&draws);
        prop_assume!(!block.items.is_empty());
        let options = Options { parameters: parameters.clone(), time_limit: Duration::ZERO };
        let outcome = optimize(&block, &options);
        let graph = Graph::new(&block, Latencies::Of(&parameters));
        let own: Vec<usize> = (0..block.items.len()).collect();
        let slots: usize = block.items.iter().map(|item| usize::from(item.slots())).sum();
        let own_room = outcome.bundles.len();
        prop_assert!(fit(&block, &graph, &outcome.bundles, ((slots - 1) / 3, false), &parameters).is_none());
        for room in slots.div_ceil(3)..=own_room + 3 {
            let Some(fitted) = fit(&block, &graph, &outcome.bundles, (room, false), &parameters) else {
                prop_assert!(room < own_room);
                continue;
            };
            prop_assert_eq!(fitted.bundles.len(), room);
            prop_assert!(broken(&block, &fitted.bundles) <= broken(&block, &outcome.bundles));
            if let Err(difference) = equivalence::compare(&block, (&block, &own, &fitted.bundles), 4) {
                prop_assert!(false, "{}", difference);
            }
        }
    }
}

/// How many rules of groups bundles break.
fn broken(block: &Block, bundles: &[Placed]) -> usize {
    let mut checker = Checker::default();
    let mut count = 0;
    for placed in bundles {
        checker.bundle(0, placed.encode(&block.items), &mut |_| count += 1);
    }
    count
}

/// Every way to put items into groups, one behind the other, that keeps the architecture's order.
fn groupings(
    graph: &Graph,
    left: &[usize],
    done: &mut Vec<Vec<usize>>,
    found: &mut impl FnMut(&[Vec<usize>]),
) {
    if left.is_empty() {
        found(done);
        return;
    }
    for set in 1u32..1 << left.len() {
        let (group, rest): (Vec<usize>, Vec<usize>) = left.iter().enumerate().fold(
            (Vec::new(), Vec::new()),
            |(mut group, mut rest), (place, item)| {
                if set >> place & 1 != 0 {
                    group.push(*item)
                } else {
                    rest.push(*item)
                }
                (group, rest)
            },
        );
        let keeps_order = rest.iter().all(|later| {
            group
                .iter()
                .all(|item| graph.path(*later, *item).is_none() || later == item)
        });
        let is_group = group.iter().all(|first| {
            group
                .iter()
                .all(|second| first == second || graph.path(*first, *second).is_none_or(|path| path == 0))
        });
        if keeps_order && is_group {
            done.push(group);
            groupings(graph, &rest, done, found);
            done.pop();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 2) })]

    /// Against all there are, for blocks that are small enough.
    #[test]
    fn nothing_is_shorter_than_what_is_called_optimal(
        draws in prop::collection::vec((0usize..1000, 0u8..4, prop::array::uniform4(0u64..1000)), 1..6)
    ) {
        let parameters = Parameters::default();
        let block = block(&draws);
        prop_assume!(!block.items.is_empty());
        let options = Options { parameters: parameters.clone(), time_limit: Duration::from_secs(5) };
        let outcome = optimize(&block, &options);
        let graph = Graph::new(&block, Latencies::Architectural);
        let worlds = Worlds::of(&block);
        let mut packer = Packer::new(&block.items, &parameters);
        let mut least = u32::MAX;
        let items: Vec<usize> = (0..block.items.len()).collect();
        groupings(&graph, &items, &mut Vec::new(), &mut |groups| {
            let before = |first: usize, second: usize| first < second && graph.path(first, second) == Some(0);
            if let Ok(placed) = packer.layout(groups, before) {
                let bundles: Vec<_> = placed.iter().map(|placed| placed.encode(&block.items)).collect();
                let worlds = worlds.in_order(&order(&placed));
                least = least.min(verify::cycles(&bundles, &worlds, &parameters));
            }
        });
        prop_assert!(outcome.bound <= least && least <= outcome.modelled);
        prop_assert!(outcome.is_optimal() || worlds.are_several());
    }

    /// Over branches to one label, where some registers are dead, with registers of the scheduler's choice.
    #[test]
    fn what_passes_branches_in_other_registers_does_the_same(
        draws in prop::collection::vec((0usize..1000, 0u8..4, prop::array::uniform4(0u64..1000)), 1..24),
        exits in prop::collection::vec((0usize..24, 6u8..10), 0..4),
        dead in (any::<u8>(), 0u64..16)
    ) {
        let parameters = Parameters::default();
        let block = with_exits(&block(&draws), &exits, dead);
        prop_assume!(!block.items.is_empty());
        let options = Options { parameters, time_limit: Duration::from_millis(100) };
        for speculated in [speculate(&block, &options), speculate_with_checks(&block, &options)] {
            let outcome = &speculated.outcome;
            prop_assert!(outcome.bound <= outcome.modelled);
            let scheduled = (&speculated.block, &*speculated.origins, &*outcome.bundles);
            if let Err(difference) = equivalence::compare(&block, scheduled, 16) {
                prop_assert!(false, "{}: {:?}", difference, listing(&block));
            }
        }
    }
}

/// A block with branches to a label before some of its items. Behind the label some of the registers that the code uses
/// are dead.
fn with_exits(block: &Block, exits: &[(usize, u8)], (general, predicates): (u8, u64)) -> Block {
    let branch = |predicate: u8| {
        let mut forms = Form::named("br.cond").filter(|form| form.operands == [Operand::Target25c]);
        let form = forms.next().expect("it is an instruction");
        let encoded = form.encode(predicate, &[0], &[]).expect("a predicate");
        decode(Unit::B, encoded.slot, 0).expect("what was encoded")
    };
    let mut instructions = Vec::new();
    for (index, item) in block.items.iter().enumerate() {
        let here = exits.iter().filter(|(place, _)| *place == index);
        instructions.extend(here.map(|(_, predicate)| branch(*predicate)));
        instructions.push(item.instruction);
    }
    let mut block = Block::new(&instructions, &Parameters::default()).expect("all of them can be placed");
    let mut dead = Parts {
        predicate: predicates << 6,
        ..Parts::NONE
    };
    for (place, register) in GENERAL.iter().enumerate() {
        dead.general |= u128::from(general >> place & 1) << register;
    }
    for index in 0..block.items.len() {
        if block.items[index].is_branch() {
            block.targets[index] = Some(0);
            block.dead[index] = dead;
        }
    }
    block
}
