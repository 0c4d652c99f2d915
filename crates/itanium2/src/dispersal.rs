//! Dispersal: which instructions of the two-bundle window issue together, and to which ports.
//!
//! Instructions go to ports M0-M3, I0-I1, F0-F1 and B0-B2 in order; where a port is taken, the instruction and
//! all behind it wait for the next cycle (*split issue*). The M slots of a window are given out by subtype: those that
//! need M0 or M1 (loads) and those that need M2 or M3 (stores, system instructions) each in their own order, and what
//! any M port can do takes what is left. So `M_A M_LI - M_S M_AI` goes to M1 M0 I0 - M2 M3 I1 without split, also
//! when `M_S` is a `getf` (paper 5.3.3).

use std::fmt;

/// What an instruction asks of dispersal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Any of M0 to M3: ALU operations and nops in an M slot, floating-point loads.
    MemoryAny,
    /// M0 or M1: loads, `lfetch`, `chk.a`, `invala`.
    MemoryLoad,
    /// M0 alone: `mf`, `srlz`, `sync`, `fwb`, `flushrs`, `loadrs`, purges.
    MemoryFirst,
    /// M2 or M3: stores, semaphores, `setf`, `chk.s`.
    MemoryStore,
    /// M2 alone: `getf`, `alloc`, moves of application, control and status registers.
    MemorySystem,
    /// I0 or I1, an ALU operation: when both are taken any M port.
    IntegerAlu,
    /// I0 or I1.
    IntegerAny,
    /// I0 alone: shifts, bit fields, bit tests, moves of branch, predicate and I-unit application registers.
    IntegerFirst,
    /// An F and an I port: a long instruction.
    Long,
    /// `brl`: the ports of a long instruction, but it ends the issue group as a branch does.
    LongBranch,
    /// F0 in the first bundle of the window, F1 in the second.
    Float,
    /// The B slot of MIB, MFB and MMB, holding `nop.b` or `brp`: B0.
    BranchHint,
    /// The B slot of MIB, MFB and MMB, holding a branch: B2; issue splits behind it.
    BranchSingle,
    /// A B slot of MBB or BBB: the port of its position; issue splits behind the bundle.
    BranchMultiple(u8),
}

impl Port {
    /// The ports that it may be given.
    pub fn ports(self) -> &'static str {
        match self {
            Port::MemoryAny => "M0-M3",
            Port::MemoryLoad => "M0-M1",
            Port::MemoryFirst => "M0",
            Port::MemoryStore => "M2-M3",
            Port::MemorySystem => "M2",
            Port::IntegerAlu => "I0-I1, M",
            Port::IntegerAny => "I0-I1",
            Port::IntegerFirst => "I0",
            Port::Long | Port::LongBranch => "F and I",
            Port::Float => "F0-F1",
            Port::BranchHint | Port::BranchSingle | Port::BranchMultiple(_) => "B0-B2",
        }
    }
}

/// The ports taken in one cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Bundles begun.
    bundles: u8,
    loads: u8,
    stores: u8,
    any: u8,
    integer: u8,
    /// Whether B0 is taken.
    hint: bool,
    /// Whether nothing may follow.
    closed: bool,
}

/// A port that an instruction was given; of M instructions that any port can take, `None` stands for "what is left".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// M port by number.
    M(u8),
    /// Whichever M port the loads and stores leave.
    MRest,
    /// I port.
    I(u8),
    /// F port.
    F(u8),
    /// F and I port of this number.
    FI(u8),
    /// B port.
    B(u8),
}

impl fmt::Display for Assigned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assigned::M(port) => write!(out, "M{port}"),
            Assigned::MRest => write!(out, "M"),
            Assigned::I(port) => write!(out, "I{port}"),
            Assigned::F(port) => write!(out, "F{port}"),
            Assigned::FI(port) => write!(out, "F{port}I{port}"),
            Assigned::B(port) => write!(out, "B{port}"),
        }
    }
}

const BUNDLES: u8 = 2;

impl Window {
    /// Takes the first slot (of those not issued yet) of another bundle into the window.
    #[inline]
    pub fn begin_bundle(&mut self) -> bool {
        if self.closed || self.bundles == BUNDLES {
            return false;
        }
        self.bundles += 1;
        true
    }

    /// The ports taken as a number, for [`Window::of_number`].
    pub fn number(&self) -> u32 {
        let counts = [self.bundles, self.loads, self.stores, self.any, self.integer];
        let flags = u32::from(self.hint) << 1 | u32::from(self.closed);
        counts
            .iter()
            .fold(flags, |number, count| number << 4 | u32::from(*count))
    }

    /// The window whose number this is.
    pub fn of_number(number: u32) -> Window {
        let count = |place: u32| (number >> (4 * place) & 15) as u8;
        Window {
            bundles: count(4),
            loads: count(3),
            stores: count(2),
            any: count(1),
            integer: count(0),
            hint: number >> 21 & 1 != 0,
            closed: number >> 20 & 1 != 0,
        }
    }

    /// Nothing may follow in this cycle.
    #[inline]
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Gives out a port; `None`: the instruction has to wait for the next cycle.
    #[inline]
    pub fn take(&mut self, port: Port) -> Option<Assigned> {
        if self.closed {
            return None;
        }
        let memory_left = self.loads + self.stores + self.any < 4;
        let place = self.bundles.saturating_sub(1);
        let fits = match port {
            Port::MemoryAny => memory_left,
            Port::MemoryLoad => memory_left && self.loads < 2,
            Port::MemoryFirst => memory_left && self.loads == 0,
            Port::MemoryStore => memory_left && self.stores < 2,
            Port::MemorySystem => memory_left && self.stores == 0,
            Port::IntegerAlu => self.integer < 2 || memory_left,
            Port::IntegerAny => self.integer < 2,
            Port::IntegerFirst => self.integer == 0,
            Port::Long | Port::LongBranch => self.integer <= place,
            Port::Float | Port::BranchHint | Port::BranchSingle => true,
            Port::BranchMultiple(position) => position > 0 || !self.hint,
        };
        if !fits {
            return None;
        }
        Some(match port {
            Port::MemoryAny => {
                self.any += 1;
                Assigned::MRest
            }
            Port::MemoryLoad | Port::MemoryFirst => {
                self.loads += 1;
                Assigned::M(self.loads - 1)
            }
            Port::MemoryStore | Port::MemorySystem => {
                self.stores += 1;
                Assigned::M(1 + self.stores)
            }
            Port::IntegerAlu if self.integer == 2 => {
                self.any += 1;
                Assigned::MRest
            }
            Port::IntegerAlu | Port::IntegerAny | Port::IntegerFirst => {
                self.integer += 1;
                Assigned::I(self.integer - 1)
            }
            Port::Long | Port::LongBranch => {
                self.integer = place + 1;
                self.closed |= port == Port::LongBranch;
                Assigned::FI(place)
            }
            Port::Float => Assigned::F(place),
            Port::BranchHint => {
                self.hint = true;
                Assigned::B(0)
            }
            Port::BranchSingle => {
                self.closed = true;
                Assigned::B(2)
            }
            Port::BranchMultiple(position) => {
                self.closed = position == 2;
                Assigned::B(position)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Port::*;

    /// How many instructions of two bundles issue together, and where.
    fn disperse(bundles: [[Port; 3]; 2]) -> Vec<String> {
        let mut window = Window::default();
        let mut ports = Vec::new();
        for bundle in bundles {
            if !window.begin_bundle() {
                return ports;
            }
            for port in bundle {
                match window.take(port) {
                    Some(assigned) => ports.push(assigned.to_string()),
                    None => return ports,
                }
            }
        }
        ports
    }

    #[test]
    fn loads_are_given_ports_before_alu_operations_and_getf_does_not_split() {
        let first = [MemoryAny, MemoryLoad, IntegerAny];
        for system in [MemoryStore, MemorySystem] {
            let ports = disperse([first, [system, MemoryAny, IntegerAny]]);
            // What is left for the first A is M1, for the second M3: the paper's M1 M0 I0 - M2 M3 I1.
            assert_eq!(ports, ["M", "M0", "I0", "M2", "M", "I1"]);
        }
    }

    #[test]
    fn a_third_load_and_a_second_system_instruction_split() {
        let loads = [MemoryLoad, MemoryLoad, IntegerAny];
        assert_eq!(disperse([loads, loads]).len(), 3);
        let system = [MemorySystem, MemorySystem, IntegerAny];
        assert_eq!(disperse([system, system]).len(), 1);
        let store = [MemoryStore, MemorySystem, IntegerAny];
        assert_eq!(disperse([store, store]).len(), 1);
    }

    #[test]
    fn alu_operations_in_i_slots_overflow_to_m_ports() {
        let alu = [MemoryAny, IntegerAlu, IntegerAlu];
        assert_eq!(disperse([alu, alu]).len(), 6);
        let shifts = [MemoryAny, IntegerFirst, IntegerAny];
        assert_eq!(disperse([shifts, shifts]).len(), 4);
    }

    #[test]
    fn branches_end_the_group_and_nops_in_their_place_do_not() {
        let alu = [MemoryAny, IntegerAlu, IntegerAlu];
        assert_eq!(disperse([[MemoryAny, IntegerAlu, BranchSingle], alu]).len(), 3);
        assert_eq!(disperse([[MemoryAny, IntegerAlu, BranchHint], alu]).len(), 6);
        let branches = [BranchMultiple(0), BranchMultiple(1), BranchMultiple(2)];
        assert_eq!(disperse([branches, alu]).len(), 3);
    }

    #[test]
    fn long_instructions_take_the_i_port_of_their_bundle() {
        let mut window = Window::default();
        for port in 0..2 {
            assert!(window.begin_bundle());
            assert_eq!(window.take(MemoryAny), Some(Assigned::MRest));
            assert_eq!(window.take(Long), Some(Assigned::FI(port)));
        }
        let full = [MemoryAny, IntegerAny, IntegerAny];
        assert_eq!(disperse([full, [MemoryAny, Long, Long]]).len(), 4);
    }
}
