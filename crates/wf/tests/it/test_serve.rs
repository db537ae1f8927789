//! `wf serve`: the board in the browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::browser::{Browser, Light};
use testkit::part::require_folder;
use testkit::wait::wait_for;

use crate::play::{APPROVE, GOOD, PROFILE, person_with_one};
use crate::support::{ONE, ONE_DONE, Person, read};

/// A title that would hurt a page that did not escape it.
const HOSTILE: &str = "<script>window.hurt = 1</script> \u{202e}evil";

/// A server of the board; it ends with its owner.
struct ServedBoard {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl ServedBoard {
    fn start(person: &Person) -> Self {
        let mut command = person.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
        let mut child = command.spawn().expect("wf starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut text = String::new();
        while !text.ends_with("}\n") {
            assert_ne!(output.read_line(&mut text).expect("a line"), 0, "{text}");
        }
        let facts: Value = serde_json::from_str(&text).expect("JSON");
        let url = facts["url"].as_str().expect("an address");
        let address =
            url.trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
        let token =
            read(Path::new(facts["token_file"].as_str().expect("a file"))).trim().to_owned();
        Self { child, address, token }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The status, the head and the body of a response.
    fn send(&self, method: &str, path: &str, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a limit");
        let (address, length) = (self.address, body.len());
        let host =
            if head.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{head}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        (status, head.to_owned(), body.to_owned())
    }

    /// A fact, for a program with the token.
    fn api(&self, path: &str) -> Value {
        let head = format!("Authorization: Bearer {}\r\n", self.token);
        let (status, _, body) = self.send("GET", path, &head, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Logs in without a browser. Returns the cookie.
    fn log_in(&self) -> String {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let (status, head, _) = self.send("POST", "/login", form, &format!("token={}", self.token));
        assert_eq!(status, 303, "{head}");
        let line = head
            .lines()
            .find(|line| line.to_lowercase().starts_with("set-cookie:"))
            .expect("a cookie");
        let cookie = line.split_once(": ").expect("a value").1.split(';').next().expect("a pair");
        assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
        format!("Cookie: {cookie}\r\n")
    }

    /// A page of a person who is logged in, and the token of its forms.
    fn page(&self, cookie: &str, path: &str) -> (String, String) {
        let (status, _, body) = self.send("GET", path, cookie, "");
        assert_eq!(status, 200, "{body}");
        let token = body.split_once("name=\"token\" value=\"").expect("a form").1;
        let token = token.split('"').next().expect("a token").to_owned();
        (body, token)
    }

    /// Presses a button without a script.
    fn press(&self, cookie: &str, path: &str, fields: &str) -> (u16, String, String) {
        let head = format!("{cookie}Content-Type: application/x-www-form-urlencoded\r\n");
        self.send("POST", path, &head, fields)
    }
}

impl Drop for ServedBoard {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_board_is_for_this_machine_and_needs_the_token() {
    let person = Person::with_plan(ONE);
    person.refused(
        &["serve", "--listen", "0.0.0.0:0"],
        2,
        &["can be reached from other machines", "ssh -L"],
    );
    let server = ServedBoard::start(&person);
    let (status, head, _) = server.send("GET", "/", "", "");
    assert_eq!((status, head.contains("location: /login?next=/")), (303, true), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    let (status, _, body) = server.send("GET", "/api/board", "", "");
    assert_eq!(status, 401, "{body}");
    assert!(body.contains("Authorization: Bearer"), "{body}");
    assert_eq!(server.send("GET", "/api/board", "Authorization: Bearer wrong\r\n", "").0, 401);
    let wrong = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(server.send("POST", "/login", wrong, "token=wrong").0, 401);
    // A name that others pointed at this machine, and a form of another page.
    let stranger = format!("Host: evil.example\r\nAuthorization: Bearer {}\r\n", server.token);
    assert_eq!(server.send("GET", "/api/board", &stranger, "").0, 421);
    let cookie = server.log_in();
    let (_, token) = server.page(&cookie, "/workstreams/tf");
    let fields = format!("token={token}");
    let cross = format!("{cookie}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(server.press(&cross, "/workstreams/tf/approve", &fields).0, 403);
    assert_eq!(server.press(&cookie, "/workstreams/tf/approve", "token=other").0, 403);
    assert_eq!(server.press(&cookie, "/workstreams/tf/delete", &fields).0, 404);
    assert_eq!(server.press(&cookie, "/logout", &fields).0, 303);
    assert_eq!(server.send("GET", "/", &cookie, "").0, 303, "the session is over");
}

#[test]
fn facts_and_forms_work_without_a_script() {
    let person = Person::with_plan(ONE_DONE);
    person.ok(&["new", "other", "A < B"]);
    person.question("other", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    let server = ServedBoard::start(&person);
    let board = server.api("/api/board");
    let facts = |id: &str| {
        let list = board["workstreams"].as_array().expect("a list");
        list.iter().find(|it| it["id"] == id).cloned().expect("a workstream")
    };
    assert_eq!(facts("tf")["status"], "uat:pending");
    assert_eq!(facts("tf")["acceptance"][0]["id"], "UAT-001");
    assert_eq!(facts("other")["questions"][0]["id"], "CLQ-001");
    assert_eq!(server.api("/api/workstreams/tf")["plan"][0]["done"], true);
    let cookie = server.log_in();
    let (page, token) = server.page(&cookie, "/");
    assert!(page.contains("2 workstreams need you") && page.contains("A &lt; B"), "{page}");
    let answer = format!("token={token}&subject=CLQ-001&text=tokens%2C+please");
    let (status, head, body) = server.press(&cookie, "/workstreams/other/answer", &answer);
    assert_eq!(status, 303, "{body}");
    assert!(head.contains("location: /workstreams/other?requested=answer"), "{head}");
    let answered = person.workstream_dir("other").join("clarifications/answered/CLQ-001.json");
    assert!(read(&answered).contains("tokens, please"));
    // An empty reason is refused with its remedy; a reason for each line.
    let (status, _, body) = server.press(
        &cookie,
        "/workstreams/tf/refuse",
        &format!("token={token}&subject=UAT-001&text=+"),
    );
    assert_eq!(status, 400, "{body}");
    // Nothing was done yet, whatever the address says.
    let (page, _) = server.page(&cookie, "/workstreams/tf?requested=refuse");
    assert!(!page.contains("Not accepted"), "{page}");
    let refuse = format!("token={token}&subject=UAT-001&text=too+slow%0D%0Augly");
    assert_eq!(server.press(&cookie, "/workstreams/tf/refuse", &refuse).0, 303);
    assert_eq!(person.meta("tf", "STATUS"), "uat:failed");
    let (page, _) = server.page(&cookie, "/workstreams/tf?requested=refuse");
    assert!(
        page.contains("Fix acceptance test 001: too slow") && page.contains("Not accepted"),
        "{page}"
    );
    let (status, _, body) =
        server.press(&cookie, "/workstreams/tf/accept", &format!("token={token}&subject=UAT-001"));
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("has a verdict already"), "{body}");
    assert_eq!(server.send("GET", "/workstreams/nope", &cookie, "").0, 400);
}

#[test]
fn an_open_page_is_told_of_changes() {
    let person = Person::with_plan(ONE);
    let server = ServedBoard::start(&person);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a limit");
    let (address, token) = (server.address, &server.token);
    let request =
        format!("GET /live HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line.trim() != "" || line.is_empty() {
        line.clear();
        reader.read_line(&mut line).expect("a head");
    }
    // Changes are made until one is seen: the first may come before the stream looks.
    let person_dir = person.workstream_dir("tf");
    let told = std::thread::spawn(move || {
        let mut line = String::new();
        while !line.contains("news") {
            line.clear();
            assert_ne!(reader.read_line(&mut line).expect("an event"), 0, "the stream ended");
        }
    });
    let mut number = 0;
    wait_for("an event", || {
        number += 1;
        crate::support::write(&person_dir.join("plan.md"), &format!("{ONE}\n{number}\n"));
        told.is_finished().then_some(())
    });
    told.join().expect("told");
}

#[test]
fn a_run_starts_from_the_page_and_shows_its_stage_and_step() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nrun = \"echo working; while ! test -e /workspace/go; do sleep 0.1; done\"\n[[step]]\nrun = \"rm go; mkdir -p mk; echo x > mk/a\"\n[[step]]\nprint = '''{\"status\": \"success\"}\n'''\n", APPROVE);
    let server = ServedBoard::start(&person);
    let cookie = server.log_in();
    let (_, token) = server.page(&cookie, "/workstreams/tf");
    let (status, _, body) = server.press(&cookie, "/workstreams/tf/run", &format!("token={token}"));
    assert_eq!(status, 303, "{body}");
    let facts = wait_for("the agent's step", || {
        let facts = server.api("/api/workstreams/tf");
        (facts["running"]["stage"] == "implement" && facts["running"]["step"].is_string())
            .then_some(facts)
    });
    assert!(facts["plan"][0]["active"].as_bool().expect("a mark"), "{facts:#}");
    assert!(facts["running"]["since"].is_string());
    let run = person.runs().pop().expect("a run");
    std::fs::write(run.join("workspace/go"), "").expect("written");
    wait_for("the end", || (person.meta("tf", "STATUS") == "uat:pending").then_some(()));
}

/// Where pictures are kept, for whoever wants to look.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Looks at a page in every way, and has axe look for what keeps people out.
fn inspect(browser: &Browser, axe: &str, name: &str) {
    for (width, light) in
        [(390, Light::Day), (390, Light::Night), (1280, Light::Day), (1280, Light::Night)]
    {
        browser.look(width, light);
        let beside =
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.script(beside), 0, "{name} is wider than {width} px");
        browser.picture(&pictures().join(format!("{name}-{width}-{light:?}.png")));
        browser.script(&format!("{axe}; return true"));
        let found = browser.script("return axe.run().then(it => it.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' ')))");
        assert_eq!(found, serde_json::json!([]), "{name} at {width} px, {light:?}");
    }
    assert_eq!(browser.script("return window.hurt ?? null"), Value::Null, "{name}");
}

#[test]
fn browser_board_by_day_and_night_on_phone_and_desk_with_axe() {
    let Some(browser) = Browser::start() else { return };
    let Some(clients) =
        require_folder("mcp_clients", "BOTTLEWORKS_TEST_MCP", "scripts/test-real installs them")
    else {
        return;
    };
    let axe = read(&clients.join("node_modules/axe-core/axe.min.js"));
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}SUPERVISED_MODE=true\n"));
    person.cast(GOOD, APPROVE);
    person.ok(&["run", "tf"]);
    person.ok(&["new", "other", &HOSTILE.replace('\u{202e}', "")]);
    person.question("other", "CLQ-001", "blocking");
    person.ok(&["new", "third", "Nothing yet"]);
    let server = ServedBoard::start(&person);
    browser.open(&server.url("/workstreams/tf"));
    inspect(&browser, &axe, "login");
    browser.write("#token", &server.token);
    browser.click("button.primary");
    wait_for("the workstream", || browser.url().ends_with("/workstreams/tf").then_some(()));
    inspect(&browser, &axe, "workstream");
    browser.open(&server.url("/"));
    inspect(&browser, &axe, "board");
    // The page renews itself: a third workstream asks something.
    person.question("third", "CLQ-002", "blocking");
    browser.wait_for_text("main", "CLQ-002");
    browser.write("#answer-CLQ-002", "in words");
    browser.click("form[action='/workstreams/third/answer'] button");
    browser.wait_for_text(".notice.good", "Answered");
    browser.open(&server.url("/"));
    browser.click("form[action='/workstreams/tf/accept'] button");
    browser.wait_for_text(".notice.good", "Accepted");
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    assert_eq!(browser.complaints(), [""; 0], "nothing was forbidden and nothing failed");
}
