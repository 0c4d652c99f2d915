//! What may stand in one group, against GNU as's check of dependency violations, for pairs of all forms.
//!
//! Needs `ia64-linux-gnu-as`; without it the test says so and passes. `SIDESTEP_ORACLE_PAIRS` sets how many pairs are
//! compared. What it reports this table must; what this table reports beyond that must have a reason that is named
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use sidestep_ia64::encoding::{
    Bundle, Field, Form, Instruction, NoSymbols, Notation, Operand, Template, Unit, UnitClass, all_forms,
    decode,
};
use sidestep_schedule::groups::Checker;
use sidestep_schedule::sequencing::{Effects, Parts, State};

/// A reproducible generator of random bits (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }
}

/// Of what these read and write binutils' tables leave out a part, or its check ends the group behind them; what it
/// does report of them is compared.
const UNKNOWN: &[&str] = &[
    "fcmp.unord",
    "fpcmp",
    "ldfp",
    ".c.clr",
    ".c.nc",
    "mpy4",
    "mpyshl4",
    "fpcvt",
    "fpmax",
    "fpmin",
    "fpamax",
    "fpamin",
    "rfi",
    "srlz",
    "br.ret",
    "br.call",
    "brl.call",
    "br.ctop",
    "br.cexit",
    "br.wtop",
    "br.wexit",
    "cover",
    "clrrrb",
    "rum",
    "=ip",
    "dahr",
    "itr.i",
    "flushrs",
    "loadrs",
    "lfetch",
];

/// Puts registers of a small set into the form's operands, so that two instructions often name the same.
fn with_few_registers(form: &Form, mut slot: u64, random: &mut Random) -> u64 {
    for operand in form.operands {
        let description = operand.description();
        let [Field { shift, bits, .. }] = *description.fields else {
            continue;
        };
        let register: &[u64] = match (description.notation, operand) {
            (Notation::Register(file), _) => match file {
                "r" => &[3, 4, 5, 35],
                "f" => &[8, 9, 40],
                "p" => &[6, 7, 20],
                "b" => &[6, 7],
                _ => continue,
            },
            (Notation::Application, _) => &[6, 16, 17, 18, 19, 32, 36, 40, 44, 64, 65, 66],
            (Notation::Control, _) => &[0, 1, 2, 8, 16, 17, 19, 20, 21, 23, 65, 67],
            (Notation::Indirect(_), _) => &[3, 4, 5, 35],
            _ => continue,
        };
        let register = register[random.below(register.len() as u64) as usize];
        let mask = ((1 << bits) - 1) << shift;
        slot = slot & !mask | register << shift & mask;
    }
    let qualifier = [0, 0, 6, 20][random.below(4) as usize];
    let slot = if form.predicated {
        slot & !0x3f | qualifier
    } else {
        slot
    };
    slot & !form.mask | form.value
}

fn unit(form: &Form) -> Unit {
    match form.class {
        UnitClass::A | UnitClass::I => Unit::I,
        UnitClass::M => Unit::M,
        UnitClass::B => Unit::B,
        UnitClass::F => Unit::F,
        UnitClass::LX => Unit::X,
    }
}

/// An instruction of the form and its text for the assembler.
fn instruction(form: &Form, random: &mut Random) -> Option<(Instruction, String)> {
    let slot = with_few_registers(form, random.bits(), random);
    let instruction = decode(unit(form), slot, 0)
        .ok()
        .filter(Instruction::has_spelling)?;
    let (template, place) = match unit(form) {
        Unit::M => (0x00, 0),
        Unit::I => (0x00, 1),
        Unit::B => (0x16, 0),
        Unit::F => (0x0c, 1),
        _ => (0x04, 2),
    };
    let mut slots = [0; 3];
    slots[place] = slot;
    let bundle = Bundle::new(Template::new(template), slots);
    let decoded = bundle
        .decode()
        .find(|decoded| usize::from(decoded.slot) == place)?;
    let mut text = decoded.text(bundle, 0, &NoSymbols).trim().to_owned();
    let is_target = |operand: &Operand| format!("{operand:?}").starts_with("Target");
    if form.operands.iter().any(is_target) || format!("{:?}", form.operands).contains("Tag13") {
        let start = text.rfind([' ', ',', '=']).unwrap_or(0);
        text.replace_range(start + 1.., "1b");
    }
    Some((instruction, text))
}

#[test]
fn pairs_that_need_a_stop_are_those_that_gnu_as_parts() {
    let Some(assembler) = tests_need::ASSEMBLER.find() else {
        return;
    };
    let count: usize = match std::env::var("SIDESTEP_ORACLE_PAIRS") {
        Ok(text) => text.parse().expect("SIDESTEP_ORACLE_PAIRS is a number"),
        Err(_) => 20_000,
    };
    let mut random = Random(1);
    let forms: Vec<&Form> = all_forms()
        .map(|(_, form)| form)
        .filter(|form| form.has_spelling)
        .collect();
    let mut pairs = Vec::new();
    let mut source = ".text\n1:\n".to_owned();
    while pairs.len() < count {
        let mut draw = || {
            let form = forms[random.below(forms.len() as u64) as usize];
            instruction(form, &mut random)
        };
        let (Some(first), Some(second)) = (draw(), draw()) else {
            continue;
        };
        // The assembler ends a group before alloc itself; some hints it writes and does not read.
        if second.1.contains("alloc")
            || [&first, &second]
                .iter()
                .any(|one| one.1.contains(".d") || one.1.contains("br.ia") || one.1.contains("vmsw"))
        {
            continue;
        }
        writeln!(source, "{}\n{} ;;\nsrlz.i ;;\nsrlz.d ;;", first.1, second.1).expect("a string");
        pairs.push((first, second));
    }
    let path = std::env::temp_dir().join(format!("sidestep-pairs-{}.s", std::process::id()));
    fs::write(&path, source).expect("a temporary file can be written");
    let output = Command::new(&assembler)
        .args(["-xexplicit", "-mhint.b=ok", "-o", "/dev/null"])
        .arg(&path)
        .output()
        .expect("the assembler starts");
    fs::remove_file(&path).expect("the temporary file can be removed");
    let (mut wrong, mut violations) = (BTreeSet::new(), BTreeMap::<usize, Vec<String>>::new());
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let mut columns = line.splitn(3, ':');
        let Some(number) = columns.nth(1).and_then(|number| number.parse::<usize>().ok()) else {
            continue;
        };
        let (pair, which) = ((number - 3) / 4, (number - 3) % 4);
        let text = columns.next().unwrap_or_default();
        if text.contains("violat") && which == 1 {
            violations.entry(pair).or_default().push(text.to_owned());
        } else if text.contains("Error") || text.contains("Warning: Additional NOP") {
            wrong.insert(pair);
        }
    }
    let mut differences = BTreeMap::<String, (usize, String)>::new();
    let mut compared = 0;
    for (index, (first, second)) in pairs.iter().enumerate() {
        if wrong.contains(&index) {
            continue;
        }
        compared += 1;
        let conflict = Effects::of(&first.0).conflict(&Effects::of(&second.0));
        let theirs = violations.get(&index);
        let is_known = [&first.1, &second.1]
            .iter()
            .all(|text| !UNKNOWN.iter().any(|name| text.contains(name)));
        let needs_stop = conflict.needs_stop();
        // Of the system's state this table takes more together than the manual's does.
        let by_register = !Parts {
            status: 0,
            control: 0,
            state: State::empty(),
            ..conflict.parted
        }
        .is_empty();
        if by_register && theirs.is_none() && is_known || !needs_stop && theirs.is_some() {
            let what = match theirs {
                Some(theirs) => format!("missed: {}", theirs[0]),
                None => format!("too much: {:?}", conflict.parted),
            };
            let entry = differences.entry(what).or_default();
            entry.0 += 1;
            entry.1 = format!("{} | {}", first.1, second.1);
        }
    }
    for (what, (count, example)) in &differences {
        println!("{count:6} {what}\n         {example}");
    }
    println!("{compared} pairs compared, {} with a violation", violations.len());
    assert!(differences.is_empty());
}

#[test]
fn what_a_return_may_have_the_register_stack_write_asks_for_no_stop() {
    // { mov.m ar.rnat = r26; mov.m ar.rsc = r24; br.ret.sptk.few b0 ;; }, as glibc's setcontext ends; with ar.bspstore,
    // on which the frame hangs, it would be wrong.
    let bundle = |register: u8| {
        let bytes = [
            0x19, 0x00, 0x68, register, 0x2a, 0x04, 0x00, 0xc0, 0x40, 0x54, 0x08, 0x80, 0x00, 0x00, 0x84,
            0x00,
        ];
        Bundle::from_bytes(bytes)
    };
    for (register, is_wrong) in [(0x26, false), (0x24, true)] {
        let mut found = 0;
        Checker::default().bundle(0, bundle(register), &mut |_| found += 1);
        assert_eq!(found > 0, is_wrong, "{register:#x}");
    }
}
