//! The report's page in a browser: it renders, says nothing on the console, asks no network, its charts have axes with
//! units, and nothing is cut off, on a desktop and on a phone.
//!
//! Needs Chromium; where there is none the test says so and passes.

#[allow(dead_code)] // Each test uses some of the samples.
mod sample;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use sample::RedundantSignals;
use sample::gallery::Gallery;
use sidestep_lab::{Comparison, Experiment, Plan, Request, Runner, report};

/// What looks at the page from within: it writes what it saw into an element of its own, as JSON.
const PROBE: &str = r#"<script>
const errors = [];
addEventListener("error", event => errors.push(event.message));
addEventListener("load", () => {
  const pictures = [...document.querySelectorAll("svg.picture")].filter(svg => svg.checkVisibility()).map(svg => {
    const frame = svg.getBoundingClientRect();
    const cut = [...svg.querySelectorAll("text")].filter(text => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    }).map(text => text.textContent);
    const label = axis => svg.querySelector(axis + " .axis-label")?.textContent ?? null;
    return { title: svg.getAttribute("aria-label"), width: frame.width, cut, x: label(".x-axis"), y: label(".y-axis") };
  });
  const root = document.documentElement;
  // Every file that the page asked for, whether it came or not.
  const asked = performance.getEntriesByType("resource").map(entry => entry.name);
  const seen = { errors, asked, pictures, overflow: root.scrollWidth - root.clientWidth, width: root.clientWidth };
  const output = document.createElement("pre");
  output.id = "probe";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
});
</script>"#;

/// What the probe saw.
#[derive(serde::Deserialize)]
struct Seen {
    errors: Vec<String>,
    asked: Vec<String>,
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
    runner.run(&[plan(&RedundantSignals), plan(&Gallery)])
}

fn look(browser: &Path, folder: &Path, page: &str, width: u32) -> Seen {
    let file = folder.join("page.html");
    fs::write(&file, page.replacen("<style>", &format!("{PROBE}<style>"), 1)).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--enable-logging=stderr", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert_eq!(console, [""; 0], "the console has messages");
    let seen = dom
        .split("<pre id=\"probe\">")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next());
    let seen = seen.unwrap_or_else(|| panic!("the page did not load: {log}"));
    serde_json::from_str(
        &seen
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
    .unwrap()
}

#[test]
fn the_page_renders_on_a_desktop_and_on_a_phone() {
    let Some(browser) = tests_need::CHROMIUM.find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = report::html::render(&comparisons());
    for width in [1280, 500] {
        let seen = look(&browser, folder.path(), &page, width);
        assert_eq!(seen.errors, [""; 0]);
        assert_eq!(seen.asked, [""; 0], "the page asks for other files");
        assert_eq!(
            (seen.width, seen.overflow),
            (i64::from(width), 0),
            "the page is wider than its window"
        );
        // The charts of both experiments, and the heat map and tree of the points that are open.
        assert_eq!(seen.pictures.len(), 5 + 2 * 2);
        for picture in &seen.pictures {
            assert!(picture.width > 200.0, "{}: {} wide", picture.title, picture.width);
            assert_eq!(picture.cut, [""; 0], "{}: text is cut off", picture.title);
        }
        let labels = |title: &str| {
            let picture = seen
                .pictures
                .iter()
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
    }
}

#[test]
fn the_page_names_no_other_host_and_runs_no_script() {
    let page = report::html::render(&comparisons());
    for forbidden in ["<script", "src=", "@import", "url(", "href=\"http"] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
}

#[test]
fn text_from_experiments_is_escaped() {
    let mut comparison = comparisons().remove(0);
    comparison.about.setting = "a < b & \"c\" <img src=x>";
    let page = report::html::render(&[comparison]);
    assert!(page.contains("a &lt; b &amp; &quot;c&quot; &lt;img src=x&gt;"));
}
