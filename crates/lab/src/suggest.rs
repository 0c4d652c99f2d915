//! The nearest known name to a mistyped one.

/// The known name nearest to `name`, if it is near enough to be what was meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            let longest = name.chars().count().max(candidate.chars().count());
            distance * 5 <= longest * 2 || (!name.is_empty() && candidate.contains(name))
        })
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// The clause that offers the nearest name in an error message.
pub fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let known = ["gang.groups", "gang.policies", "cefos.gates"];
        assert_eq!(nearest("gang.policy", known).as_deref(), Some("gang.policies"));
        assert_eq!(nearest("gates", known).as_deref(), Some("cefos.gates"));
        assert_eq!(nearest("vhpt", known), None);
        assert_eq!(nearest("", known), None);
    }
}
