//! The code behind the entry points of boot services: a call of the host that may call the guest back.
//!
//! ```text
//! entry:   alloc r40=ar.pfs,8 in,3 local,8 out   the service's number in r15
//!          br common
//! common:  mov r42=gp
//!          break                    the host serves, and lets the processor go on at call, again or leave
//! call:    br.call b0=b6            what the host wants done: a function, its arguments in r43 and on
//! again:   mov gp=r42               the host is told that it was done, or that time has passed
//!          break
//!          br again
//! leave:   mov b0=r41, ar.pfs=r40, gp=r42
//!          br.ret b0                with the status in r8
//! ```
//!
//! So an image, an event's notification or a wait is for the guest a function that has not returned yet, on its own
//! stack; the host keeps what is to be done then.

use sidestep_ia64::encoding::Bundle;

use super::super::gate::instruction::*;
use super::super::gate::{MIB, MII, MMI};
use super::services::{FIRST_FUNCTION, Service};
use crate::machine::hypercall::IMMEDIATE;

const BUNDLE: u64 = 16;
/// Bytes of the code that all entries share; the entries follow.
const COMMON_BYTES: u64 = 6 * BUNDLE;
const ENTRY_BYTES: u64 = 2 * BUNDLE;

/// Where the code goes on, from its start.
pub const CALL: u64 = BUNDLE;
/// As [`CALL`]: where the service returns.
pub const LEAVE: u64 = 4 * BUNDLE;
/// The function of the hypercall that says so.
pub const AGAIN_FUNCTION: u64 = FIRST_FUNCTION - 1;

const PFS: u64 = 40;
const RETURN: u64 = 41;
const GLOBAL: u64 = 42;
/// The first register of arguments of a function that the host wants called.
pub const ARGUMENTS: u8 = 43;
const LOCALS: u64 = 11;
const FRAME: u64 = LOCALS + 8;

/// Where the entry of a service is, from the start of the code.
pub fn entry(service: Service) -> u64 {
    COMMON_BYTES + u64::from(service.number()) * ENTRY_BYTES
}

/// The code.
pub fn code() -> Vec<u8> {
    let common = [
        Bundle::new(MIB, [break_m(IMMEDIATE), NOP_I, branch(2)]),
        Bundle::new(MIB, [NOP_M, NOP_I, CALL_B6]),
        Bundle::new(MMI, [copy(1, GLOBAL), set_r15(AGAIN_FUNCTION), NOP_I]),
        Bundle::new(MIB, [break_m(IMMEDIATE), NOP_I, branch(-1)]),
        Bundle::new(MII, [copy(1, GLOBAL), to_b0(RETURN), to_pfs(PFS)]),
        Bundle::new(MIB, [NOP_M, NOP_I, RETURN_B0]),
    ];
    let entries = Service::all().flat_map(|service| {
        let back = (entry(service) / BUNDLE + 1) as i64;
        [
            Bundle::new(
                MMI,
                [
                    alloc(PFS, FRAME, LOCALS),
                    set_r15(service.function()),
                    from_b0(RETURN),
                ],
            ),
            Bundle::new(MIB, [copy(GLOBAL, 1), NOP_I, branch(-back)]),
        ]
    });
    let bundles = common.into_iter().chain(entries);
    bundles.flat_map(|bundle| bundle.to_bytes()).collect()
}
