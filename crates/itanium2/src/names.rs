//! Names that do not exist, with those that were perhaps meant.

/// A name nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}`{}", suggestion(nearest))]
pub struct Unknown {
    /// What kind of thing was named.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The nearest names that exist, best first.
    pub nearest: Vec<String>,
}

impl Unknown {
    /// The unknown `name` beside the names that exist.
    pub fn new<'a>(kind: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Unknown {
        const SHOWN: usize = 3;
        let wanted = name.to_lowercase();
        let mut ranked: Vec<(usize, &str)> = known
            .map(|known| (strsim::damerau_levenshtein(&wanted, &known.to_lowercase()), known))
            .collect();
        ranked.sort();
        ranked.dedup();
        Unknown {
            kind,
            name: name.into(),
            nearest: ranked
                .iter()
                .take(SHOWN)
                .map(|(_, known)| (*known).into())
                .collect(),
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}
