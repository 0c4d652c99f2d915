//! What the user says of a run's start: registers and memory words, by number or by the program's symbols.

use sidestep_ia64::registers::application;
use sidestep_runner::explain::execution::{RETURN, Register, STACK};

/// `NAME=VALUE`, not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok(Setting {
                name: name.into(),
                value: value.into(),
            }),
            _ => Err(format!("`{text}` is not NAME=VALUE")),
        }
    }
}

/// The register with a name: `r8`, `in0`, `sp`, `p6`, `b0`, `rp`, `ar.k6`.
pub fn register(name: &str) -> Result<Register, String> {
    let number = |prefix: &str, range: std::ops::RangeInclusive<u8>| {
        let number: u8 = name.strip_prefix(prefix)?.parse().ok()?;
        range.contains(&number).then_some(number)
    };
    let found = match name {
        "gp" => Some(Register::General(1)),
        "sp" => Some(Register::General(12)),
        "tp" => Some(Register::General(13)),
        "rp" => Some(Register::Branch(0)),
        "ar.pfs" => Some(Register::Application(application::PFS)),
        "ar.lc" => Some(Register::Application(application::LC)),
        "ar.ec" => Some(Register::Application(application::EC)),
        "ar.ccv" => Some(Register::Application(application::CCV)),
        "ar.unat" => Some(Register::Application(application::UNAT)),
        "ar.rnat" => Some(Register::Application(application::RNAT)),
        "ar.fpsr" => Some(Register::Application(application::FPSR)),
        _ => number("ar.k", 0..=7)
            .map(|register| Register::Application(application::KERNEL_0 + register))
            .or_else(|| number("in", 0..=7).map(|register| Register::General(32 + register)))
            .or_else(|| number("r", 1..=39).map(Register::General))
            .or_else(|| number("p", 1..=63).map(Register::Predicate))
            .or_else(|| number("b", 0..=7).map(Register::Branch)),
    };
    found.ok_or_else(|| {
        format!(
            "no register `{name}` that can be set: there are r1 to r39 (in0 to in7 are r32 to r39), gp, sp, tp, p1 to p63, \
             b0 to b7, rp, ar.k0 to ar.k7, ar.pfs, ar.lc, ar.ec, ar.ccv, ar.unat, ar.rnat, ar.fpsr"
        )
    })
}

/// A value: a number, a symbol, `return` or `stack`, and a number added to or subtracted from it.
pub fn value(text: &str, symbol: impl Fn(&str) -> Option<u64>) -> Result<u64, String> {
    let bad = || format!("`{text}` is no number, no symbol of the file, nor `return` or `stack`");
    if let Some(number) = number(text) {
        return Ok(number);
    }
    let at = text.rfind(['+', '-']).filter(|at| *at > 0);
    let (name, offset) = match at {
        Some(at) => (&text[..at], number(&text[at..]).ok_or_else(bad)?),
        None => (text, 0),
    };
    let base = match name {
        "return" => RETURN,
        "stack" => STACK,
        _ => number(name).or_else(|| symbol(name)).ok_or_else(bad)?,
    };
    Ok(base.wrapping_add(offset))
}

/// A decimal or hexadecimal number with an optional sign.
fn number(text: &str) -> Option<u64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_symbols_and_sums() {
        let symbol = |name: &str| (name == "table").then_some(0x1000);
        for (text, expected) in [
            ("17", 17),
            ("0x10", 16),
            ("-1", u64::MAX),
            ("table", 0x1000),
            ("table+0x20", 0x1020),
            ("table-8", 0xff8),
            ("return", RETURN),
        ] {
            assert_eq!(value(text, symbol), Ok(expected), "{text}");
        }
        for text in ["chair", "table+", "+", "0xg", "table+chair", ""] {
            assert!(value(text, symbol).is_err(), "{text}");
        }
    }

    #[test]
    fn registers_have_their_names() {
        assert_eq!(register("in7"), Ok(Register::General(39)));
        assert_eq!(
            register("ar.k6"),
            Ok(Register::Application(application::KERNEL_0 + 6))
        );
        assert_eq!(register("rp"), Ok(Register::Branch(0)));
        for name in ["r0", "r40", "b8", "p0", "p64", "f2", "ar.k8", ""] {
            assert!(register(name).is_err(), "{name}");
        }
    }
}
