//! Whole answers of the page and the API, with what differs from run to run struck out.

mod bottles;
mod documents;
mod pages;
mod problems;

use super::stage::Answer;

/// Takes ages, bidirectional marks and escapes out of a text.
fn settle(text: &str) -> String {
    let text =
        text.replace('\u{202e}', "[RLO]").replace('\u{1b}', "[ESC]").replace('\u{202f}', " ");
    let text = testkit::redact_snapshot(&text).replace("moments", "0 min");
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 1..words.len() {
            if words[at].starts_with("min") && words[at - 1].parse::<u32>().is_ok() {
                words[at - 1] = "N";
            }
        }
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Visible text of a page: texts between tags, one on each line. Hostile texts are for another test.
fn read(answer: &Answer) -> String {
    let mut texts = vec![format!("status: {}", answer.status.as_u16())];
    let mut rest = answer.text.as_str();
    while let Some(at) = rest.find('<') {
        let text = rest[..at].trim();
        if !text.is_empty() && !text.contains("alert(") {
            texts.push(text.to_owned());
        }
        rest = rest[at..].split_once('>').map_or("", |(_, rest)| rest);
    }
    settle(&texts.join("\n"))
}

/// The JSON of an answer, without what a stranger wrote.
fn document(answer: &Answer) -> String {
    let mut value = answer.json();
    if let Some(map) = value.as_object_mut() {
        // Runs have documents of their own.
        map.remove("run_summaries");
    }
    let text = serde_json::to_string_pretty(&value).expect("it renders");
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("alert(")).collect();
    format!("status: {}\n{}", answer.status.as_u16(), settle(&lines.join("\n")))
}

fn headers(answer: &Answer) -> String {
    let line = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        format!("{name}: {}", value.to_str().unwrap_or_default())
    };
    let mut lines: Vec<String> = answer.headers.iter().map(line).collect();
    lines.sort();
    format!("status: {}\n{}", answer.status.as_u16(), lines.join("\n"))
}
