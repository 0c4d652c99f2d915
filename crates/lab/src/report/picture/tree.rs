//! A tree with its leaves in a row, coloured by the sets that it was cut into.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{COLOURS, Length, figure, text_width};
use crate::drawing::{Node, Tree};

const WIDTH: f64 = 460.0;
const TOP: f64 = 50.0;

/// A node with its place.
struct Placed<'a> {
    node: &'a Node,
    x: f64,
    y: f64,
    parent: Option<usize>,
}

/// How a tree is laid out.
struct Layout<'a> {
    levels: usize,
    column: f64,
    level: f64,
    next_leaf: usize,
    placed: Vec<Placed<'a>>,
}

/// A tree.
pub fn draw(tree: &Tree) -> Markup {
    let leaves = leaves(&tree.root).max(1);
    let levels = depth(&tree.root);
    let column = (WIDTH - 20.0) / leaves as f64;
    let level = (320.0 / levels.max(1) as f64).clamp(12.0, 54.0);
    let mut layout = Layout {
        levels,
        column,
        level,
        next_leaf: 0,
        placed: Vec::new(),
    };
    layout.place(&tree.root, None);
    let placed = layout.placed;
    let sets: BTreeSet<u32> = placed.iter().filter_map(|each| each.node.set).collect();
    let bottom = TOP + levels as f64 * level;
    let has_names = (placed.iter()).all(|each| text_width(&each.node.label) <= column.max(30.0) * 1.4);
    let radius = |node: &Node| match has_names {
        true => (text_width(&node.label) / 2.0 + 5.0).max(11.0),
        false => 3.0,
    };
    let class = |node: &Node| match node.set {
        Some(set) => format!("node k{}", set as usize % COLOURS),
        None => "node".to_owned(),
    };
    let content = html! {
        text class="heading" x="4" y="17" { (tree.title) }
        @for each in &placed {
            @if let Some(parent) = each.parent {
                @let (x, y) = (placed[parent].x, placed[parent].y);
                path class="edge" d={ "M" (Length(x)) " " (Length(y)) "V" (Length(y + level / 2.0)) "H" (Length(each.x)) "V" (Length(each.y)) } {}
            }
        }
        @for each in &placed {
            @let radius = radius(each.node);
            rect class=(class(each.node)) x=(Length(each.x - radius)) y=(Length(each.y - radius.min(11.0)))
                     rx=(Length(radius.min(11.0)))
                width=(Length(radius * 2.0)) height=(Length(radius.min(11.0) * 2.0)) { title { (each.node.label) } }
            @if has_names {
                text x=(Length(each.x)) y=(Length(each.y + 4.5)) text-anchor="middle" { (each.node.label) }
            }
        }
        @for (index, set) in sets.iter().enumerate() {
            @if index < 6 {
                rect class={ "node k" (*set as usize % COLOURS) } x=(Length(4.0 + 74.0 * index as f64)) y=(Length(bottom + 20.0)) rx="5" width="14" height="14" {}
                text class="minor" x=(Length(23.0 + 74.0 * index as f64)) y=(Length(bottom + 31.0)) { "set " (set) }
            }
        }
    };
    figure(
        &tree.title,
        WIDTH,
        bottom + if sets.is_empty() { 18.0 } else { 42.0 },
        content,
    )
}

fn leaves(node: &Node) -> usize {
    match node.children.is_empty() {
        true => 1,
        false => node.children.iter().map(leaves).sum(),
    }
}

fn depth(node: &Node) -> usize {
    node.children
        .iter()
        .map(|child| 1 + depth(child))
        .max()
        .unwrap_or(0)
}

impl<'a> Layout<'a> {
    /// Places a node over the middle of its children and returns where that is. Leaves stand on the lowest line.
    fn place(&mut self, node: &'a Node, parent: Option<usize>) -> f64 {
        let index = self.placed.len();
        self.placed.push(Placed {
            node,
            x: 0.0,
            y: TOP + (self.levels - depth(node)) as f64 * self.level,
            parent,
        });
        let below: Vec<f64> = node
            .children
            .iter()
            .map(|child| self.place(child, Some(index)))
            .collect();
        let x = match below.is_empty() {
            true => {
                self.next_leaf += 1;
                10.0 + self.column * (self.next_leaf as f64 - 0.5)
            }
            false => below.iter().sum::<f64>() / below.len() as f64,
        };
        self.placed[index].x = x;
        x
    }
}
