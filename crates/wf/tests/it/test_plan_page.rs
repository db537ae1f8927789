//! `wf plan --from` with the address of a page: what is read, and what is refused.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::play::{PROFILE, person_with_one};
use crate::support::{ONE, Person, read};

const HTML: &str = "<html><head><title>T</title><script>evil()</script></head><body><h1>Sign in</h1><ul><li>with a key &amp; a name<li>twice</ul><!-- unseen --></body></html>";

/// A server of pages on loopback, for as long as the test runs.
fn pages() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|it| answer(it).unwrap_or(()));
    });
    address
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    lines.map_while(Result::ok).find(String::is_empty);
    let page = |kind: &str, text: &str| format!("200 OK\r\nContent-Type: {kind}\r\n\r\n{text}");
    let to = |place: &str| format!("302 Found\r\nLocation: {place}\r\n\r\n");
    let reply = match first.split(' ').nth(1).unwrap_or_default() {
        "/story" => to("/html"),
        "/html" => page("text/html; charset=utf-8", HTML),
        "/large" => page("text/plain", &"x".repeat(3 << 20)),
        "/pdf" => page("application/pdf", "%PDF"),
        "/cloud" => to("http://169.254.169.254/latest"),
        "/file" => to("file:///etc/passwd"),
        "/round" => to("/round"),
        _ => "403 Forbidden\r\n\r\n".to_owned(),
    };
    write!(stream, "HTTP/1.1 {reply}")
}

#[test]
fn a_page_is_read_as_text_where_its_address_is_permitted() {
    let Some(person) = person_with_one() else { return };
    let address = pages();
    person.profile(&format!("{PROFILE}AGENT_PERMIT_PRIVATE={address}\n"));
    let draft = "{\"commits\": [{\"title\": \"Add a form\", \"acceptance\": [\"it is shown\"]}]}";
    let script = format!(
        "[[step]]\nrun = \"cat /harness-state/run/harness/instructions.txt\"\n[[step]]\nprint = '''{draft}\n'''\n"
    );
    person.cast(&script, &script);
    let said = person.ok(&["plan", "tf", "--from", &format!("http://{address}/story")]);
    assert!(said.contains("Add a form"), "{said}");
    let run = person.runs().into_iter().find(|run| run.to_string_lossy().ends_with("_plan"));
    let files = testkit::tree::entries(&run.expect("a run of the draft"));
    let texts = files.into_iter().filter(|path| path.is_file());
    let told: String = texts.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    assert!(told.contains("# Sign in") && told.contains("with a key & a name"), "{told}");
    assert!(!told.contains("evil") && !told.contains("unseen"), "{told}");
}

#[test]
fn what_is_no_page_or_leads_elsewhere_is_refused() {
    let person = Person::with_plan(ONE);
    let address = pages();
    let profile = format!("MERGE_MODE=local\nAGENT_PERMIT_PRIVATE={address}\n");
    person.profile(&profile);
    for (path, reason) in [
        ("large", "is larger than 2 MiB"),
        ("pdf", "is no page of text but application/pdf"),
        ("cloud", "leads to http://169.254.169.254/latest, which cannot be read"),
        ("file", "it is no http or https address"),
        ("round", "is redirected more than 5 times"),
        ("none", "asks for a login (403)"),
    ] {
        let url = format!("http://{address}/{path}");
        let output = person.wf(&["plan", "tf", "--from", &url]);
        assert_ne!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stderr.contains(reason), "{path}: {}", output.snapshot());
        assert!(output.stderr.contains("wf plan --from -"), "{}", output.snapshot());
    }
    let plan = read(&person.workstream_dir("tf").join("plan.md"));
    assert_eq!(plan, ONE);
}

#[test]
fn an_address_that_is_not_public_is_refused_before_anything_is_asked() {
    let person = Person::with_plan(ONE);
    let address = pages();
    let port = address.port();
    for url in [
        format!("http://{address}/html"),
        format!("http://localhost:{port}/html"),
        format!("http://[::1]:{port}/html"),
        "http://2130706433/html".to_owned(),
        "http://169.254.169.254/latest".to_owned(),
        "http://localhost/html".to_owned(),
        "https://ada:secret@example.com/".to_owned(),
    ] {
        let output = person.wf(&["plan", "tf", "--from", &url]);
        assert_eq!(output.status, Some(2), "{url}: {}", output.snapshot());
        assert!(!output.stderr.contains("secret"), "{}", output.snapshot());
    }
    assert!(person.runs().is_empty());
}
