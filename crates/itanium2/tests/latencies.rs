//! Tables 4 and 5 of the paper, pair by pair: the cycles between two instructions and the counters that show them.

mod support;

use sidestep_ia64::encoding::Operand;
use sidestep_itanium2::Stall;
use support::{Line, Stream, line, with};

const RSC: i64 = 16;
const BSP: i64 = 17;
const BSPSTORE: i64 = 18;
const RNAT: i64 = 19;
const UNAT: i64 = 36;

const TO_RSC: Line = line("mov.m", "M29", &[RSC, 2]);
const TO_BSPSTORE: Line = line("mov.m", "M29", &[BSPSTORE, 2]);
const TO_RNAT: Line = line("mov.m", "M29", &[RNAT, 2]);
const TO_UNAT: Line = line("mov.m", "M29", &[UNAT, 2]);
const FROM_RSC: Line = line("mov.m", "M31", &[3, RSC]);
const FROM_BSP: Line = line("mov.m", "M31", &[3, BSP]);
const FROM_BSPSTORE: Line = line("mov.m", "M31", &[3, BSPSTORE]);
const FROM_RNAT: Line = line("mov.m", "M31", &[3, RNAT]);
const FROM_UNAT: Line = line("mov.m", "M31", &[3, UNAT]);
const FLUSHRS: Line = line("flushrs", "M25", &[]);
const LOADRS: Line = line("loadrs", "M25", &[]);
const NOP_F: Line = line("fmerge.s", "F9", &[6, 7, 8]);
const SRLZ_D: Line = line("srlz.d", "M24", &[]);
const SRLZ_I: Line = line("srlz.i", "M24", &[]);
const MF: Line = line("mf", "M24", &[]);
const INVALA: Line = line("invala", "M24", &[]);
const FWB: Line = line("fwb", "M24", &[]);
const SYNC: Line = line("sync.i", "M24", &[]);
const SUM: Line = line("sum", "M44", &[0]);
const RUM: Line = line("rum", "M44", &[0]);
const SSM: Line = line("ssm", "M44", &[0]);
const RSM: Line = line("rsm", "M44", &[0]);
const ADD: Line = line("add", "A1", &[4, 5, 6]);
const USE: Line = line("add", "A1", &[4, 3, 6]);
const BSW: Line = line("bsw.0", "B8", &[]);
const EPC: Line = line("epc", "B8", &[]);
const THASH: Line = line("thash", "M46", &[3, 2]);
const TTAG: Line = line("ttag", "M46", &[3, 2]);
const TPA: Line = line("tpa", "M46", &[3, 2]);
const TAK: Line = line("tak", "M46", &[3, 2]);
const PROBE: Line = line("probe.r", "M39", &[3, 2, 3]);
const FROM_PSR: Line = with("mov", "M36", &[3, 0], Operand::Psr);
const FROM_UM: Line = with("mov", "M36", &[3, 0], Operand::PsrUserMask);
const TO_UM: Line = with("mov", "M35", &[0, 2], Operand::PsrUserMask);
const TO_PSR: Line = with("mov", "M35", &[0, 2], Operand::PsrLower);
const TO_RR: Line = with("mov", "M42", &[2, 3], Operand::Rr);
const TO_PKR: Line = with("mov", "M42", &[2, 3], Operand::Pkr);

fn check(rows: &[(Line, Line, u64, Stall)]) {
    for (from, to, cycles, stall) in rows {
        let mut stream = Stream::new();
        stream.rest();
        let (distance, counters) = stream.distance(&[*from, *to], *stall);
        let pair = format!("{} {:?} to {} {:?}", from.name, from.values, to.name, to.values);
        assert_eq!(distance, *cycles, "{pair}");
        assert_eq!(counters.booked()[*stall as usize], cycles - 1, "{pair}");
    }
}

/// Latencies to any instruction.
fn check_any(rows: &[(Line, u64, Stall)]) {
    for (from, cycles, stall) in rows {
        let mut stream = Stream::new();
        stream.rest();
        let (distance, counters) = stream.distance_to_any(*from, ADD);
        assert_eq!(distance, *cycles, "{}", from.name);
        assert_eq!(counters.booked()[*stall as usize], cycles - 1, "{}", from.name);
    }
}

#[test]
fn table_4() {
    use Stall::*;
    check(&[
        (TO_RSC, FROM_RSC, 13, RseDependency),
        (TO_RSC, FROM_BSP, 13, RseDependency),
        (TO_RSC, FROM_BSPSTORE, 13, RseDependency),
        (TO_RSC, FROM_RNAT, 13, RseDependency),
        (TO_RSC, TO_BSPSTORE, 13, RseDependency),
        (TO_RSC, TO_RNAT, 13, RseDependency),
        (TO_RSC, TO_RSC, 13, RseDependency),
        (TO_BSPSTORE, FROM_RSC, 6, RseDependency),
        (TO_BSPSTORE, FROM_BSP, 6, RseDependency),
        (TO_BSPSTORE, TO_RNAT, 6, RseDependency),
        (FROM_BSPSTORE, TO_RNAT, 8, SystemRegister),
        (FROM_BSP, TO_RNAT, 8, SystemRegister),
        (FROM_RNAT, TO_UNAT, 6, SystemRegister),
        (FROM_UNAT, TO_RNAT, 6, SystemRegister),
        (FROM_UNAT, TO_UNAT, 6, SystemRegister),
        (TO_UNAT, FROM_UNAT, 6, SystemRegister),
        (TO_RNAT, FROM_RNAT, 6, SystemRegister),
        (FROM_UNAT, NOP_F, 6, SystemRegister),
        (TO_BSPSTORE, FLUSHRS, 12, RseOverflow),
        (TO_RSC, LOADRS, 12, RseLoad),
        (TO_BSPSTORE, LOADRS, 12, RseLoad),
        (FROM_BSPSTORE, LOADRS, 2, RseLoad),
        (LOADRS, LOADRS, 8, RseLoad),
    ]);
}

#[test]
fn table_5() {
    use Stall::*;
    check_any(&[
        (EPC, 1, FrontEnd),
        (BSW, 6, BankSwitch),
        (SRLZ_D, 1, FrontEnd),
        (SUM, 5, SystemRegister),
        (RUM, 5, SystemRegister),
        (TO_UM, 5, SystemRegister),
    ]);
    check(&[
        (SUM, SRLZ_D, 10, SystemRegister),
        (TO_UM, SRLZ_I, 10, SystemRegister),
        (SSM, SRLZ_D, 5, SystemRegister),
        (RSM, SRLZ_I, 5, SystemRegister),
        (TO_PSR, SRLZ_D, 5, SystemRegister),
        (FROM_UM, SRLZ_D, 2, SystemRegister),
        (FROM_PSR, SRLZ_D, 2, SystemRegister),
        (TO_RR, SRLZ_D, 14, SystemRegister),
        (TO_PKR, SRLZ_D, 14, SystemRegister),
        (TO_RR, SYNC, 14, SystemRegister),
        (TO_RR, FWB, 14, SystemRegister),
        (TO_RR, MF, 14, SystemRegister),
        (TO_PKR, INVALA, 14, SystemRegister),
        (PROBE, USE, 5, General),
        (TPA, USE, 5, General),
        (TAK, USE, 5, General),
        (THASH, USE, 5, General),
        (TTAG, USE, 5, General),
    ]);
}

#[test]
fn a_serialisation_flushes_the_pipeline_in_two_parts() {
    let mut stream = Stream::new();
    stream.rest();
    let (distance, counters) = stream.distance_to_any(SRLZ_I, ADD);
    assert_eq!(distance, 12);
    assert_eq!(counters.booked()[Stall::FlushException as usize], 8);
    assert_eq!(counters.booked()[Stall::FrontEnd as usize], 3);
}

#[test]
fn a_return_from_interruption_flushes_in_three_parts() {
    let mut stream = Stream::new();
    stream.rest();
    let target = stream.ip + 16;
    stream.pipeline.finish();
    stream.pipeline.enable_timeline();
    stream.show(line("rfi", "B8", &[]), None, Some(target));
    stream.show(ADD, None, None);
    let groups = stream.pipeline.take_timeline();
    assert_eq!(groups[1].cycle - groups[0].cycle, 13);
    let lengths: Vec<_> = groups[1]
        .bubbles
        .iter()
        .map(|(stall, length, _)| (*stall, *length))
        .collect();
    let expected = [
        (Stall::FlushBranch, 1),
        (Stall::FlushException, 8),
        (Stall::FrontEnd, 3),
    ];
    assert_eq!(lengths, expected);
}

#[test]
fn a_latency_that_has_passed_costs_nothing() {
    let mut stream = Stream::new();
    stream.rest();
    let mut lines = vec![TO_RSC];
    lines.extend([ADD; 12]);
    lines.push(FROM_RSC);
    assert_eq!(stream.distance(&lines, Stall::RseDependency).0, 13);
}
