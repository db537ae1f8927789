//! Text of a pull request, in the order of a reviewer's questions. Text from elsewhere is inert in it.

use engine::evidence::NewCommit;
use forge::{BODY_MAX_BYTES, NewPull};
use merge::account::SideStatus;
use merge::contract::{ContractFormat, render_contract};
use model::id::BranchName;
use model::inert::{inert_block, inert_cell, inert_code, inert_html, inert_line, inert_prose};

use super::agent_note::notes_of;
use super::conflict_row::{ConflictRow, conflict_rows};
use super::point_group::{PointLine, point_sections};
use super::review::{ReviewPoint, review_points};
use super::run_facts::run_facts;
use super::section::{Importance, Section, render_sections};
use super::security::advisory::AdvisoryId;
use super::security::fix::FixRecord;
use super::strategy::Strategy;
use super::target::Target;
use super::words::counted;
use crate::commands::run_args::AgentWhen;
use crate::flow::record::ForkRunRecord;

/// Commits and other items of a list; more are counted.
const LISTED: usize = 50;

/// Points and conflicts; more are counted.
const ROWS: usize = 200;

/// Lines of a contract above which it is folded.
const UNFOLDED_LINES: usize = 12;

/// Characters of one text from elsewhere.
const TEXT_CHARS: usize = 600;

/// Characters of the agent's answer.
const ANSWER_CHARS: usize = 6000;

/// Columns of the agent's answer, which stands in a code block.
const ANSWER_COLUMNS: usize = 100;

/// Marks a pull request of forklift, also after edits.
pub(crate) const MARK: &str = "<!-- forklift -->";

/// Marks the kind of a pull request: an update, or the fix that it lands. Only one of the same kind takes its place.
pub(crate) fn kind_mark(fix: Option<&AdvisoryId>) -> String {
    match fix {
        Some(fix) => format!("<!-- forklift: fix {} -->", fix.as_str()),
        None => "<!-- forklift: update -->".to_owned(),
    }
}

/// Facts about a run beside its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForkPullFacts<'a> {
    pub(crate) record: &'a ForkRunRecord,
    pub(crate) head: &'a BranchName,
    /// Commits of upstream that the fork lacks.
    pub(crate) incoming: &'a [NewCommit],
    /// The run's directory, as the user knows it.
    pub(crate) run_path: &'a str,
}

/// Renders title and body of the pull request.
pub(crate) fn render_pull(facts: &ForkPullFacts<'_>) -> NewPull {
    let ForkPullFacts { record, head, incoming, .. } = *facts;
    let branch = &record.fork.branch;
    let theirs = record.fork.upstream_branch();
    let what = match &record.settings.target {
        Target::Tip => {
            format!("{} at {}", inert_line(theirs.as_str()), record.pins.upstream.short())
        }
        Target::LatestTag | Target::Named(_) => inert_line(&cut(&record.settings.target_name)),
    };
    let verb = match record.settings.strategy {
        Strategy::Merge => "Merge upstream",
        Strategy::Rebase => "Rebase onto upstream",
    };
    let title = match &record.fix {
        Some(fix) => cut(&fix.request.title()),
        None => format!("{verb} {what} ({})", counted(incoming.len(), "commit")),
    };
    let rows = conflict_rows(record);
    let mut sections = vec![opening(record, head)];
    sections.extend(review(record));
    sections.extend([
        conflicts(record, &rows),
        hunks(&rows),
        upstream(record, incoming),
        Section {
            title: "How it was made and checked",
            head: run_facts(record),
            ..Section::default()
        },
    ]);
    sections.extend(agent_notes(record, &rows));
    sections.extend(fork_changes(record));
    sections.extend(answer(record));
    let run = format!("Run {} in {}.", inert_code(record.run.as_str()), inert_code(facts.run_path));
    sections.push(Section { head: run, ..Section::default() });
    let body = render_sections(sections, BODY_MAX_BYTES);
    NewPull { title, body, head: head.clone(), base: branch.clone(), draft: false }
}

fn opening(record: &ForkRunRecord, head: &BranchName) -> Section {
    let (branch, head) = (inert_code(record.fork.branch.as_str()), inert_code(head.as_str()));
    let has_receipts = record.resolver.iter().any(|resolver| !resolver.receipts.is_empty());
    let by = match (record.merged_alone, has_receipts) {
        (false, _) => format!("{} in a sealed box", inert_code(&record.settings.provider)),
        (true, true) => "git, the fork's rules and its past, without an agent".to_owned(),
        (true, false) => "git alone, without an agent".to_owned(),
    };
    let mark = format!("{MARK} {}", kind_mark(record.fix_id()));
    if let Some(fix) = &record.fix {
        let head = format!("{mark}\n\n{}", fix_text(fix, &branch, &by));
        return Section { head, ..Section::default() };
    }
    let mut text = format!(
        "{mark}\n\nBrings {branch} up to date with upstream `{}`. Made by {by}; judged by the host against the commits it \
         pinned before the run.\n",
        record.pins.upstream
    );
    if record.settings.strategy == Strategy::Rebase {
        // A rebased branch and the old one share no commits of the fork: merging them would double its history.
        text.push_str(&format!(
            "\n**This is a rebase.** Do not merge it with the button: after the review, replace {branch} by {head} with \
             `git push --force-with-lease`.\n"
        ));
    }
    Section { head: text, ..Section::default() }
}

/// The fix that is landed and its source.
fn fix_text(fix: &FixRecord, branch: &str, by: &str) -> String {
    let FixRecord { request, fork_tip, .. } = fix;
    let names = [&request.id].into_iter().chain(&request.aliases);
    let names: Vec<String> = names.map(|id| inert_code(id.as_str())).collect();
    let commits = request.commits.iter().map(|commit| format!("`{commit}`"));
    let commits: Vec<String> = commits.collect();
    format!(
        "Lands one security fix of upstream in {branch}, and nothing else of upstream.\n\n\
         - fix: {}\n- severity: {}\n- known from: {}\n- commits of upstream: {}\n- on top of: `{fork_tip}`\n- result: {}\n\n\
         Made by {by}; judged by the host against the commits it pinned before the run. Upstream's state before the fix \
         stands for the common ancestor, so the accounts below are about the fix alone.\n",
        names.join(", "),
        request.severity,
        inert_prose(&cut(&request.source)),
        commits.join(", "),
        fix.verdict(),
    )
}

fn review(record: &ForkRunRecord) -> Vec<Section> {
    let points = review_points(record);
    let lines = points.iter().map(|point| PointLine::new(point, render_point(point)));
    let mut sections = point_sections(lines.collect());
    if points.is_empty() {
        let nothing = "Nothing: the result has the changes of both sides, but for what the fork's rules leave out, and the \
                       agent decided nothing.\n";
        sections[0].head = nothing.to_owned();
    }
    sections
}

pub(super) fn render_point(point: &ReviewPoint) -> String {
    let what = inert_prose(&cut(&point.what));
    match &point.path {
        Some(path) => format!("- {}: {what}\n", inert_code(&cut(path))),
        None => format!("- {what}\n"),
    }
}

fn conflicts(record: &ForkRunRecord, rows: &[ConflictRow]) -> Section {
    let head = if !rows.is_empty() {
        "| path | conflict | decided by | result | sure |\n|---|---|---|---|---|\n"
    } else if record.account.is_some() {
        "None: git merges the two sides without a conflict.\n"
    } else if record.settings.agent_when == AgentWhen::Always {
        "Not known: the agent was started before anything else was tried.\n"
    } else {
        "None was found.\n"
    };
    let section = Section {
        title: "Conflicts",
        head: head.to_owned(),
        items: rows.iter().map(render_row).collect(),
        noun: "conflicts",
        importance: Importance::Conflicts,
        ..Section::default()
    };
    section.at_most(ROWS)
}

pub(super) fn render_row(row: &ConflictRow) -> String {
    let sure = row.confidence.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0));
    format!(
        "| {} | {} | {} | {} | {sure} |\n",
        inert_cell(&cut(&row.path)),
        inert_prose(&row.kind),
        row.decider.render(),
        row.result.unwrap_or("unknown"),
    )
}

/// The versions of both sides and the result of each conflict, folded.
fn hunks(rows: &[ConflictRow]) -> Section {
    let fold = |row: &ConflictRow| {
        format!(
            "<details><summary>{}</summary>\n\n{}\n\n</details>\n\n",
            inert_html(&cut(&row.path)),
            inert_block(row.hunk.trim_end())
        )
    };
    let rows = rows.iter().filter(|row| !row.hunk.is_empty());
    Section {
        items: rows.map(fold).collect(),
        noun: "conflicts, whose versions are in the record of the run",
        importance: Importance::Hunks,
        ..Section::default()
    }
}

fn upstream(record: &ForkRunRecord, incoming: &[NewCommit]) -> Section {
    let item = |commit: &NewCommit| {
        format!("- `{}` {}\n", commit.sha.short(), inert_code(&cut(&commit.subject)))
    };
    let changes = record.account.iter().flat_map(|account| &account.upstream.changes);
    let left_out: Vec<String> = changes
        .filter(|change| change.status == SideStatus::DroppedByRule)
        .map(|change| {
            let reason = change.reason.as_ref().map_or("a rule", |reason| reason.text.as_str());
            let path = inert_code(&cut(&change.path.to_string()));
            format!("- {path}, by {}\n", inert_prose(&cut(reason)))
        })
        .collect();
    let tail = match left_out.as_slice() {
        [] => String::new(),
        paths => {
            let more = paths.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("- … and {more} more\n") } else { String::new() };
            let shown: String = paths.iter().take(LISTED).map(String::as_str).collect();
            format!("\nLeft out of it by the fork's rules and earlier merges:\n\n{shown}{more}")
        }
    };
    let section = Section {
        title: "What comes from upstream",
        items: incoming.iter().map(item).collect(),
        tail,
        noun: "commits",
        importance: Importance::Incoming,
        ..Section::default()
    };
    section.at_most(LISTED)
}

/// The account of the fork's own changes, folded if it is long.
fn fork_changes(record: &ForkRunRecord) -> Option<Section> {
    let contract = render_contract(record.contract.as_ref()?, ContractFormat::Markdown);
    let is_long = contract.lines().count() > UNFOLDED_LINES;
    let item = match contract.split_once('\n').filter(|_| is_long) {
        Some((sum, rows)) => {
            format!("{sum}\n\n<details><summary>All of it</summary>\n{rows}\n</details>\n")
        }
        None => contract,
    };
    Some(Section {
        title: "What became of the fork's own changes",
        items: vec![item],
        noun: "account, which is in the record of the run",
        importance: Importance::ForkChanges,
        ..Section::default()
    })
}

/// The agent's notes on the conflicts that it resolved.
fn agent_notes(record: &ForkRunRecord, rows: &[ConflictRow]) -> Option<Section> {
    let answer = record.agent_result.as_ref()?.answer.as_deref()?;
    let notes = notes_of(rows, answer);
    let item = |(path, note): (&str, Option<&str>)| {
        let note = note.map_or("no note".to_owned(), |note| inert_prose(&cut(note)));
        format!("- {}: {note}\n", inert_code(&cut(path)))
    };
    let section = Section {
        title: "What the agent notes on each conflict (claims, not evidence)",
        items: notes.into_iter().map(item).collect(),
        noun: "notes",
        importance: Importance::Answer,
        ..Section::default()
    };
    (!section.items.is_empty()).then(|| section.at_most(ROWS))
}

fn answer(record: &ForkRunRecord) -> Option<Section> {
    let answer = record.agent_result.as_ref()?.answer.as_deref()?.trim();
    if answer.is_empty() {
        return None;
    }
    let length = answer.chars().count();
    let shown: String = answer.chars().take(ANSWER_CHARS).collect();
    let mut item = inert_block(&wrap(&shown, ANSWER_COLUMNS)) + "\n";
    if length > ANSWER_CHARS {
        item.push_str(&format!("\n… and {} more characters.\n", length - ANSWER_CHARS));
    }
    Some(Section {
        title: "What the agent says (a claim, not evidence)",
        items: vec![item],
        noun: "answer, which is in the record of the run",
        importance: Importance::Answer,
        ..Section::default()
    })
}

/// Breaks lines at blanks, as code blocks do not. A word that is too long stays whole.
fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.lines() {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.chars().count();
            if column > 0 && column + length > columns {
                wrapped.push('\n');
                column = 0;
            }
            wrapped.push_str(word);
            column += length;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// The beginning of a long text.
pub(super) fn cut(text: &str) -> String {
    if text.chars().count() <= TEXT_CHARS {
        return text.to_owned();
    }
    text.chars().take(TEXT_CHARS).chain(['…']).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use merge::account::{ConflictAccount, ConflictResolution, MergeAccount};
    use merge::clean::ConflictKind;
    use merge::path::TreePath;
    use model::id::Sha;
    use serde_json::{Value, json};

    use super::*;

    const NASTY: &str = "Fixes #12, GH-3 and https://git.example/a/b/issues/3, thanks @victim ![x](https://evil.example/p.png) \
                         <img src=x> &commat;victim ` `` ``` | ~l %m $1 &1 !7 [a](b)";

    /// The record of a run whose agent merged, as an earlier version wrote it, with these fields changed.
    pub(in crate::rules) fn record(changes: &Value) -> ForkRunRecord {
        let sha = |digit: &str| digit.repeat(40);
        let mut value = json!({
            "version": 2, "run": "fork_20260102_030405", "phase": "checked", "started_at": "2026-01-02T03:04:05Z",
            "finished_at": null, "workspace": null,
            "box": {
                "ended": {"kind": "exited", "code": 0}, "backend": "bwrap", "started_at": "2026-01-02T03:04:05Z",
                "finished_at": "2026-01-02T03:14:05Z", "ready_ms": 9, "wall_ms": 600_000, "report": null,
                "output_bytes": 0, "dropped_bytes": 0, "peak_memory_bytes": null,
            },
            "evidence": {
                "tip": sha("c"), "upstream_reachable": true, "base_reachable": true, "new_commits": [],
                "files_changed": 1, "files_made": [], "links_leaving": [], "gitlinks_made": [], "markers_left": [],
                "oversize": [], "foreign_identities": [],
            },
            "import_refused": null, "verdict": {"kind": "publish"}, "publication": null, "exit_status": null,
            "operations_head": null, "stuck": null,
            "fork": {
                "path": "/fork", "origin": "o", "upstream": "u", "branch": "main", "forge": "o",
            },
            "pins": {"base": sha("a"), "upstream": sha("b")},
            "settings": {
                "provider": "codex", "backend": "bwrap", "backend_reason": "", "image": null, "timeout_secs": 480,
                "agent_when": "conflict", "accept_loss": false,
            },
        });
        merge_values(&mut value, changes);
        serde_json::from_value(value).expect("a record")
    }

    fn merge_values(value: &mut Value, changes: &Value) {
        match (value, changes) {
            (Value::Object(fields), Value::Object(changes)) => {
                for (name, change) in changes {
                    merge_values(fields.entry(name.clone()).or_insert(Value::Null), change);
                }
            }
            (value, change) => *value = change.clone(),
        }
    }

    pub(in crate::rules) fn pull(record: &ForkRunRecord, subjects: &[&str]) -> NewPull {
        let commit = |subject: &&str| NewCommit {
            sha: Sha::parse(&"d".repeat(40)).expect("legal"),
            subject: (*subject).to_owned(),
            parents: 1,
        };
        let incoming: Vec<NewCommit> = subjects.iter().map(commit).collect();
        let head = BranchName::parse("forklift/fork_20260102_030405").expect("legal");
        render_pull(&ForkPullFacts {
            record,
            head: &head,
            incoming: &incoming,
            run_path: "~/runs/x",
        })
    }

    pub(in crate::rules) fn conflict(path: &str, hunk: &str) -> ConflictAccount {
        ConflictAccount {
            path: TreePath::new(path),
            kind: ConflictKind::Content,
            resolution: ConflictResolution::New,
            hunk: hunk.to_owned(),
        }
    }

    #[test]
    fn where_nobody_tried_to_merge_nothing_is_said_about_git() {
        let always = json!({"settings": {"agent_when": "always"}});
        let mut record = record(&always);
        assert!(pull(&record, &[]).body.contains("### Conflicts\n\nNot known:"));
        record.account = Some(MergeAccount::default());
        assert!(pull(&record, &[]).body.contains("git merges the two sides without a conflict"));
        let conflicts = vec![conflict("a.txt", "")];
        record.account = Some(MergeAccount { conflicts, ..MergeAccount::default() });
        let body = pull(&record, &[]).body;
        assert!(body.contains("| `a.txt` | content | agent | new | – |"), "{body}");
        assert!(
            body.contains("### Needs a look\n\n- `a.txt`: conflict decided by the agent (new)"),
            "{body}"
        );
    }

    #[test]
    fn what_is_not_known_is_said_and_what_is_known_is_counted() {
        let body = pull(&record(&json!({})), &[]).body;
        for words in [
            "model: unknown",
            "tokens: unknown",
            "cost: unknown",
            "time: 10 minutes",
            "check: none is set",
        ] {
            assert!(body.contains(words), "{words}: {body}");
        }
        let agent = json!({
            "claim": {"kind": "finished"}, "answer": null, "session": null, "tool_calls": 1, "input_tokens": 5,
            "output_tokens": 6, "cost_usd": 0.125,
        });
        let usage = json!({
            "requests": 2, "input": 10, "output": 7, "cache_read": 5, "cache_write": 0, "usd": 1.5, "estimated": 0,
            "cap_hit": null, "waiting_until": null, "by_status": {},
        });
        let mut record = record(&json!({"agent_result": agent, "settings": {"model": "gpt-5"}}));
        let body = pull(&record, &[]).body;
        for words in
            ["model: `gpt-5`", "5 read, 6 written, by the agent's", "0.12 dollars, by the agent's"]
        {
            assert!(body.contains(words), "{words}: {body}");
        }
        let exit = record.agent_box.as_mut().expect("a box");
        exit.egress = Some(egress::EgressReport {
            summary: egress::EgressSummary::default(),
            usage: serde_json::from_value(usage).expect("usage"),
        });
        let body = pull(&record, &[]).body;
        assert!(
            body.contains("15 read, 7 written\n") && body.contains("cost: 1.50 dollars\n"),
            "{body}"
        );
    }

    #[test]
    fn nothing_of_others_acts_wherever_it_stands() {
        let agent = json!({
            "claim": {"kind": "finished"}, "answer": format!("{NASTY}\n/merge\n```\n{NASTY}"), "session": null,
            "tool_calls": 1, "input_tokens": 0, "output_tokens": 0, "cost_usd": null,
        });
        let check = json!({"command": NASTY, "ended": {"kind": "exited", "code": 0}, "wall_ms": 1, "tail": NASTY});
        let contract = json!({
            "commits": [{"sha": "e".repeat(40), "subject": NASTY, "state": "lost"}],
            "paths": [{"path": NASTY, "state": "changed", "detail": NASTY}], "lost": true,
        });
        let mut record = record(&json!({
            "agent_result": agent, "check": check, "contract": contract,
            "conflicts": [format!("{NASTY} (content)")],
            "evidence": {"files_made": [NASTY], "foreign_identities": [NASTY]},
            "settings": {"target_name": NASTY, "target": "latest-tag", "provider": NASTY, "model": NASTY},
        }));
        let conflicts = vec![conflict(NASTY, &format!("/merge\n```\n{NASTY}\n````\n"))];
        let with_account = MergeAccount { conflicts, ..MergeAccount::default() };
        for account in [None, Some(with_account)] {
            record.account = account;
            let NewPull { title, body, .. } = pull(&record, &[NASTY, "/close", "closes ABC-1"]);
            for text in [&title, &body] {
                for live in ["#12", "GH-3", "://", "!7", "ABC-1", "\n/merge", "\n/close"] {
                    assert!(!text.contains(live), "{live}: {text}");
                }
            }
            let outside = format!("{title}\n{}", outside_code(&body));
            for live in ["@victim", "![", "](", "<img", "&commat;", "~l", "%m", "$1", "&1"] {
                assert!(!outside.contains(live), "{live}: {outside}");
            }
        }
    }

    /// A page without its code spans and code blocks, as Markdown reads it.
    fn outside_code(page: &str) -> String {
        let mut outside = String::new();
        let mut fence: Option<String> = None;
        for line in page.lines() {
            let run: String = line.chars().take_while(|c| *c == '`').collect();
            match &fence {
                Some(open) if line == open => fence = None,
                Some(_) => {}
                None if run.len() > 2 && !line[run.len()..].contains('`') => fence = Some(run),
                None => outside.push_str(&(without_spans(line) + "\n")),
            }
        }
        assert_eq!(fence, None, "a code block is open: {page}");
        outside
    }

    fn without_spans(line: &str) -> String {
        let mut rest = line;
        let mut outside = String::new();
        while let Some(start) = rest.find('`') {
            let length = rest[start..].chars().take_while(|c| *c == '`').count();
            outside.push_str(&rest[..start]);
            let inside = &rest[start + length..];
            if outside.ends_with('\\') {
                rest = inside;
                continue;
            }
            let mut at = 0;
            let end = loop {
                let Some(found) = inside[at..].find('`').map(|found| at + found) else {
                    break None;
                };
                let run = inside[found..].chars().take_while(|c| *c == '`').count();
                if run == length {
                    break Some(found + run);
                }
                at = found + run;
            };
            let end = end.unwrap_or_else(|| panic!("a code span is open: {line}"));
            rest = &inside[end..];
        }
        outside + rest
    }

    #[test]
    fn the_text_fits_every_forge_however_large_the_merge_is() {
        let hunk = "some line of code\n".repeat(300);
        let conflicts =
            (0..3000).map(|n| conflict(&format!("{}/{n}", "dir/".repeat(900)), &hunk)).collect();
        let paths: Vec<Value> = (0..3000)
            .map(|n| json!({"path": format!("{n}/{}", "#1".repeat(2000)), "state": "lost", "detail": "@x".repeat(500)}))
            .collect();
        let contract = json!({"commits": [], "paths": paths, "lost": true});
        let agent = json!({
            "claim": {"kind": "finished"}, "answer": "#1 ".repeat(50_000), "session": null, "tool_calls": 1,
            "input_tokens": 0, "output_tokens": 0, "cost_usd": null,
        });
        let mut record = record(&json!({"contract": contract, "agent_result": agent}));
        record.account = Some(MergeAccount { conflicts, ..MergeAccount::default() });
        let subjects = vec!["#1 ".repeat(1000); 4000];
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        let NewPull { title, body, .. } = pull(&record, &subjects);
        assert!(body.len() <= BODY_MAX_BYTES && title.len() < 255, "{}", body.len());
        let head =
            "### Needs a look\n\n6000 points: 3000 to read one by one, and 3000 folded below";
        assert!(body.contains(head) && body.contains("\n- `0/"), "{body}");
        assert!(body.contains("more points.") && body.contains("more conflicts"), "{body}");
    }
}
