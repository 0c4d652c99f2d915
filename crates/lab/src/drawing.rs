//! Pictures that a point can bring besides its value, as data: the reports draw them.

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// A picture as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Drawing {
    /// A heat map: who shares with whom, which core did what.
    Matrix(Matrix),
    /// A tree with named leaves: a dependency tree and the sets cut from it.
    Tree(Tree),
    /// A quantity divided into named parts that add up: a stall tree, where a core's time went.
    Breakdown(Breakdown),
}

/// A heat map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// What is shown.
    pub title: String,
    /// What a row is, for example `vCPU`; and a name for each row.
    pub rows: (String, Vec<String>),
    /// What a column is, and a name for each column.
    pub columns: (String, Vec<String>),
    /// A cell for each row and column; `None` where a cell has no meaning (a diagonal).
    pub cells: Vec<Vec<Option<Number>>>,
    /// The unit of a cell.
    pub unit: String,
}

/// A tree with named leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// What is shown.
    pub title: String,
    /// The top of the tree.
    pub root: Node,
}

/// A node of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// What stands in the node: a leaf's name, an inner node's number.
    pub label: String,
    /// The set to which the node belongs, if it was cut into sets: nodes of one set get one colour, named in
    /// the legend by its number.
    pub set: Option<u32>,
    /// The nodes below; a leaf has none.
    pub children: Vec<Node>,
}

/// A quantity divided into named parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakdown {
    /// What is shown.
    pub title: String,
    /// The unit of every part.
    pub unit: String,
    /// The whole.
    pub whole: Part,
}

/// A part of a [`Breakdown`], itself divided or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The part's name.
    pub name: String,
    /// How much it is.
    pub value: Number,
    /// Its own parts; they add up to its value, or there are none.
    pub parts: Vec<Part>,
}

impl Part {
    /// A part that is not divided.
    pub fn leaf(name: impl Into<String>, value: impl Into<Number>) -> Part {
        Part {
            name: name.into(),
            value: value.into(),
            parts: Vec::new(),
        }
    }

    /// A part that is the sum of its parts.
    pub fn sum(name: impl Into<String>, parts: Vec<Part>) -> Part {
        let value = parts.iter().map(|part| part.value).sum();
        Part {
            name: name.into(),
            value,
            parts,
        }
    }

    /// Whether every division, down to the leaves, adds up.
    pub fn adds_up(&self) -> bool {
        self.parts.is_empty()
            || (self.parts.iter().map(|part| part.value).sum::<Number>() == self.value
                && self.parts.iter().all(Part::adds_up))
    }
}

impl Node {
    /// A leaf.
    pub fn leaf(label: impl Into<String>) -> Node {
        Node {
            label: label.into(),
            set: None,
            children: Vec::new(),
        }
    }

    /// An inner node.
    pub fn inner(label: impl Into<String>, children: Vec<Node>) -> Node {
        Node {
            label: label.into(),
            set: None,
            children,
        }
    }

    /// The same node, as member of a set.
    pub fn in_set(mut self, set: u32) -> Node {
        self.set = Some(set);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakdown_that_does_not_add_up_is_seen() {
        let mut whole = Part::sum("cycles", vec![Part::leaf("issue", 3), Part::leaf("stall", 4)]);
        assert_eq!(whole.value, Number::from(7));
        assert!(whole.adds_up());
        whole.value = Number::from(8);
        assert!(!whole.adds_up());
    }
}
