//! Takes out of a recorded output what differs from run to run, on both sides of a comparison.

use testkit::hermetic::redact_snapshot;

/// Masks hashes, dates, run names, durations, sizes, ports and runs of blanks.
pub(crate) fn mask(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !is_progress(line))
        .map(|line| mask_line(&redact_snapshot(line)));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// A slow machine says how far a step is, a fast one has no time for it: `still merging, 2 s so far`, `learning: 3 of 9 merges`.
fn is_progress(line: &str) -> bool {
    let count = line.rsplit_once(": ").map(|(_, count)| count.split(' ').collect::<Vec<_>>());
    let is_count = count.is_some_and(|words| match words.as_slice() {
        [done, "of", all, _] => is_number(done) && is_number(all),
        _ => false,
    });
    is_count || line.ends_with(" s so far")
}

fn mask_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut masked: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let unit = words.get(at + 1).map(|next| next.trim_end_matches([',', '.', ')', ';']));
        let is_measured = unit.is_some_and(|unit| UNITS.contains(&unit));
        masked.push(if is_measured && is_number(word) {
            "[N]".to_owned()
        } else {
            mask_word(word)
        });
    }
    masked.join(" ")
}

/// Units of what is measured and not counted.
const UNITS: &[&str] = &["s", "ms", "min", "h", "KiB", "MiB", "GiB", "kB", "MB", "GB", "bytes"];

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '<'))
}

/// Masks a time of day, the port of a loopback address and the random end of a temporary name.
fn mask_word(word: &str) -> String {
    let is_clock = |part: &str| {
        matches!(part.len(), 5 | 8)
            && part.chars().enumerate().all(|(at, c)| match at % 3 {
                2 => c == ':',
                _ => c.is_ascii_digit(),
            })
    };
    let is_date = |part: &str| {
        part.len() == 10
            && part.chars().enumerate().all(|(at, c)| match at {
                4 | 7 => c == '-',
                _ => c.is_ascii_digit(),
            })
    };
    let bare = word.trim_end_matches([',', '.', ')', ';']);
    if is_clock(bare) || is_date(bare) {
        return word.replace(bare, "[TIME]");
    }
    let word = mask_run_of_wf(word);
    match word.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}127.0.0.1:[PORT]{rest}")
        }
        None => word,
    }
}

/// Masks `20261116-160749` at the start of a run's name.
fn mask_run_of_wf(word: &str) -> String {
    let is_stamp = |text: &str| {
        text.len() == 15
            && text.chars().enumerate().all(|(at, c)| match at {
                8 => c == '-',
                _ => c.is_ascii_digit(),
            })
    };
    let parts = word.split('/').map(|part| match part.split_once('_') {
        Some((stamp, rest)) if is_stamp(stamp) => format!("[STAMP]_{rest}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn only_what_differs_is_masked() {
    let check = |text: &str, expected: &str| assert_eq!(mask(text), expected, "{text}");
    check("took 0.4 s, 3 files", "took [N] s, 3 files");
    check("at  2026-11-16 09:05, 12 tests", "at [TIME] [TIME], 12 tests");
    check("http://127.0.0.1:8473/api", "http://127.0.0.1:[PORT]/api");
    check(
        "> merging\n  still merging, 2 s so far\n  learning: 3 of 9 merges\ndone",
        "> merging\ndone",
    );
    check("Run: /runs/20261116-160749_app_w_none", "Run: /runs/[STAMP]_app_w_none");
    check("branch at 94c92b379ac3 on origin\n\n", "branch at [SHA] on origin");
}
