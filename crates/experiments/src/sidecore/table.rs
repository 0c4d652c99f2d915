//! The host's table of what transitions cost, as inputs: each entry can be set, and those that are estimates are what a
//! sensitivity analysis varies.

use sidestep_hypervisor::costs::{Cost, HostCosts};
use sidestep_lab::{Assumption, Input, Inputs, Value};

/// The least and the most cycles that an entry is tried with.
const BOUNDS: (Value, Value) = (Value::Integer(0), Value::Integer(1 << 40));

/// The key of an entry's input: that of the table, but where an experiment has an input of that name.
fn key(cost: Cost) -> &'static str {
    match cost {
        Cost::Purge => "purge-cycles",
        cost => cost.key(),
    }
}

/// An input for each entry; empty for what the table says.
pub fn inputs() -> impl Iterator<Item = Input> {
    Cost::ALL.iter().map(|cost| {
        Input::text(key(*cost))
            .about(cost.description())
            .unit("cycles")
            .source("the table, which names a source for each entry")
    })
}

/// A table with the entries that are set.
pub fn with(mut costs: HostCosts, inputs: &Inputs) -> Result<HostCosts, String> {
    for cost in Cost::ALL {
        let key = key(*cost);
        let text = inputs.text(key);
        if text.is_empty() {
            continue;
        }
        let cycles = text
            .parse()
            .map_err(|_| format!("`{key}` must be a number of cycles, not `{text}`"))?;
        costs = costs
            .with(*cost, cycles, "--set")
            .map_err(|error| error.to_string())?;
    }
    Ok(costs)
}

/// The assumed ones of an experiment's own inputs, and the entries of its table that are estimates or stand for
/// hardware that the machine did not have; with the values that are set.
pub fn assumptions(
    declared: &[Input],
    inputs: &Inputs,
    table: HostCosts,
    factor: u32,
) -> Result<Vec<Assumption>, String> {
    let set = with(table.clone(), inputs)?;
    let own = declared
        .iter()
        .filter_map(|input| input.assumption(inputs.value(input.key), factor));
    let entries = Cost::ALL.iter().filter_map(|cost| {
        let source = &table.entry(*cost).source;
        let is_assumed = ["estimate", "would take"]
            .iter()
            .any(|word| source.contains(word));
        let value = Value::Integer(i64::try_from(set.cycles(*cost)).ok()?);
        let assumption = Assumption::number(key(*cost), value, factor, (&BOUNDS.0, &BOUNDS.1));
        is_assumed.then(|| assumption.of(cost.description(), "cycles", source))
    });
    Ok(own.chain(entries).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_of_the_table_are_assumptions_at_the_value_that_is_set_and_published_entries_are_not() {
        let declared: Vec<Input> = inputs().collect();
        let settings = ["poll=12".to_owned()];
        let inputs = Inputs::new("sample", &declared, false, &settings).expect("a setting of the table");
        let table = HostCosts::preset("pentium-d").expect("a preset");
        assert_eq!(
            with(table.clone(), &inputs).map(|costs| costs.cycles(Cost::Poll)),
            Ok(12)
        );
        let assumed = assumptions(&declared, &inputs, table, 2).expect("numbers of cycles");
        let others = |key: &str| {
            let found = assumed.iter().find(|each| each.key == key)?;
            Some(found.others.clone())
        };
        assert_eq!(
            others("transfer"),
            Some(vec![Value::Integer(165), Value::Integer(660)])
        );
        assert_eq!(others("poll"), Some(vec![Value::Integer(6), Value::Integer(24)]));
        for published in ["exit", "entry", "dispatch", "emulate"] {
            assert_eq!(others(published), None, "{published}");
        }
    }
}
