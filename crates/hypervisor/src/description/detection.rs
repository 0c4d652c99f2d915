//! `[detection]`: how it is found out which virtual processors share memory.

use serde::Deserialize;
use sidestep_gang::{Ratio, Selection};
use sidestep_machine::description::Size;

use super::{BuildError, in_range};
use crate::virtual_machine::DetectionSettings;

/// `[detection]`. What is not given is as [`DetectionSettings::default`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DetectionTable {
    /// From one round, in which pages are taken away, to the next, in microseconds.
    pub period_us: Option<u64>,
    /// The most pages that a round takes away from a virtual processor.
    pub sample: Option<usize>,
    /// How much memory counts as one piece.
    pub granularity: Option<Size>,
    /// Two touches of a piece further apart than this, in milliseconds, are no communication.
    pub window_ms: Option<u64>,
    /// When, in milliseconds, what was seen until then is forgotten.
    pub start_up_ms: Option<u64>,
    /// From one evaluation to the next, in milliseconds.
    pub evaluation_ms: Option<u64>,
    /// The part of each count that an evaluation leaves, in thousandths.
    pub keep_permille: Option<u32>,
    /// The most that detection may cost, in thousandths of what virtual processors run.
    pub budget_permille: Option<u32>,
    /// The factor by which the tree is cut, as the paper does; without it, where modularity is greatest.
    pub factor: Option<Factor>,
}

/// A decimal number, exactly as it was written, as far as TOML lets one see that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Number")]
pub struct Factor(Ratio);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a decimal number above 0, such as 1.5")]
enum Number {
    Whole(u64),
    Decimal(f64),
}

impl TryFrom<Number> for Factor {
    type Error = String;

    fn try_from(number: Number) -> Result<Factor, String> {
        // The shortest text that is this number is the one that was written.
        let text = match number {
            Number::Whole(whole) => whole.to_string(),
            Number::Decimal(decimal) => decimal.to_string(),
        };
        text.parse().map(Factor).map_err(|_| {
            format!("`{text}` is no decimal number above 0 with at most six digits each side, such as 1.5")
        })
    }
}

impl DetectionTable {
    /// The settings.
    pub(super) fn settings(&self) -> Result<DetectionSettings, BuildError> {
        let default = DetectionSettings::default();
        // A year, so that nanoseconds fit.
        const MS_MAX: u64 = 31_536_000_000;
        let ms = |key, value: Option<u64>, least: u64, default_ns: u64| {
            let Some(value) = value else {
                return Ok::<_, BuildError>(default_ns);
            };
            let range = match least {
                0 => "0 to 31536000000",
                _ => "1 to 31536000000",
            };
            in_range(key, value, least, MS_MAX, range)?;
            Ok(value * 1_000_000)
        };
        let permille = |key, value: Option<u32>, least: u64, default: u32| {
            let value = value.unwrap_or(default);
            let range = if least == 0 { "0 to 1000" } else { "1 to 1000" };
            in_range(key, value.into(), least, 1000, range)?;
            Ok::<_, BuildError>(value)
        };
        let period_us = self.period_us.unwrap_or(default.period_ns / 1000);
        in_range(
            "detection.period-us",
            period_us,
            1,
            MS_MAX * 1000,
            "1 to 31536000000000",
        )?;
        let sample = self.sample.unwrap_or(default.sample);
        in_range("detection.sample", sample as u64, 1, 8192, "1 to 8192")?;
        let granularity = self
            .granularity
            .map_or(1 << default.granularity_log2, |size| size.0);
        in_range("detection.granularity", granularity, 64, 1 << 30, "64 to 1G")?;
        if !granularity.is_power_of_two() {
            return Err(BuildError::NoPowerOfTwo {
                key: "detection.granularity",
                value: granularity,
            });
        }
        Ok(DetectionSettings {
            period_ns: period_us * 1000,
            sample,
            granularity_log2: granularity.ilog2(),
            window_ns: ms("detection.window-ms", self.window_ms, 1, default.window_ns)?,
            start_up_ns: ms("detection.start-up-ms", self.start_up_ms, 0, default.start_up_ns)?,
            evaluation_ns: ms(
                "detection.evaluation-ms",
                self.evaluation_ms,
                1,
                default.evaluation_ns,
            )?,
            keep_permille: permille(
                "detection.keep-permille",
                self.keep_permille,
                0,
                default.keep_permille,
            )?,
            budget_permille: permille(
                "detection.budget-permille",
                self.budget_permille,
                1,
                default.budget_permille,
            )?,
            selection: (self.factor).map_or(Selection::Modularity, |Factor(ratio)| Selection::Factor(ratio)),
        })
    }
}
