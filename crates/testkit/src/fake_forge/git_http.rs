//! Git over HTTP, as a forge serves a private repository: nothing without the token, with git's own server behind it.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use base64ct::{Base64, Encoding};

use crate::http::Request;
use crate::program;

const REFUSED: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"forge\"\r\ncontent-length: 0\r\n\r\n";

/// Answers a request below the repository's address; `rest` is the path behind it.
pub(super) fn answer(dir: &Path, rest: &str, token: &str, request: &Request) -> Vec<u8> {
    if !is_authorized(request, token) {
        return REFUSED.to_vec();
    }
    let mut command = program::command("git");
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    command
        .arg("http-backend")
        .env("PATH", program::SYSTEM_PATH)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", dir)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "bot")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", rest)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("git's server");
    let mut stdin = child.stdin.take().expect("its input");
    let body = request.body.clone();
    // It may answer before it has read everything.
    let writer = std::thread::spawn(move || stdin.write_all(&body));
    let output = child.wait_with_output().expect("its answer").stdout;
    drop(writer.join());
    render(&output)
}

/// The token in each of the forms in which forges take it.
fn is_authorized(request: &Request, token: &str) -> bool {
    let Some(value) = request.header("authorization") else { return false };
    let pair = |user: &str| {
        format!("Basic {}", Base64::encode_string(format!("{user}:{token}").as_bytes()))
    };
    value == format!("token {token}")
        || ["x-access-token", "oauth2"].map(pair).iter().any(|it| it == value)
}

/// The answer of a program behind a server, as the server sends it.
fn render(output: &[u8]) -> Vec<u8> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer of git's");
    let (head, body) = (String::from_utf8_lossy(&output[..end]), &output[end + 4..]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let headers = head.lines().filter(|line| !line.starts_with("Status: "));
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for line in headers {
        text.push_str(&format!("{line}\r\n"));
    }
    [text.as_bytes(), b"\r\n", body].concat()
}
