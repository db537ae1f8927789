//! `forge`: the sidecar's methods for shells, and for agents without other tools.
//!
//! It contains no forge client and no token: it sends one call to the socket in the box and prints the response.

mod talk;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

use crate::complain;
use talk::{Failed, SidecarAddress};

/// Name of the program in this role, and its first argument otherwise.
pub(crate) const ROLE: &str = guest::FORGE_COMMAND;

const USAGE: &str = "usage: forge [--socket PATH | --address HOST:PORT] COMMAND
  read-issue NUMBER                 print an issue
  read-pr NUMBER                    print a pull request
  comments NUMBER                   print a conversation, reviews included
  attachments                       list the files of the assigned issue
  attachment NAME                   print such a file as it is: forge attachment NAME > FILE
  comment NUMBER [TEXT]             comment on the assigned issue or its pull request
  reply NUMBER REMARK [--resolve] [TEXT]
                                    answer a remark of a review in its thread, and resolve that thread
  describe NUMBER [TEXT]            replace the body of the assigned issue or its pull request
  done success|failure|blocked [SUMMARY]
Without TEXT or SUMMARY, or with -, it is read from standard input. Where issues and pull requests are numbered
apart, write #3 for an issue and !3 for a pull request.";

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_REFUSED: u8 = 3;

/// Limit on standard input, well above the sidecar's own.
const STDIN_MAX_BYTES: u64 = 1024 * 1024;

/// Sends one call and returns the status.
pub(crate) fn run(args: &[OsString]) -> u8 {
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if matches!(words.as_slice(), ["--help" | "-h" | "help"]) {
        return print(USAGE);
    }
    let (way, rest) = match words.as_slice() {
        ["--socket", path, rest @ ..] => (SidecarAddress::Socket(PathBuf::from(path)), rest),
        ["--address", address, rest @ ..] => (SidecarAddress::Address((*address).to_owned()), rest),
        rest => (SidecarAddress::Socket(guest::forge_socket()), rest),
    };
    match read_call(rest, read_stdin) {
        Some((method, params)) => {
            let answer = talk::call(&way, method, &params);
            match (method, answer) {
                ("read_attachment", Ok(file)) => print_file(&file),
                (_, answer) => report(answer),
            }
        }
        None => complain(USAGE, EXIT_USAGE),
    }
}

/// Parses the method and its parameters; `None` if the arguments are not a call. `-` in the place of a text
/// means `stdin`.
fn read_call(
    words: &[&str],
    stdin: impl FnOnce() -> Option<String>,
) -> Option<(&'static str, Value)> {
    let text = |rest: &[&str]| match rest {
        [] | ["-"] => stdin(),
        words => Some(words.join(" ")),
    };
    Some(match words {
        ["read-issue", number] => ("read_issue", json!({ "number": plain_number(number)? })),
        ["read-pr", number] => ("read_pr", json!({ "number": plain_number(number)? })),
        ["attachments"] => ("list_attachments", json!({})),
        ["attachment", name] => ("read_attachment", json!({ "name": name })),
        ["comments", thread] => ("read_comments", read_thread(thread)?),
        [verb @ ("comment" | "describe"), thread, rest @ ..] => {
            let mut params = read_thread(thread)?;
            params["body"] = json!(text(rest)?);
            (if *verb == "comment" { "post_comment" } else { "update_description" }, params)
        }
        ["reply", thread, remark, rest @ ..] => {
            let (resolve, rest) = match rest {
                ["--resolve", rest @ ..] => (true, rest),
                rest => (false, rest),
            };
            let mut params = read_thread(thread)?;
            params["reply_to"] = json!(plain_number(remark)?);
            params["resolve"] = json!(resolve);
            params["body"] = json!(text(rest)?);
            ("post_comment", params)
        }
        ["done", status, rest @ ..] => {
            ("signal_done", json!({ "status": status, "summary": text(rest)? }))
        }
        _ => return None,
    })
}

fn read_thread(word: &str) -> Option<Value> {
    let number = plain_number(word)?;
    Some(match word.chars().next() {
        Some('#') => json!({ "number": number, "kind": "issue" }),
        Some('!') => json!({ "number": number, "kind": "pull_request" }),
        Some(_) | None => json!({ "number": number }),
    })
}

fn plain_number(word: &str) -> Option<u64> {
    word.trim_start_matches(['#', '!']).parse().ok()
}

fn read_stdin() -> Option<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(STDIN_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn report(answer: Result<Value, Failed>) -> u8 {
    match answer {
        Ok(result) => print(&serde_json::to_string_pretty(&result).unwrap_or_default()),
        Err(Failed::Refused(why)) => complain(why, EXIT_REFUSED),
        Err(Failed::Other(why)) => complain(why, EXIT_FAILED),
    }
}

/// Prints the bytes of an attachment and nothing else.
fn print_file(file: &Value) -> u8 {
    let bytes = match (&file["text"], &file["content_base64"]) {
        (Value::String(text), _) => Some(text.clone().into_bytes()),
        (_, Value::String(content)) => Base64::decode_vec(content).ok(),
        _ => None,
    };
    match bytes {
        Some(bytes) => u8::from(std::io::stdout().write_all(&bytes).is_err()),
        None => complain("the answer has no file", EXIT_FAILED),
    }
}

fn print(text: &str) -> u8 {
    u8::from(writeln!(std::io::stdout(), "{text}").is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &[&str], method: &str, params: Value) {
        let read = read_call(words, || Some("from stdin".to_owned()));
        assert_eq!(read, Some((method, params)), "{words:?}");
    }

    #[test]
    fn words_become_calls() {
        check(&["read-issue", "3"], "read_issue", json!({ "number": 3 }));
        check(&["read-pr", "#3"], "read_pr", json!({ "number": 3 }));
        check(&["comments", "!3"], "read_comments", json!({ "number": 3, "kind": "pull_request" }));
        let comment = json!({ "number": 3, "body": "On it." });
        check(&["comment", "3", "On", "it."], "post_comment", comment);
        check(&["attachments"], "list_attachments", json!({}));
        check(&["attachment", "1-a.png"], "read_attachment", json!({ "name": "1-a.png" }));
        let reply = json!({ "number": 4, "reply_to": 9, "resolve": true, "body": "Renamed." });
        check(&["reply", "4", "9", "--resolve", "Renamed."], "post_comment", reply);
        let described = json!({ "number": 3, "kind": "issue", "body": "from stdin" });
        check(&["describe", "#3", "-"], "update_description", described);
        let done = json!({ "status": "success", "summary": "from stdin" });
        check(&["done", "success"], "signal_done", done);
    }

    #[test]
    fn other_words_are_no_call() {
        for words in [&["read-issue"][..], &["read-issue", "x"], &["merge", "3"], &[], &["done"]] {
            assert_eq!(read_call(words, || None), None, "{words:?}");
        }
    }
}
