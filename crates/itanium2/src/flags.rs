//! What the pipeline has to do for an instruction.

bitflags::bitflags! {
    /// What the pipeline has to do for an instruction beside reading and writing registers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// A nop.
        const NOP = 1 << 0;
        /// Reads memory.
        const LOAD = 1 << 1;
        /// Writes memory.
        const STORE = 1 << 2;
        /// Its data passes by the first-level cache: floating point, semaphores.
        const SECOND_LEVEL = 1 << 3;
        /// Only brings a line in.
        const PREFETCH = 1 << 4;
        /// A branch.
        const BRANCH = 1 << 5;
        /// A call.
        const CALL = 1 << 6;
        /// A return.
        const RETURN = 1 << 7;
        /// A branch to a branch register.
        const INDIRECT = 1 << 8;
        /// Changes the frame, the rename bases or the register stack.
        const FRAME = 1 << 9;
        /// Writes all predicates.
        const ALL_PREDICATES = 1 << 10;
        /// Reads all predicates.
        const READS_PREDICATES = 1 << 11;
        /// Goes through the queue of system-register accesses.
        const SYSTEM_QUEUE = 1 << 12;
        /// One of the slow registers, of which an access issues every few cycles only.
        const TIMER = 1 << 13;
        /// A move to a region or protection key register.
        const REGION = 1 << 14;
        /// Issue splits behind it.
        const SPLIT_AFTER = 1 << 15;
        /// Issue splits before it.
        const SPLIT_BEFORE = 1 << 16;
        /// `mov =ar.bsp`, which issue splits from any B-unit instruction behind it.
        const FROM_BSP = 1 << 17;
        /// An instruction of the B unit.
        const B_UNIT = 1 << 18;
        /// An instruction of the M unit that is no nop.
        const M_UNIT = 1 << 19;
        /// `fwb`.
        const FLUSH_BUFFERS = 1 << 20;
        /// `flushrs`.
        const FLUSH_STACK = 1 << 21;
        /// `loadrs`.
        const LOAD_STACK = 1 << 22;
        /// `srlz.i`.
        const SERIALIZES = 1 << 23;
        /// May change the privilege level.
        const PRIVILEGE = 1 << 24;
        /// A floating-point arithmetic operation.
        const FLOAT = 1 << 25;
        /// A multiply-add, which counts as two operations.
        const MULTIPLY_ADD = 1 << 26;
        /// A predicted relative branch whose hint is static.
        const STATIC_HINT = 1 << 27;
        /// The hint says taken.
        const HINT_TAKEN = 1 << 28;
        /// Writes a branch register from a general one.
        const TO_BRANCH = 1 << 29;
        /// A branch that also moves the rotating registers or counts, and is taken by prediction of the loop count.
        const LOOP = 1 << 30;
        /// Spills or fills with a NaT bit.
        const NAT = 1 << 31;
        /// Changes PSR or a breakpoint register.
        const STATUS = 1 << 32;
        /// Brings a system register's value to a general one.
        const READS_SYSTEM = 1 << 33;
        /// Is an advanced load, or checks one.
        const ADVANCED = 1 << 34;
        /// A check: of an advanced load together with `ADVANCED`, or of speculation.
        const CHECKS = 1 << 35;
        /// A check or an advanced load of a floating-point register.
        const OF_FLOAT = 1 << 36;
        /// A check of the floating-point flags.
        const OF_FLAGS = 1 << 37;
        /// A branch whose hint says that many bundles behind its target are wanted.
        const MANY = 1 << 38;
    }
}
