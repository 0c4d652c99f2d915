//! The report's page in a browser: it renders, says nothing on the console, asks no network, its charts have axes with
//! units, and nothing is cut off, on a desktop, on a phone, in the dark and on paper. Tables are filtered and sorted,
//! pictures asked and zoomed, by pointer and by keyboard; without a script all of it can be read.
//!
//! Needs Chromium; where there is none these tests are left out.

mod browser;
#[allow(dead_code)] // Each test uses some of the samples.
mod sample;

use std::fs;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use browser::Browser;
use sample::RedundantSignals;
use sample::gallery::Gallery;
use sidestep_lab::{
    About, Axis, Comparison, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Plan,
    Point, PointError, Request, Runner, Side, compare, report,
};
use tempfile::TempDir;

/// What looks at the page from within.
const LOOK: &str = r#"(() => {
  const pictures = [...document.querySelectorAll("svg.picture")].filter(svg => svg.checkVisibility()).map(svg => {
    const frame = svg.getBoundingClientRect();
    const cut = [...svg.querySelectorAll("text")].filter(text => !text.closest(".off")).filter(text => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    }).map(text => text.textContent);
    const label = axis => svg.querySelector(axis + " .axis-label")?.textContent ?? null;
    return { title: svg.getAttribute("aria-label"), width: frame.width, cut, x: label(".x-axis"), y: label(".y-axis") };
  });
  const root = document.documentElement;
  return { pictures, overflow: root.scrollWidth - root.clientWidth, width: root.clientWidth };
})()"#;

/// Every text that stands out too little from what is behind it: less than 4.5 to 1, as WCAG 2.2, 1.4.3 asks. What a
/// control that is off says is excepted there, and text behind a bar of a picture is not asked about.
const FAINT: &str = r#"(() => {
  const channels = text => text.match(/[\d.]+/g).map(Number);
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const ground = light(channels(getComputedStyle(document.body).backgroundColor));
  const faint = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const of = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !of.checkVisibility() || of.closest("script, :disabled, .over")) continue;
    const style = getComputedStyle(of);
    const drawn = light(channels(of.closest("svg") ? style.fill : style.color));
    const contrast = (Math.max(drawn, ground) + 0.05) / (Math.min(drawn, ground) + 0.05);
    if (contrast < 4.5) faint.add(`${walk.currentNode.data.trim()}: ${contrast.toFixed(2)}`);
  }
  return [...faint];
})()"#;

/// What the first look saw.
#[derive(serde::Deserialize)]
struct Seen {
    pictures: Vec<Picture>,
    overflow: i64,
    width: i64,
}

#[derive(serde::Deserialize)]
struct Picture {
    title: String,
    width: f64,
    cut: Vec<String>,
    x: Option<String>,
    y: Option<String>,
}

fn comparisons() -> Vec<Comparison> {
    let cancelled = AtomicBool::new(false);
    let runner = Runner {
        jobs: NonZeroUsize::MIN,
        cache: None,
        cancelled: &cancelled,
        observer: &(),
    };
    let plan = |experiment: &'static dyn Experiment| Plan::new(experiment, &Request::default()).unwrap();
    let plans = [plan(&RedundantSignals), plan(&Gallery)];
    let mut comparisons = runner.run(&plans);
    runner.record(&plans, &mut comparisons).unwrap();
    comparisons
}

/// The page of the samples in a browser, if there is one, with the folder that both lie in.
fn opened(size: (u32, u32), scripts: bool) -> Option<(Browser, TempDir)> {
    let program = tests_need::CHROMIUM.find()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, report::html::render(&comparisons())).unwrap();
    let mut browser = Browser::new(&program, &folder.path().join("profile"), size, scripts);
    browser.open(&file);
    Some((browser, folder))
}

fn look(browser: &mut Browser) -> Seen {
    serde_json::from_value(browser.value(LOOK)).unwrap()
}

/// How many rows of a table, by its place among those with a filter, are to be seen.
fn rows(browser: &mut Browser, table: usize) -> f64 {
    browser.number(&format!(
        "[...document.querySelectorAll('.filter')][{table}].nextElementSibling\
         .querySelectorAll('tbody tr:not([hidden]):not(.attached)').length"
    ))
}

const DESKTOP: (u32, u32) = (1280, 900);
/// The chart that the tests below take.
const CHART: &str = "svg[aria-label='Throughput over round trip (Figure 5)']";

#[test]
fn the_page_renders_on_a_desktop_and_on_a_phone_in_light_and_dark() {
    let Some((mut browser, _folder)) = opened(DESKTOP, true) else {
        return;
    };
    for (width, scheme) in [(1280, "light"), (500, "dark"), (320, "light"), (1280, "dark")] {
        browser.size(width, 900);
        browser.media("screen", scheme);
        let seen = look(&mut browser);
        assert_eq!(
            (seen.width, seen.overflow),
            (i64::from(width), 0),
            "the page is wider than its window"
        );
        // The charts of both experiments, the timelines of one, and the heat map and tree of the points that are open.
        assert_eq!(seen.pictures.len(), 5 + 2 + 2 * 2);
        for picture in &seen.pictures {
            assert!(picture.width > 200.0, "{}: {} wide", picture.title, picture.width);
            assert_eq!(picture.cut, [""; 0], "{}: text is cut off", picture.title);
        }
        let labels = |title: &str| {
            let picture = (seen.pictures.iter())
                .find(|picture| picture.title == title)
                .unwrap();
            (picture.x.clone().unwrap(), picture.y.clone().unwrap())
        };
        let (x, y) = labels("Throughput over round trip (Figure 5)");
        assert_eq!(
            (x.as_str(), y.as_str()),
            ("device round trip (µs)", "throughput (calls/s)")
        );
        let (x, y) = labels("Gain over round trip");
        assert_eq!((x.as_str(), y.as_str()), ("device round trip (µs)", "gain (×)"));
        let (x, y) = labels("Time to hand over a packet");
        assert_eq!((x.as_str(), y.as_str()), ("guests", "time (ns)"));
        assert_eq!(
            browser.value(FAINT),
            serde_json::json!([]),
            "too faint in the {scheme}"
        );
        let dark = browser.number("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])");
        assert_eq!(dark < 128.0, scheme == "dark");
    }
    assert_eq!(browser.said, [""; 0], "the console has messages");
    let others: Vec<&String> = browser
        .asked
        .iter()
        .filter(|url| !url.starts_with("file:") && !url.starts_with("data:"))
        .collect();
    assert_eq!(others, [""; 0], "the page asks for other files");
}

#[test]
fn tables_are_filtered_by_words_and_verdicts_and_sorted_by_a_column() {
    let Some((mut browser, _folder)) = opened(DESKTOP, true) else {
        return;
    };
    let all = rows(&mut browser, 0);
    assert!(all > 6.0);
    let words = browser.middle(".filter input[type=search]");
    browser.click(words);
    browser.type_text("GALLERY growth");
    // One finding of each verdict.
    assert_eq!(rows(&mut browser, 0), 3.0);
    assert_eq!(
        browser.text("document.querySelector('.filter output').textContent"),
        format!("3 of {all} statements")
    );
    let differs = browser.middle(".filter input[value=differs]");
    browser.click(differs);
    assert_eq!(rows(&mut browser, 0), 2.0);
    browser.click(differs);
    browser.value("document.querySelector('.filter input').select()");
    browser.click(words);
    browser.value("document.querySelector('.filter input').select()");
    browser.key("Delete", 46, false);
    assert_eq!(rows(&mut browser, 0), all);

    // The points of the gallery: a row that failed keeps its reason below it.
    let column = "[...document.querySelectorAll('#sample\\\\.gallery table.filterable')].slice(0, 1)\
                  .flatMap(table => [...table.querySelectorAll('tbody tr:not(.attached)')])\
                  .map(row => row.cells[1].textContent).join(' ')";
    let given = browser.text(column);
    let heading = "#sample\\.gallery table.filterable th:nth-child(2) button";
    let at = browser.middle(heading);
    browser.click(at);
    let ascending = browser.text(column);
    assert_eq!(ascending, "0ns 0ns 2us 2us 4us 4us 6us 6us");
    let sorted = "document.querySelector('#sample\\\\.gallery th[aria-sort]').getAttribute('aria-sort')";
    assert_eq!(browser.text(sorted), "ascending");
    browser.value(&format!(
        "document.querySelector({}).focus()",
        serde_json::Value::from(heading)
    ));
    browser.key("Enter", 13, false);
    assert_eq!(browser.text(sorted), "descending");
    let below = "[...document.querySelectorAll('#sample\\\\.gallery tr.attached')]\
                 .every(row => /not possible|failed/.test(row.previousElementSibling.textContent))";
    assert_eq!(browser.value(below), true);
    browser.key("Enter", 13, false);
    assert_eq!(
        browser.text(column),
        given,
        "the third time the order is the first again"
    );
    assert_eq!(browser.said, [""; 0]);
}

#[test]
fn pictures_are_asked_chosen_and_zoomed_by_keyboard_alone() {
    let Some((mut browser, _folder)) = opened(DESKTOP, true) else {
        return;
    };
    let shown = "document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent";
    let spoken = "document.querySelector('[aria-live=polite].for-readers').textContent";
    // From the top of the page by the tabulator alone.
    let reached = format!("document.activeElement.matches(\"{CHART}\")");
    let mut presses = 0;
    while browser.value(&reached) != true {
        browser.key("Tab", 9, false);
        presses += 1;
        assert!(presses < 200, "the chart is not reached");
    }
    browser.key("ArrowRight", 39, false);
    let first = browser.text(shown);
    assert!(
        first.starts_with("partial, with the given sets: baseline\ndevice round trip 0 µs\n"),
        "{first}"
    );
    assert_eq!(browser.text(spoken), first);
    browser.key("ArrowRight", 39, false);
    let second = browser.text(shown);
    assert!(
        second.contains("device round trip 2 µs") && second.contains("\nthe paper: 4,000"),
        "{second}"
    );
    browser.key("ArrowDown", 40, false);
    assert!(
        browser
            .text(shown)
            .starts_with("partial, with the given sets: sidestep\ndevice round trip 2 µs")
    );

    let names = format!(
        "[...document.querySelectorAll(\"{CHART} .x-axis text.minor\")].filter(text => !text.closest('.off')).map(text => text.textContent).join(' ')"
    );
    let whole = browser.text(&names);
    assert_eq!(whole, "0 2 4 6");
    browser.key("+", 187, false);
    browser.key("+", 187, false);
    // Twice as near each time, and the mark stays where it is.
    let near = browser.text(&names);
    assert!(near.ends_with("2.0 2.5 3.0"), "{near}");
    assert_eq!(
        look(&mut browser)
            .pictures
            .iter()
            .flat_map(|picture| &picture.cut)
            .count(),
        0
    );
    browser.key("ArrowRight", 39, true);
    browser.key("ArrowRight", 39, true);
    assert_ne!(browser.text(&names), near, "Shift and an arrow go along");
    browser.key("0", 48, false);
    assert_eq!(browser.text(&names), whole);
    browser.key("Escape", 27, false);
    assert_eq!(browser.text(shown), "");

    // The legend's entries follow.
    browser.key("Tab", 9, false);
    let series = format!(
        "[...document.querySelectorAll(\"{CHART} .series\")].filter(line => !line.closest('.off')).length"
    );
    let lines = browser.number(&series);
    browser.key(" ", 32, false);
    assert_eq!(browser.number(&series), lines - 1.0);
    assert_eq!(
        browser.text("document.activeElement.getAttribute('aria-checked')"),
        "false"
    );
    browser.key(" ", 32, false);
    browser.key(" ", 32, true);
    assert_eq!(browser.number(&series), 1.0, "with Shift it is alone");
    browser.key(" ", 32, true);
    assert_eq!(browser.number(&series), lines);
    assert_eq!(browser.said, [""; 0]);
}

#[test]
fn pictures_are_asked_chosen_and_zoomed_by_pointer() {
    let Some((mut browser, _folder)) = opened(DESKTOP, true) else {
        return;
    };
    let at = browser.middle(&format!("{CHART} .series[data-series='1'] circle:nth-of-type(2)"));
    browser.pointer("mouseMoved", (at.0 + 3.0, at.1 + 3.0));
    let tip = browser.text("document.querySelector('.tip').textContent");
    assert!(tip.contains("sidestep\ndevice round trip 2 µs"), "{tip}");
    assert_eq!(browser.value("document.querySelector('.tip').hidden"), false);

    // What was dragged over fills the plot: its corner is where the plot's corner is.
    let place = |browser: &mut Browser, x: f64, y: f64| {
        let point = browser.value(&format!(
            "(() => {{ const svg = document.querySelector(\"{CHART}\"); \
             const [left, top, right, bottom] = svg.querySelector('.plot').dataset.box.split(' ').map(Number); \
             const point = new DOMPoint(left + {x} * (right - left), top + {y} * (bottom - top))\
             .matrixTransform(svg.getScreenCTM()); return [point.x, point.y]; }})()"
        ));
        (point[0].as_f64().unwrap(), point[1].as_f64().unwrap())
    };
    let mark = format!("document.querySelector(\"{CHART} .series[data-series='1'] circle:nth-of-type(2)\")");
    let stood = browser.number(&format!("Number({mark}.getAttribute('cx'))"));
    let (from, to) = (place(&mut browser, 0.25, 0.1), place(&mut browser, 0.75, 0.6));
    browser.pointer("mouseMoved", from);
    browser.pointer("mousePressed", from);
    browser.pointer("mouseMoved", to);
    browser.pointer("mouseReleased", to);
    let stands = browser.number(&format!("Number({mark}.getAttribute('cx'))"));
    let edges = browser.text(&format!("document.querySelector(\"{CHART} .plot\").dataset.box"));
    let edges: Vec<f64> = edges.split(' ').map(|edge| edge.parse().unwrap()).collect();
    let share = |x: f64| (x - edges[0]) / (edges[2] - edges[0]);
    let expected = (share(stood) - 0.25) / 0.5;
    assert!(
        (share(stands) - expected).abs() < 0.02,
        "{} is not {expected}",
        share(stands)
    );
    assert_eq!(
        look(&mut browser)
            .pictures
            .iter()
            .flat_map(|picture| &picture.cut)
            .count(),
        0
    );

    // The button beside shows all again.
    browser.value(&format!(
        "document.querySelector(\"{CHART}\").nextElementSibling.lastChild.id = 'all'"
    ));
    let all = browser.middle("#all");
    browser.click(all);
    assert_eq!(
        browser
            .number(&format!("Number({mark}.getAttribute('cx'))"))
            .round(),
        stood.round()
    );
    assert_eq!(browser.value("document.querySelector('#all').disabled"), true);

    let entry = browser.middle(&format!("{CHART} .entry[data-series='0']"));
    browser.click(entry);
    let hidden = format!(
        "getComputedStyle(document.querySelector(\"{CHART} .series[data-series='0']\")).display === 'none'"
    );
    assert_eq!(browser.value(&hidden), true);
    assert_eq!(browser.said, [""; 0]);
}

#[test]
fn whoever_hears_the_page_is_told_what_everything_is() {
    let Some((mut browser, _folder)) = opened(DESKTOP, true) else {
        return;
    };
    let nodes = browser.accessible();
    for (role, name) in &nodes {
        let needs_a_name = [
            "button",
            "checkbox",
            "link",
            "searchbox",
            "region",
            "navigation",
            "image",
            "img",
        ];
        assert!(
            !needs_a_name.contains(&role.as_str()) || !name.is_empty(),
            "a {role} without a name"
        );
    }
    let has = |role: &str, name: &str| nodes.iter().any(|node| node.0 == role && node.1 == name);
    for (role, name) in [
        ("main", ""),
        ("heading", "Baseline against sidestep"),
        ("navigation", "Experiments"),
        ("searchbox", "Filter"),
        ("checkbox", "partial, with the given sets: baseline"),
        ("button", "Zoom in: Gain over round trip"),
        ("columnheader", "verdict"),
        ("link", "To the content"),
    ] {
        assert!(has(role, name), "no {role} `{name}`: {nodes:?}");
    }
    let headings =
        "[...document.querySelectorAll('h1, h2, h3')].map(heading => Number(heading.localName[1]))";
    let levels: Vec<i64> = serde_json::from_value(browser.value(headings)).unwrap();
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
    assert!(
        levels.windows(2).all(|pair| pair[1] - pair[0] <= 1),
        "a level of headings is left out"
    );
}

#[test]
fn without_a_script_and_on_paper_everything_is_there() {
    let Some((mut browser, _folder)) = opened(DESKTOP, false) else {
        return;
    };
    // The protocol looks at the page even where the page runs nothing.
    let shown = "[...document.querySelectorAll('tbody tr')].every(row => !row.closest('details') ? row.checkVisibility() : true)";
    assert_eq!(browser.value(shown), true);
    assert_eq!(
        browser.number("document.querySelectorAll('.filter, .controls, .tip').length"),
        0.0
    );
    assert_eq!(look(&mut browser).pictures.len(), 5 + 2 + 2 * 2);
    assert_eq!(
        browser.text(&format!(
            "document.querySelector(\"{CHART} circle title\").textContent.split('\\n')[0]"
        )),
        "partial, with the given sets: baseline"
    );

    browser.call(
        "Emulation.setScriptExecutionDisabled",
        serde_json::json!({ "value": false }),
    );
    browser.call("Page.reload", serde_json::json!({}));
    browser.media("print", "dark");
    browser.size(700, 1000);
    while browser.value("document.querySelectorAll('.controls').length > 0") != true {}
    let seen = "[...document.querySelectorAll('.filter, .controls, .tip, .skip')].some(each => each.checkVisibility())";
    assert_eq!(
        browser.value(seen),
        false,
        "what cannot be pressed on paper is printed"
    );
    assert_eq!(
        browser.text("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    assert_eq!(browser.value(FAINT), serde_json::json!([]), "too faint on paper");
    assert_eq!(look(&mut browser).overflow, 0, "paper is not scrolled");
    // A PDF of several pages.
    assert!(browser.printed().len() > 50_000);
}

#[test]
fn a_page_runs_no_script_but_its_own() {
    let Some(program) = tests_need::CHROMIUM.find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let page = report::html::render(&comparisons());
    let other = "<script>document.title = 'broken into'</script><img src=x onerror=\"document.title = 'broken into'\">";
    fs::write(&file, page.replacen("<main", &format!("{other}<main"), 1)).unwrap();
    let mut browser = Browser::new(&program, &folder.path().join("profile"), DESKTOP, true);
    browser.open(&file);
    assert_ne!(browser.text("document.title"), "broken into");
    assert!(browser.number("document.querySelectorAll('.controls').length") > 0.0);
}

#[test]
fn the_page_names_no_other_host() {
    let page = report::html::render(&comparisons());
    for forbidden in ["src=", "@import", "href=\"http"] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
    assert_eq!(page.matches("<script").count(), 1);
}

/// A sweep over as many points as are asked for.
struct Long;

impl Experiment for Long {
    fn about(&self) -> About {
        About::new("sample.long", Metric::lower("time", "ns"))
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::integers("at", &[1]).source("invented").axis()]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&["at"]))
    }

    fn run_point(&self, _: &Inputs, point: &Point, _: &Context) -> Result<Measurement, PointError> {
        let at = point.value("at").number().unwrap();
        let side = |value| Side::new(value).counter("calls", value, "");
        Ok(Measurement::new(side(at), side(at * at)).draw(sample::gallery::heat_map()))
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::lines(
            "Time",
            Axis::new("at", "at", ""),
            Measure::Value,
            "time",
            "ns",
        )]
    }
}

#[test]
fn a_page_of_a_long_sweep_is_bounded() {
    let of = |points: u64| {
        let list: Vec<String> = (1..=points).map(|at| at.to_string()).collect();
        let request = Request {
            settings: vec![format!("at={}", list.join(","))],
            ..Request::default()
        };
        report::html::render(&[compare(&Long, &request).unwrap()])
    };
    let (long, longer) = (of(2_000), of(20_000));
    assert!(long.contains("The first 1000 of 2000 points"));
    assert!(long.contains("Of the first 48 of 2000 points"));
    // A line of a chart has an end more for each, some bytes on either side; and the command and the input a number.
    let more = (longer.len() - long.len()) / 18_000;
    assert!(more < 60, "{more} bytes a point");
}

#[test]
fn text_from_experiments_is_escaped() {
    let mut comparison = comparisons().remove(0);
    comparison.about.setting = "a < b & \"c\" <img src=x>";
    let page = report::html::render(&[comparison]);
    assert!(page.contains("a &lt; b &amp; &quot;c&quot; &lt;img src=x&gt;"));
}
