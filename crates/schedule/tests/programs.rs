//! Functions of linked programs: the checked-in guests' blocks, scheduled in place.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sidestep_ia64::encoding::{Bundle, Form, Operation, Template, Unit};
use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::bundle::nop;
use sidestep_schedule::program::function::{Function, Kept, Reason};
use sidestep_schedule::program::image::{Program, ProgramError, target};
use sidestep_schedule::program::rewrite::{schedule, write};
use tests_need::cross_compiler;

fn guest(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    fs::read(folder.join(name)).expect("a checked-in guest")
}

fn options() -> Options {
    Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    }
}

/// The functions of a program that can be scheduled, and why others cannot.
fn functions(program: &Program<'_>) -> (Vec<Function>, Vec<Reason>) {
    let (mut read, mut refused) = (Vec::new(), Vec::new());
    for extent in &program.functions {
        match Function::read(program, extent, &Parameters::default()) {
            Ok(function) => read.push(function),
            Err(error) => refused.push(error.reason),
        }
    }
    (read, refused)
}

/// What bundles do, wherever they do it: operations with their registers, without order; where branches go.
fn meaning(bundles: &[Bundle], start: u64) -> BTreeMap<String, usize> {
    let mut meaning = BTreeMap::new();
    for (address, bundle) in (start..).step_by(16).zip(bundles) {
        for decoded in bundle.decode() {
            let instruction = decoded.instruction.expect("code");
            if instruction.operation == Operation::Nop {
                continue;
            }
            let registers = (instruction.predicate(), instruction.r1(), instruction.r2());
            let text = match target(&instruction, address) {
                Some(target) => format!("{:?} to {target:#x}", instruction.operation),
                None => format!(
                    "{:?} {registers:?} {}",
                    instruction.operation, instruction.immediate
                ),
            };
            *meaning.entry(text).or_default() += 1;
        }
    }
    meaning
}

/// The function of a name.
fn function(program: &Program<'_>, name: &str) -> Function {
    let extent = program.functions.iter().find(|extent| extent.name == name);
    let extent = extent.expect("the guest has it");
    Function::read(program, extent, &Parameters::default()).expect("it can be scheduled")
}

#[test]
fn blocks_cover_a_function_and_begin_wherever_a_branch_goes() {
    for name in ["hash", "sort", "strings"] {
        let file = guest(name);
        let program = Program::parse(&file).expect("a program");
        let (functions, _) = functions(&program);
        assert!(functions.len() > 5);
        for function in &functions {
            let mut next = function.extent.addresses.start;
            for piece in &function.pieces {
                assert_eq!(piece.addresses.start, next);
                next = piece.addresses.end;
                let mut inside = program.arrivals.range(piece.addresses.start + 1..next);
                assert_eq!(inside.next(), None, "{}", function.extent.name);
            }
            assert_eq!(next, function.extent.addresses.end);
        }
    }
}

#[test]
fn scheduled_blocks_have_their_instructions_their_targets_and_fewer_cycles() {
    let file = guest("hash");
    let program = Program::parse(&file).expect("a program");
    let function = function(&program, "main");
    // Each is compared with what it was in random states as it is scheduled.
    let changes = schedule(&function, |_| true, &options()).expect("they do the same");
    assert!(!changes.is_empty());
    for change in &changes {
        let before = program.bundles(&change.addresses).expect("code");
        let start = change.addresses.start;
        assert_eq!(change.bundles.len(), before.len());
        assert_eq!(meaning(&change.bundles, start), meaning(&before, start));
        assert!(change.after < change.before);
        assert!(change.compared.completed > 0);
    }
    let mut rewritten = file.clone();
    write(&mut rewritten, &program, changes.iter());
    let again = Program::parse(&rewritten).expect("it is one still");
    assert_eq!(
        again.arrivals.keys().collect::<Vec<_>>(),
        program.arrivals.keys().collect::<Vec<_>>()
    );
    for change in &changes {
        assert_eq!(again.bundles(&change.addresses), Some(change.bundles.clone()));
    }
    let changed = |address: u64| changes.iter().any(|change| change.addresses.contains(&address));
    for section in &program.image.sections {
        let end = section.address + section.data.len() as u64 / 16 * 16;
        for address in (section.address..end)
            .step_by(16)
            .filter(|address| !changed(*address))
        {
            let place = address..address + 16;
            assert_eq!(again.bundles(&place), program.bundles(&place));
        }
    }
}

#[test]
fn what_makes_the_frame_stays() {
    let file = guest("hash");
    let program = Program::parse(&file).expect("a program");
    let function = function(&program, "main");
    assert_eq!(function.pieces[0].block.as_ref().err(), Some(&Kept::Frame));
    assert!(function.pieces.iter().any(|piece| piece.block.is_ok()));
}

#[test]
fn what_cannot_be_followed_is_refused_with_its_place() {
    let file = guest("hash");
    let program = Program::parse(&file).expect("a program");
    let (_, refused) = functions(&program);
    assert_eq!(refused, [Reason::Indirect], "the jump table of print_list");

    let extent = program.functions.iter().find(|extent| extent.name == "main");
    let extent = extent.expect("every program has it").clone();
    let read = |file: &[u8]| {
        let program = Program::parse(file).expect("a program");
        let refused = Function::read(&program, &extent, &Parameters::default()).expect_err("it is refused");
        (refused.address, refused.reason)
    };
    let place = extent.addresses.start + 32;
    let offset = program.offset(place).expect("code is in the file");

    // A reserved template.
    let mut data = file.clone();
    data[offset..offset + 16].fill(0x06);
    assert!(matches!(read(&data), (address, Reason::Undecodable(_)) if address == place));

    // What a function has executed that it has stored.
    let sync = Form::named("sync.i").next().expect("it is an instruction");
    let sync = sync.encode(0, &[], &[]).expect("it has no operands");
    let bundle = Bundle::new(Template::new(0x01), [sync.slot, nop(Unit::I), nop(Unit::I)]).to_bytes();
    let mut changing = file.clone();
    changing[offset..offset + 16].copy_from_slice(&bundle);
    assert_eq!(read(&changing), (place, Reason::ChangesCode));

    let mut longer = extent.clone();
    longer.addresses.end += 8;
    let refused = Function::read(&program, &longer, &Parameters::default()).expect_err("half a bundle");
    assert_eq!(refused.reason, Reason::Extent);
}

#[test]
fn a_block_begins_where_another_function_enters() {
    let mut entered = guest("hash");
    let file = entered.clone();
    let program = Program::parse(&file).expect("a program");
    let extent = program.functions.iter().find(|extent| extent.name == "main");
    let place = extent.expect("every program has it").addresses.start + 32;
    let begins = |program: &Program<'_>| {
        let pieces = function(program, "main").pieces;
        pieces.iter().any(|piece| piece.addresses.start == place)
    };
    assert!(!begins(&program), "or the test shows nothing");
    let from = program
        .functions
        .iter()
        .find(|function| function.name == "random_next");
    let from = from.expect("the guest has it").addresses.start;
    let branch = Form::named("br.cond").find(|form| form.operands.len() == 1 && form.immediate.is_some());
    let branch = branch.expect("a branch to an address");
    let branch = branch
        .encode(0, &[place.wrapping_sub(from) as i64], &[])
        .expect("it is near");
    let nops = [nop(Unit::M), nop(Unit::I), branch.slot];
    let bundle = Bundle::new(Template::new(0x11), nops).to_bytes();
    let offset = program.offset(from).expect("code is in the file");
    entered[offset..offset + 16].copy_from_slice(&bundle);
    assert!(begins(&Program::parse(&entered).expect("a program")));
}

/// A function that catches what another throws.
const CATCHES: &str = "
void thrower(int);
int catches(int value) {
    try {
        thrower(value);
    } catch (int caught) {
        return caught;
    }
    return 0;
}
void thrower(int value) { throw value; }
int main() { return catches(1); }
";

#[test]
fn a_function_with_a_handler_for_exceptions_is_refused() {
    let Some(compiler) = cross_compiler() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (folder.path().join("catches.cc"), folder.path().join("catches"));
    fs::write(&source, CATCHES).expect("a temporary file can be written");
    let built = Command::new(compiler.gxx())
        .args(["-O1", "-fno-inline", "-static", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.expect("the compiler starts").success());
    let file = fs::read(program).expect("it was built");
    let program = Program::parse(&file).expect("a program");
    let extent = program
        .functions
        .iter()
        .find(|extent| extent.name.contains("catches"));
    let extent = extent.expect("the compiler keeps it");
    let refused = Function::read(&program, extent, &Parameters::default()).expect_err("it is refused");
    assert_eq!(refused.reason, Reason::Handler);
}

#[test]
fn files_that_are_no_programs_are_refused() {
    assert!(matches!(Program::parse(b"text"), Err(ProgramError::Image(_))));
}
