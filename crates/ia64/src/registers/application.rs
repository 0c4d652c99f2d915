//! The application registers: their numbers, names and access rules (manual volume 1, table 3-3).

/// Kernel registers KR0 to KR7 begin here.
pub const KERNEL_0: u8 = 0;
/// The last kernel register.
pub const KERNEL_7: u8 = 7;
/// Register stack configuration.
pub const RSC: u8 = 16;
/// Backing store pointer (read only).
pub const BSP: u8 = 17;
/// Backing store pointer for memory stores.
pub const BSPSTORE: u8 = 18;
/// Register stack NaT collection.
pub const RNAT: u8 = 19;
/// IA-32 floating-point control.
pub const FCR: u8 = 21;
/// IA-32 EFLAG.
pub const EFLAG: u8 = 24;
/// IA-32 code segment descriptor; also the high half of 16-byte compare-exchange and loads.
pub const CSD: u8 = 25;
/// IA-32 stack segment descriptor.
pub const SSD: u8 = 26;
/// IA-32 CR0 and CR4.
pub const CFLG: u8 = 27;
/// IA-32 floating-point status.
pub const FSR: u8 = 28;
/// IA-32 floating-point instruction address.
pub const FIR: u8 = 29;
/// IA-32 floating-point data address.
pub const FDR: u8 = 30;
/// Compare and exchange comparison value.
pub const CCV: u8 = 32;
/// User NaT collection.
pub const UNAT: u8 = 36;
/// Floating-point status.
pub const FPSR: u8 = 40;
/// Interval time counter.
pub const ITC: u8 = 44;
/// Resource utilisation counter.
pub const RUC: u8 = 45;
/// Previous function state.
pub const PFS: u8 = 64;
/// Loop count.
pub const LC: u8 = 65;
/// Epilogue count.
pub const EC: u8 = 66;

/// How an application register number may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A register.
    Present,
    /// Reserved: reading or writing it is an illegal operation.
    Reserved,
    /// Ignored: reads as zero, writes have no effect.
    Ignored,
}

/// Whether register `number` (0 to 127) exists.
pub fn presence(number: u8) -> Presence {
    match number {
        48..=63 | 112..=127 => Presence::Ignored,
        KERNEL_0..=KERNEL_7 | RSC..=RNAT | FCR | EFLAG..=FDR | CCV | UNAT | FPSR | ITC | RUC | PFS..=EC => {
            Presence::Present
        }
        _ => Presence::Reserved,
    }
}

/// Whether only an M-unit move may name the register; the others belong to the I unit.
pub fn belongs_to_memory_unit(number: u8) -> bool {
    number < 64
}
