//! placeholder
use crate::comparison::Comparison;
/// x
pub fn render(_: &[Comparison]) -> String {
    String::new()
}
