//! Which instructions and references count: opcode matching, and ranges of addresses of code and of data.
//!
//! ```text
//!   PMC8, PMC9:  0 no range of code (PMC8)   1 all but the range (PMC8)   3..29 bits that do not matter
//!                33..59 bits to match   60 B   61 F   62 I   63 M: the slots looked at
//!   PMC13:       3..4, 11..12, 19..20, 27..28 of DBR pairs 0 to 3: 0 code and data, 1 code, 2 data, 3 anything
//!                45..48 in use
//!   PMC14:       1, 4, 7, 10 IBR pairs 0 to 3 restrict if clear   13 fine mode
//!   PMC15:       0..3 clear: opcodes restrict channel 0 (PMC8), 1 (PMC9), 2 (PMC8), 3 (PMC9)
//! ```
//!
//! Four channels tag instructions: each by a pair of instruction breakpoint registers and one of the two opcode
//! matchers, which compare bits 40 to 27 and 12 to 0 of a slot. `IA64_TAGGED_INST_RETIRED` counts the tags of each; the
//! first channel's decide what of other events of instructions counts, fetches by the range alone. In fine mode two
//! ranges have a pair for the first and one for the last bundle, within one page of 4 kB and a granularity of two
//! bundles, and either tags. Events of memory count if a pair in use by PMC13 lets them: by its channel's tag, by the
//! address of the data, or by both. An event's [`Qualifier`] says what applies to it.
//!
//! Fields and rules are those of libpfm's definitions for Itanium 2; that value 3 in PMC13 means anything, and that the
//! ignored pairs of fine mode tag everything, is assumed. Registers are compared whatever PSR.db says, with the
//! privilege levels of the instruction breakpoint registers and without those of the data breakpoint registers.

use sidestep_ia64::encoding::Unit;
use sidestep_ia64::execution::PerformanceRegisters;

use super::event::{Event, Qualifier};

/// The channels.
const CHANNELS: usize = 4;
/// Position of a channel's field in PMC13.
const DATA_SHIFTS: [u32; CHANNELS] = [3, 11, 19, 27];
/// Position of the bits in PMC13 that a pair is in use.
const DATA_USED_SHIFT: u32 = 45;
/// Position of a channel's bit in PMC14.
const CODE_SHIFTS: [u32; CHANNELS] = [1, 4, 7, 10];
/// PMC14.fine.
const FINE: u64 = 1 << 13;
/// The bits that fine mode does not compare between its first and last bundle: the page has to be the same, a pair of
/// bundles is one.
const FINE_GRANULE: u64 = 0x1f;

/// The tags of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags {
    /// A bit for each channel.
    channels: u8,
    /// Whether its address is in the range of the first channel.
    in_range: bool,
    /// Whether its references to memory count.
    memory: bool,
}

impl Default for Tags {
    fn default() -> Self {
        Tags::ALL
    }
}

impl Tags {
    /// Those of every instruction where nothing restricts.
    pub const ALL: Tags = Tags {
        channels: 0xf,
        in_range: true,
        memory: true,
    };

    /// Whether an event at the instruction counts.
    #[inline]
    pub fn count(self, event: Event) -> bool {
        match event {
            Event::TaggedSecond => self.channels & 2 != 0,
            Event::TaggedThird => self.channels & 4 != 0,
            Event::TaggedFourth => self.channels & 8 != 0,
            event => match event.qualifier() {
                Qualifier::Nothing => true,
                Qualifier::Address => self.in_range,
                Qualifier::Instruction => self.channels & 1 != 0,
                Qualifier::Memory => self.memory,
            },
        }
    }
}

/// A pair of breakpoint registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pair {
    address: u64,
    control: u64,
}

impl Pair {
    fn of(registers: &[u64; 8], index: usize) -> Pair {
        Pair {
            address: registers[index * 2],
            control: registers[index * 2 + 1],
        }
    }

    fn matches(self, address: u64) -> bool {
        const ALWAYS: u64 = 0xff << 56;
        (address ^ self.address) & (self.control | ALWAYS) == 0
    }

    fn holds_at(self, level: u8) -> bool {
        self.control >> 56 >> level & 1 != 0
    }
}

/// An opcode matcher: PMC8 or PMC9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Matcher(u64);

impl Matcher {
    const BITS: u64 = (1 << 27) - 1;

    fn matches(self, slot: u64, unit: Unit) -> bool {
        let unit = match unit {
            Unit::B => 60,
            Unit::F => 61,
            // A long instruction is executed by an I unit.
            Unit::I | Unit::L | Unit::X => 62,
            Unit::M => 63,
        };
        let bits = (slot >> 27 & 0x3fff) << 13 | slot & 0x1fff;
        let (mask, wanted) = (self.0 >> 3 & Self::BITS, self.0 >> 33 & Self::BITS);
        self.0 >> unit & 1 != 0 && (bits ^ wanted) & !mask & Self::BITS == 0
    }

    fn matches_all(self) -> bool {
        self.0 >> 60 == 0xf && self.0 >> 3 & Self::BITS == Self::BITS
    }
}

/// What restricts counting, as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tagging {
    /// Which opcode matcher restricts a channel.
    matchers: [Option<Matcher>; CHANNELS],
    /// Which range of code restricts a channel.
    code: [Option<Range>; CHANNELS],
    is_inverted: bool,
    /// The channels by which references to memory count, with what is asked of them.
    data: [Option<DataRule>; CHANNELS],
    is_data_restricted: bool,
}

/// A range of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// What a pair matches.
    Masked(Pair),
    /// From the bundle of a pair to that of another.
    Fine(Pair, Pair),
}

impl Range {
    fn has(self, ip: u64, level: u8) -> bool {
        match self {
            Range::Masked(pair) => pair.holds_at(level) && pair.matches(ip),
            Range::Fine(first, last) => {
                let granule = ip & !FINE_GRANULE;
                let is_in_page =
                    |pair: Pair| (ip ^ pair.address) & pair.control & !0xfff & !(0xff << 56) == 0;
                first.holds_at(level)
                    && is_in_page(first)
                    && is_in_page(last)
                    && (first.address & !FINE_GRANULE..=last.address & !FINE_GRANULE).contains(&granule)
            }
        }
    }
}

/// What PMC13 asks of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataRule {
    by_code: bool,
    by_data: Option<Pair>,
}

impl Tagging {
    /// Reads the configuration.
    pub fn of(registers: &PerformanceRegisters) -> Tagging {
        let pmc = |index: usize| registers.configuration[index];
        let code_pair = |index: usize| Pair::of(&registers.instruction_breakpoint, index);
        let has_range = |channel: usize| pmc(8) & 1 == 0 && pmc(14) >> CODE_SHIFTS[channel] & 1 == 0;
        let code = std::array::from_fn(
            |channel| match (has_range(channel), pmc(14) & FINE != 0, channel) {
                (false, ..) | (true, true, 2..) => None,
                (true, true, _) => Some(Range::Fine(code_pair(channel), code_pair(channel + 2))),
                (true, false, _) => Some(Range::Masked(code_pair(channel))),
            },
        );
        let matchers = std::array::from_fn(|channel| {
            let matcher = Matcher(pmc(8 + channel % 2));
            (pmc(15) >> channel & 1 == 0 && !matcher.matches_all()).then_some(matcher)
        });
        let data: [_; CHANNELS] = std::array::from_fn(|channel| {
            let rule = pmc(13) >> DATA_SHIFTS[channel] & 3;
            let pair = Pair::of(&registers.data_breakpoint, channel);
            (pmc(13) >> DATA_USED_SHIFT >> channel & 1 != 0).then(|| DataRule {
                by_code: rule < 2,
                by_data: matches!(rule, 0 | 2).then_some(pair),
            })
        });
        Tagging {
            matchers,
            code,
            is_inverted: pmc(8) & 2 != 0,
            is_data_restricted: data.iter().any(Option::is_some),
            data,
        }
    }

    /// Whether anything is kept from counting.
    pub fn restricts(&self) -> bool {
        let anything = DataRule {
            by_code: false,
            by_data: None,
        };
        self.matchers.iter().any(Option::is_some)
            || self.code.iter().any(Option::is_some)
            || self.is_data_restricted && !self.data.contains(&Some(anything))
    }

    /// The tags of an instruction at a privilege level, with what it refers to.
    pub fn tags(&self, ip: u64, (bits, unit): (u64, Unit), level: u8, reference: Option<u64>) -> Tags {
        let ranges: [bool; CHANNELS] = std::array::from_fn(|channel| self.in_range(channel, ip, level));
        let channels: [bool; CHANNELS] = std::array::from_fn(|channel| {
            let matches = |matcher: Matcher| matcher.matches(bits, unit);
            ranges[channel] && self.matchers[channel].is_none_or(matches)
        });
        let counts = |(channel, rule): (usize, &Option<DataRule>)| {
            rule.is_some_and(|rule| {
                let by_data = rule
                    .by_data
                    .is_none_or(|pair| reference.is_some_and(|address| pair.matches(address)));
                by_data && (!rule.by_code || channels[channel])
            })
        };
        Tags {
            channels: channels
                .iter()
                .enumerate()
                .map(|(channel, is_tagged)| u8::from(*is_tagged) << channel)
                .sum(),
            in_range: ranges[0],
            memory: !self.is_data_restricted || self.data.iter().enumerate().any(counts),
        }
    }

    /// Whether an address is in a channel's range; in fine mode in either range, for both.
    fn in_range(&self, channel: usize, ip: u64, level: u8) -> bool {
        let has = |channel: usize| {
            self.code[channel].map(|range| range.has(ip, level) != (self.is_inverted && channel == 0))
        };
        match self.code[channel] {
            None if channel == 0 && matches!(self.code[1], Some(Range::Fine(..))) => has(1) == Some(true),
            None => true,
            Some(Range::Masked(_)) => has(channel) == Some(true),
            Some(Range::Fine(..)) => has(0) == Some(true) || has(1) == Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::encoding::Bundle;

    use sidestep_ia64::registers::system::SystemRegisters;

    use super::*;

    /// `add r8 = r9, r10` in slot 1 (an I unit) of a bundle of nops.
    const ADD: u64 = 0x8 << 37 | 10 << 20 | 9 << 13 | 8 << 6;
    const IP: u64 = 0xe000_0000_0001_2340;

    fn at_power_up() -> PerformanceRegisters {
        PerformanceRegisters::of(&SystemRegisters::new())
    }

    fn opcode() -> (u64, Unit) {
        let nop_m = 1 << 27;
        let bits = u128::from(nop_m as u64) << 5 | u128::from(ADD) << 46 | u128::from(1_u64 << 27) << 87;
        let bundle = Bundle::from_bytes(bits.to_le_bytes());
        let decoded = bundle.decode().nth(1).expect("a second slot");
        let instruction = decoded.instruction.expect("an addition");
        (instruction.slot, instruction.unit)
    }

    fn tags(system: &PerformanceRegisters, reference: Option<u64>) -> Tags {
        Tagging::of(system).tags(IP, opcode(), 0, reference)
    }

    fn channels(system: &PerformanceRegisters) -> u8 {
        tags(system, None).channels
    }

    fn set(registers: &mut [u64; 8], pair: usize, address: u64, mask: u64) {
        registers[pair * 2] = address;
        registers[pair * 2 + 1] = mask & !(0xff << 56) | 0xf << 56;
    }

    #[test]
    fn at_power_up_nothing_restricts() {
        let system = at_power_up();
        assert!(!Tagging::of(&system).restricts());
        assert_eq!(tags(&system, None), Tags::ALL);
    }

    #[test]
    fn an_opcode_matcher_tags_its_two_channels_by_bits_and_unit() {
        let mut system = at_power_up();
        let bits = |slot: u64| (slot >> 27 & 0x3fff) << 13 | slot & 0x1fff;
        let matcher = |units: u64, wanted: u64, mask: u64| units << 60 | wanted << 33 | mask << 3 | 5;
        // r8 is in bits 6 to 12, the major opcode in 37 to 40; the rest does not matter.
        let compared = bits(0xf << 37 | 0x7f << 6);
        let dont_care = !compared & Matcher::BITS;
        for (units, wanted, expected) in [
            (0b0100, bits(ADD), 0xf),
            (0b1011, bits(ADD), 0xa),
            (0b0100, bits(0x8 << 37 | 7 << 6), 0xa),
            (0b0100, bits(0x9 << 37 | 8 << 6), 0xa),
        ] {
            system.configuration[8] = matcher(units, wanted, dont_care);
            assert_eq!(channels(&system), expected, "{units:b} {wanted:x}");
        }
        assert!(Tagging::of(&system).restricts());
        system.configuration[15] |= 0b0101;
        assert!(
            !Tagging::of(&system).restricts(),
            "PMC15 says that PMC8 does not matter"
        );
    }

    #[test]
    fn a_pair_of_breakpoint_registers_is_a_range_that_may_be_inverted() {
        let mut system = at_power_up();
        system.configuration[8] &= !3;
        system.configuration[14] &= !(1 << 1);
        set(&mut system.instruction_breakpoint, 0, IP & !0xff, !0xff);
        assert_eq!(channels(&system), 0xf);
        set(&mut system.instruction_breakpoint, 0, IP + 0x100, !0xff);
        assert_eq!(channels(&system), 0xe);
        assert!(
            !tags(&system, None).count(Event::L1iReads) && tags(&system, None).count(Event::LoadsRetired)
        );
        system.configuration[8] |= 2;
        assert_eq!(channels(&system), 0xf);
        system.instruction_breakpoint[1] &= !(1 << 56);
        set(&mut system.instruction_breakpoint, 0, IP, !0xff);
        system.instruction_breakpoint[1] &= !(1 << 56);
        system.configuration[8] &= !2;
        assert_eq!(channels(&system), 0xe, "not at this privilege level");
        system.configuration[8] |= 1;
        assert!(!Tagging::of(&system).restricts(), "ranges do not matter");
    }

    #[test]
    fn in_fine_mode_two_pairs_bound_a_range_of_pairs_of_bundles() {
        let mut system = at_power_up();
        system.configuration[8] &= !3;
        system.configuration[14] = system.configuration[14] & !(1 << 4) | FINE;
        let page = !0xfff;
        for (first, last, is_in) in [
            (IP, IP, true),
            (IP + 0x10, IP + 0x10, true),
            (IP - 0x40, IP - 0x10, false),
            (IP + 0x20, IP + 0x40, false),
            (IP - 0x1000, IP - 0x1000, false),
        ] {
            set(&mut system.instruction_breakpoint, 1, first, page);
            set(&mut system.instruction_breakpoint, 3, last, page);
            assert_eq!(
                channels(&system) & 3,
                if is_in { 3 } else { 0 },
                "{first:x} to {last:x}"
            );
        }
    }

    #[test]
    fn references_count_by_the_data_the_code_or_both() {
        let mut system = at_power_up();
        system.configuration[8] &= !3;
        system.configuration[14] &= !(1 << 1);
        set(&mut system.data_breakpoint, 0, 0x6000, !0xfff);
        let mut counts = |rule: u64, in_code: bool, address: u64| {
            let code = if in_code { IP } else { !IP };
            set(&mut system.instruction_breakpoint, 0, code, !0xff);
            system.configuration[13] = 1 << DATA_USED_SHIFT | rule << DATA_SHIFTS[0];
            tags(&system, Some(address)).count(Event::LoadsRetired)
        };
        for (rule, expected) in [
            (0, [true, false, false, false]),
            (1, [true, true, false, false]),
            (2, [true, false, true, false]),
            (3, [true; 4]),
        ] {
            let found = [
                counts(rule, true, 0x6ff8),
                counts(rule, true, 0x7000),
                counts(rule, false, 0x6ff8),
                counts(rule, false, 0x7000),
            ];
            assert_eq!(found, expected, "{rule}");
        }
    }
}
