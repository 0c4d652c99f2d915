//! The view, drawn with ratatui.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Paragraph, Wrap};
use sidestep_gang::tree::NodeId;
use sidestep_gang::{DependencyTree, TaskId};
use sidestep_gang_linux::watch::{Snapshot, Way};

use super::Key;

/// The terminal while it shows the view; put back when dropped.
pub struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// This program has the view.
    pub const IS_BUILT: bool = true;

    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
        })
    }

    /// What the user asked for since the last time, if anything.
    pub fn key(&mut self) -> io::Result<Option<Key>> {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(Key::Quit)),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(Some(Key::Quit));
                    }
                    KeyCode::Char('r') => return Ok(Some(Key::Reset)),
                    _ => {}
                },
                Event::Resize(..) => return Ok(Some(Key::Redraw)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Shows what is known.
    pub fn draw(&mut self, snapshot: &Snapshot, tree: &DependencyTree, way: &Way) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, snapshot, tree, way))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, tree: &DependencyTree, way: &Way) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(4), Constraint::Min(4), Constraint::Length(1)])
            .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(60), Constraint::Percentage(40)]).areas(body);
    let [top_right, bottom_right] =
        Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(right);
    let lost = if snapshot.lost > 0 {
        format!(", {} lost", snapshot.lost)
    } else {
        String::new()
    };
    let status = format!(
        "{:.0} s, {} faults{lost}, cost {:.1} %; {}\n{}",
        snapshot.seconds,
        snapshot.faults,
        snapshot.cost_permille / 10.0,
        way.faults,
        way.rate
    );
    frame.render_widget(Paragraph::new(status).wrap(Wrap { trim: true }), head);
    boxed(frame, left, "events between threads", matrix_text(snapshot));
    boxed(frame, top_right, "dependency tree", tree_text(tree));
    let sets = Paragraph::new(sets_text(snapshot)).wrap(Wrap { trim: true });
    let border = Block::bordered().title("sets that should run together");
    frame.render_widget(sets.block(border), bottom_right);
    frame.render_widget(Paragraph::new(" q quit   r forget what was seen".dim()), foot);
}

fn boxed(frame: &mut Frame<'_>, area: Rect, title: &'static str, text: Text<'_>) {
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(title)), area);
}

/// The matrix; the more events, the warmer the colour. Ended threads are dim.
fn matrix_text(snapshot: &Snapshot) -> Text<'static> {
    let tasks = snapshot.matrix.tasks();
    let events = |row, column| snapshot.matrix.events(TaskId::new(row), TaskId::new(column));
    let largest = (0..tasks)
        .flat_map(|row| (0..row).map(move |column| events(row, column)))
        .max()
        .unwrap_or(0);
    let width = largest.max(tasks as u64).to_string().len() + 1;
    let mut lines = vec![Line::from(format!(
        "{:20}{}",
        "",
        (0..tasks)
            .map(|column| format!("{column:>width$}"))
            .collect::<String>()
    ))];
    for thread in &snapshot.threads {
        let row = thread.task.index();
        let name = format!("{row:>3} {:<10.10}{:>6}", thread.program, thread.name.thread);
        let name = if thread.is_alive {
            Span::from(name)
        } else {
            name.dim()
        };
        let mut spans = vec![name];
        for column in 0..tasks {
            let count = events(row, column);
            let text = if row == column {
                format!("{:>width$}", "")
            } else {
                format!("{count:>width$}")
            };
            spans.push(Span::styled(text, heat(count, largest)));
        }
        lines.push(Line::from(spans));
    }
    Text::from(lines)
}

fn heat(count: u64, largest: u64) -> Style {
    let colours = [
        Color::DarkGray,
        Color::Blue,
        Color::Cyan,
        Color::Green,
        Color::Yellow,
        Color::Red,
    ];
    let step = (u128::from(count) * 5)
        .checked_div(u128::from(largest))
        .unwrap_or(0) as usize;
    let step = if count > 0 { step.max(1) } else { 0 };
    Style::default().fg(colours[step])
}

/// The tree, root first, each level further to the right.
fn tree_text(tree: &DependencyTree) -> Text<'static> {
    let mut lines = Vec::new();
    let mut open: Vec<(NodeId, usize)> = tree.root().map(|root| (root, 0)).into_iter().collect();
    while let Some((node, depth)) = open.pop() {
        let indent = "  ".repeat(depth);
        match tree.join(node) {
            Some(join) => {
                lines.push(Line::from(format!("{indent}d = {:.1}", tree.dependency(node))));
                open.extend([(join.right, depth + 1), (join.left, depth + 1)]);
            }
            None => lines.push(Line::from(format!("{indent}{}", tree.tasks_of(node)[0])).bold()),
        }
    }
    Text::from(lines)
}

fn sets_text(snapshot: &Snapshot) -> Text<'static> {
    let mut lines = Vec::new();
    if let Some(waits_for) = &snapshot.waits_for {
        lines.push(Line::from(
            format!("nothing is known yet; waiting for {waits_for}").italic(),
        ));
    }
    for (number, set) in snapshot.sets.sets().iter().enumerate() {
        let names: Vec<String> = set
            .iter()
            .map(|task| {
                let thread = &snapshot.threads[task.index()];
                format!("{}:{}", thread.program, thread.name.thread)
            })
            .collect();
        lines.push(Line::from(format!("{number}: {}", names.join(" "))));
    }
    Text::from(lines)
}
