//! A real Chromium, driven by the WebDriver protocol over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::hermetic::Hermetic;
use crate::part::{Part, require};
use crate::wait::wait_for;
use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

/// The name under which the protocol hides an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window. It ends with its owner.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _hermetic: Hermetic,
}

/// Colour scheme in which a page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    Day,
    Night,
}

impl Browser {
    /// `None` when Chromium is missing, which is then reported by name.
    pub fn start() -> Option<Self> {
        let chromium = require(Part::Chromium)?;
        let driver = require(Part::Chromedriver)?;
        let hermetic = Hermetic::new();
        let mut driver = hermetic
            .command(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let port = port_of(&mut driver);
        let mut browser = Self { driver, port, session: String::new(), _hermetic: hermetic };
        // Started by root, as in a container, it has no sandbox of its own.
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ];
        let answer = browser.call(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": args },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } }),
        );
        answer["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        Some(browser)
    }

    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap_or_default().to_owned()
    }

    /// Runs a script in the page and returns what it returns.
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Text of an element, once it is there.
    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?})?.textContent ?? null");
        wait_for(selector, || self.script(&script).as_str().map(str::to_owned))
    }

    /// Waits until an element says this, without loading the page again.
    pub fn wait_for_text(&self, selector: &str, words: &str) {
        wait_for(words, || self.text(selector).contains(words).then_some(()));
    }

    pub fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    pub fn write(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Sets the width of the window and the time of day.
    pub fn look(&self, width: u32, light: Light) {
        let scheme = if light == Light::Day { "light" } else { "dark" };
        let metrics =
            json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Keeps a picture of the whole page.
    pub fn picture(&self, path: &Path) {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.devtools("Page.captureScreenshot", &whole);
        let bytes = Base64::decode_vec(answer["data"].as_str().expect("a picture"));
        std::fs::write(path, bytes.expect("base64")).expect("written");
    }

    /// Complaints of the browser: scripts that failed, and things that the policy of the page forbids.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }));
        let severe = |entry: &&Value| entry["level"] == "SEVERE";
        let list = entries.as_array().cloned().unwrap_or_default();
        list.iter().filter(severe).map(|entry| entry["message"].to_string()).collect()
    }

    /// Waits for it: a page may have its address before it has its parts.
    fn find(&self, selector: &str) -> String {
        let query = json!({ "using": "css selector", "value": selector });
        wait_for(selector, || self.post("/element", &query)[ELEMENT].as_str().map(str::to_owned))
    }

    fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    fn get(&self, path: &str) -> Value {
        self.call("GET", &format!("/session/{}{path}", self.session), &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a limit");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let text = read_answer(stream);
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.call("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

/// The driver keeps connections open, so its answer ends where it says.
fn read_answer(stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("text")
}

/// It says where it listens; what else it says is read too, so that it never waits for a reader.
fn port_of(driver: &mut Child) -> u16 {
    let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines();
    let port = |line: std::io::Result<String>| {
        line.ok()?.rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
    };
    let port = lines.find_map(port).expect("a port");
    std::thread::spawn(move || lines.for_each(drop));
    port
}
