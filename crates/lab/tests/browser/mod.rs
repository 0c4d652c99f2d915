//! A page in a headless Chromium, driven by the Chrome DevTools Protocol over pipes: real keys, a real pointer, other
//! media, and what assistive software is told.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    sent: u64,
    /// What the page said on its console and of its errors, and which files it asked for.
    pub said: Vec<String>,
    pub asked: Vec<String>,
}

impl Browser {
    /// A browser with an empty page of so many pixels. `scripts` says whether pages may run theirs.
    pub fn new(program: &Path, profile: &Path, (width, height): (u32, u32), scripts: bool) -> Browser {
        // The protocol's pipes are the descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 2>/dev/null"#, "sh"])
            .arg(program)
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
            .args([
                "--remote-debugging-pipe",
                "--hide-scrollbars",
                "--force-device-scale-factor=1",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--window-size={width},{height}"))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut browser = Browser {
            process,
            to,
            from: BufReader::new(from),
            session: String::new(),
            sent: 0,
            said: Vec::new(),
            asked: Vec::new(),
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": made["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(width, height);
        browser.call(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": !scripts }),
        );
        browser
    }

    /// Opens a file and waits until it is there.
    pub fn open(&mut self, file: &Path) {
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        self.until("Page.loadEventFired");
    }

    /// Another size of the page.
    pub fn size(&mut self, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
    }

    /// Another medium: `screen` or `print`, and the `light` or `dark` that the reader prefers.
    pub fn media(&mut self, medium: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "media": medium, "features": features }),
        );
    }

    /// What an expression of the page is.
    pub fn value(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// A text of the page.
    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// A number of the page.
    pub fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or(f64::NAN)
    }

    /// A key, pressed and let go: its name as of `KeyboardEvent.key`, and the code that Windows gave it.
    pub fn key(&mut self, key: &str, code: u32, is_shifted: bool) {
        let modifiers = if is_shifted { 8 } else { 0 };
        let text = match key {
            "Enter" => Some("\r"),
            key => (key.chars().count() == 1).then_some(key),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers,
            });
            if let ("keyDown", Some(text)) = (kind, text) {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
        self.settle();
    }

    /// Waits until the page has drawn itself, and has been told that it was scrolled.
    fn settle(&mut self) {
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// Text, as it is typed.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// What the pointer does at a place: `mouseMoved`, `mousePressed`, `mouseReleased`.
    pub fn pointer(&mut self, kind: &str, (x, y): (f64, f64)) {
        let (button, buttons) = if kind == "mouseMoved" {
            ("none", 0)
        } else {
            ("left", 1)
        };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 }),
        );
    }

    /// A click at a place.
    pub fn click(&mut self, at: (f64, f64)) {
        self.pointer("mouseMoved", at);
        self.pointer("mousePressed", at);
        self.pointer("mouseReleased", at);
    }

    /// The middle of an element, which is scrolled to.
    pub fn middle(&mut self, selector: &str) -> (f64, f64) {
        let element = format!("document.querySelector({})", Value::from(selector));
        self.value(&format!("{element}.scrollIntoView({{ block: 'center' }})"));
        self.settle();
        let middle = self.value(&format!(
            "(box => [box.left + box.width / 2, box.top + box.height / 2])({element}.getBoundingClientRect())"
        ));
        (middle[0].as_f64().unwrap(), middle[1].as_f64().unwrap())
    }

    /// What assistive software is told of the page: role and name of each element that is not left out.
    pub fn accessible(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let text = |of: &Value| of["value"].as_str().unwrap_or_default().to_owned();
        (tree["nodes"].as_array().unwrap().iter())
            .filter(|node| node["ignored"] != true)
            .map(|node| (text(&node["role"]), text(&node["name"])))
            .collect()
    }

    /// The page on paper, as a PDF file in base 64.
    pub fn printed(&mut self) -> String {
        let printed = self.call("Page.printToPDF", json!({ "preferCSSPageSize": true }));
        printed["data"].as_str().unwrap().to_owned()
    }

    /// Calls a method of the protocol and waits for what it answers.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn until(&mut self, event: &str) {
        while self.receive()["method"] != event {}
    }

    /// The next message; what concerns the page's manners is kept.
    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let of = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.said.push(of.to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.asked
                    .push(of["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
