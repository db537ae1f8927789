//! The words of a pull request: what a reviewer has to know, in the order in which they will ask.

use std::collections::{BTreeMap, BTreeSet};

use merge::path::TreePath;
use merge::resolver::receipt::Receipt;

use super::strategy::Strategy;
use super::target::Target;
use crate::flow::record::ForkRunRecord;
use crate::flow::resolver::ResolverSummary;

/// Commits that are listed; more are counted.
const LISTED: usize = 50;

/// Marks a pull request as one of ours, whoever edits its text.
pub(crate) const MARK: &str = "<!-- forklift -->";

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullText {
    pub(crate) title: String,
    pub(crate) body: String,
}

/// A commit that comes from upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) sha: String,
    pub(crate) subject: String,
}

/// Renders title and body. Everything that came from elsewhere is quoted as plain text.
pub(crate) fn render_pull(
    meta: &ForkRunRecord,
    incoming: &[Incoming],
    contract: Option<&str>,
) -> PullText {
    let branch = &meta.fork.branch;
    let what = match &meta.settings.target {
        Target::Tip => format!("{branch} at {}", meta.pins.upstream.short()),
        Target::LatestTag | Target::Named(_) => plain(&meta.settings.target_name),
    };
    let verb = match meta.settings.strategy {
        Strategy::Merge => "Merge upstream",
        Strategy::Rebase => "Rebase onto upstream",
    };
    let title = format!("{verb} {what} ({} commits)", incoming.len());
    let mut parts = vec![MARK.to_owned(), opening(meta)];
    parts.extend(rebase_note(meta));
    parts.push(section("What comes from upstream", &commits(incoming)));
    parts.push(section("Conflicts", &conflicts(meta)));
    if let Some(resolver) = &meta.resolver {
        parts.push(section("Resolved without a model", &receipts(resolver)));
        parts.extend(after_the_agent(resolver).map(|text| section("What else was touched", &text)));
    }
    parts.push(section("What was decided here", &decisions(meta)));
    parts.extend(
        contract.map(|contract| section("What became of the fork's own changes", contract)),
    );
    parts.push(section("What the host checked", &checks(meta)));
    if let Some(answer) = meta.agent_result.as_ref().and_then(|agent| agent.answer.as_deref()) {
        parts.push(section("What the agent says (a claim, not evidence)", &quoted(answer)));
    }
    parts.push(format!("Run `{}`.", meta.run));
    PullText { title, body: parts.join("\n\n") + "\n" }
}

fn opening(meta: &ForkRunRecord) -> String {
    let by = match &meta.agent_result {
        Some(_) => format!("`{}` in a sealed box", meta.settings.provider),
        None => "git alone, without an agent".to_owned(),
    };
    format!(
        "Brings `{}` up to date with upstream `{}`. Made by {by}; verified by the host against the commits it pinned \
         before the run.",
        meta.fork.branch, meta.pins.upstream
    )
}

/// A rebased branch and the old one share no commits of the fork's: merging them as they are would double its history.
fn rebase_note(meta: &ForkRunRecord) -> Option<String> {
    let branch = &meta.fork.branch;
    (meta.settings.strategy == Strategy::Rebase).then(|| {
        format!(
            "**This is a rebase.** Do not merge it with the button: after the review, replace `{branch}` by this branch \
             (`git push --force-with-lease origin <this branch>:{branch}`)."
        )
    })
}

fn conflicts(meta: &ForkRunRecord) -> String {
    if meta.conflicts.is_empty() {
        return "None: git could do it alone.".to_owned();
    }
    let shown = |line: &String| format!("- {}", plain(line));
    let mut lines: Vec<String> = meta.conflicts.iter().take(LISTED).map(shown).collect();
    if meta.conflicts.len() > LISTED {
        lines.push(format!("- … and {} more", meta.conflicts.len() - LISTED));
    }
    lines.join("\n")
}

/// Grouped by what was done, most of a kind first; each with how sure it was and what it was learned from.
fn receipts(resolver: &ResolverSummary) -> String {
    if resolver.receipts.is_empty() {
        return "Nothing: every conflict was left to the agent.".to_owned();
    }
    let mut groups: BTreeMap<String, Vec<&Receipt>> = BTreeMap::new();
    for receipt in &resolver.receipts {
        let strategies: BTreeSet<String> =
            receipt.steps.iter().map(|step| step.strategy.to_string()).collect();
        let strategies: Vec<String> = strategies.into_iter().collect();
        let title = format!("{} (by {})", receipt.action.as_str(), strategies.join(", "));
        groups.entry(title).or_default().push(receipt);
    }
    let mut lines = Vec::new();
    for (title, receipts) in groups {
        lines.push(format!("{} files: {title}", receipts.len()));
        lines.push(String::new());
        lines.extend(receipts.iter().take(LISTED).map(|receipt| receipt_line(receipt)));
        if receipts.len() > LISTED {
            lines.push(format!("- … and {} more", receipts.len() - LISTED));
        }
        lines.push(String::new());
    }
    lines.join("\n").trim_end().to_owned()
}

fn receipt_line(receipt: &Receipt) -> String {
    let learned: BTreeSet<String> = receipt
        .steps
        .iter()
        .filter_map(|step| step.learned_from.as_ref())
        .map(|merge| format!("`{}`", merge.short()))
        .collect();
    let learned: Vec<String> = learned.into_iter().take(3).collect();
    let from = match learned.is_empty() {
        true => String::new(),
        false => format!(", as in {}", learned.join(", ")),
    };
    let programs: BTreeSet<String> = receipt
        .steps
        .iter()
        .filter_map(|step| step.program.as_deref())
        .map(|program| format!(", with `{}`", one_line(program)))
        .collect();
    let with: String = programs.into_iter().collect();
    let sure = (receipt.confidence * 100.0).round();
    format!(
        "- `{}`: {} ({sure} % sure{from}{with})",
        path_text(&receipt.path.to_string()),
        receipt.kind.as_str()
    )
}

/// What the agent did beside what was left to it.
fn after_the_agent(resolver: &ResolverSummary) -> Option<String> {
    let list = |title: &str, paths: &[TreePath]| {
        let shown =
            paths.iter().take(LISTED).map(|path| format!("- `{}`", path_text(&path.to_string())));
        (!paths.is_empty()).then(|| format!("{title}\n\n{}", shown.collect::<Vec<_>>().join("\n")))
    };
    let parts: Vec<String> = [
        list("Resolved files that the agent changed again:", &resolver.changed_after),
        list("Files that were in no conflict:", &resolver.outside),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn path_text(path: &str) -> String {
    path.replace('`', "'")
}

fn commits(incoming: &[Incoming]) -> String {
    let mut lines: Vec<String> = incoming
        .iter()
        .take(LISTED)
        .map(|commit| format!("- `{}` {}", commit.sha, plain(&commit.subject)))
        .collect();
    if incoming.len() > LISTED {
        lines.push(format!("- … and {} more", incoming.len() - LISTED));
    }
    lines.join("\n")
}

/// The files whose content is neither side's: where somebody decided something, and a reviewer should look.
fn decisions(meta: &ForkRunRecord) -> String {
    let Some(evidence) = &meta.evidence else { return "Nothing.".to_owned() };
    if evidence.files_made.is_empty() {
        return "Nothing: every file is as one side has it.".to_owned();
    }
    let files =
        evidence.files_made.iter().take(LISTED).map(|path| format!("- `{}`", path_text(path)));
    let mut lines =
        vec!["These files are as neither side has them; please look here first:".to_owned()];
    lines.extend(files);
    if evidence.files_made.len() > LISTED {
        lines.push(format!("- … and {} more", evidence.files_made.len() - LISTED));
    }
    lines.join("\n")
}

fn checks(meta: &ForkRunRecord) -> String {
    let Some(evidence) = &meta.evidence else { return "Nothing.".to_owned() };
    let mark = |good: bool| if good { "yes" } else { "no" };
    let mut lines = vec![
        format!("- upstream's commit is contained: {}", mark(evidence.upstream_reachable)),
        format!("- the fork's history is contained: {}", mark(evidence.base_reachable)),
        format!("- conflict markers left: {}", evidence.markers_left.len()),
        format!("- links out of the tree: {}", evidence.links_leaving.len()),
        format!("- commits not by the box's own identity: {}", evidence.foreign_identities.len()),
    ];
    lines.push(match &meta.check {
        Some(check) if check.passed() => {
            format!("- the fork's own check passed: `{}`", one_line(&check.command))
        }
        Some(check) => format!("- the fork's own check failed: {}", check.how()),
        None => "- the fork's own check: none is set (`check` in FORK.md)".to_owned(),
    });
    lines.join("\n")
}

fn one_line(command: &str) -> String {
    plain(&command.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn section(title: &str, text: &str) -> String {
    format!("### {title}\n\n{text}")
}

/// Text of others, quoted line by line, so that it cannot pass for ours.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {}", plain(line))).collect::<Vec<_>>().join("\n")
}

/// Without markup, mentions and closing words that a forge would act on.
fn plain(text: &str) -> String {
    let escaped = model::escape::escape_line(text).into_owned();
    escaped
        .replace('@', "@\u{200b}")
        .replace('#', "#\u{200b}")
        .replace('<', "&lt;")
        .replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_others_do_nothing_on_a_forge() {
        let text = plain("fixes #12, thanks @everyone <img src=x>");
        assert!(
            !text.contains("#12") && !text.contains("@everyone") && !text.contains('<'),
            "{text}"
        );
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let incoming: Vec<Incoming> =
            (0..60).map(|n| Incoming { sha: format!("{n:07}"), subject: "s".to_owned() }).collect();
        let text = commits(&incoming);
        assert_eq!(text.lines().count(), LISTED + 1);
        assert!(text.ends_with("and 10 more"), "{text}");
    }
}
