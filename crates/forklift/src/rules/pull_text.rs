//! Text of a pull request, in the order of a reviewer's questions.

use std::collections::{BTreeMap, BTreeSet};

use engine::evidence::NewCommit;
use forge::NewPull;
use merge::path::TreePath;
use merge::resolver::receipt::Receipt;
use model::id::BranchName;

use super::strategy::Strategy;
use super::target::Target;
use crate::flow::record::ForkRunRecord;
use crate::flow::resolver::ResolverSummary;

/// Commits that are listed; more are counted.
const LISTED: usize = 50;

/// Marks a pull request of forklift, also after edits.
pub(crate) const MARK: &str = "<!-- forklift -->";

/// Renders title and body of the pull request of `head`. Text from elsewhere is quoted as plain text.
pub(crate) fn render_pull(
    meta: &ForkRunRecord,
    head: &BranchName,
    incoming: &[NewCommit],
    contract: Option<&str>,
) -> NewPull {
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
    let body = parts.join("\n\n") + "\n";
    NewPull { title, body, head: head.clone(), base: branch.clone() }
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

/// A rebased branch and the old one share no commits of the fork: merging them would double its history.
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
    list(&meta.conflicts, |line| plain(line))
}

/// Grouped by action and strategies; each with its confidence and the merges it was learned from.
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
    let group = |(title, receipts): (String, Vec<&Receipt>)| {
        let lines = list(&receipts, |receipt| receipt_line(receipt));
        format!("{} files: {title}\n\n{lines}", receipts.len())
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join("\n\n")
}

fn receipt_line(receipt: &Receipt) -> String {
    let steps = || receipt.steps.iter();
    let merges = steps().filter_map(|step| step.learned_from.as_ref());
    let merges: BTreeSet<String> = merges.map(|merge| format!("`{}`", merge.short())).collect();
    let merges: Vec<String> = merges.into_iter().take(3).collect();
    let from = match merges.is_empty() {
        true => String::new(),
        false => format!(", as in {}", merges.join(", ")),
    };
    let programs = steps().filter_map(|step| step.program.as_deref());
    let programs: BTreeSet<String> =
        programs.map(|program| format!(", with `{}`", one_line(program))).collect();
    let with: String = programs.into_iter().collect();
    let sure = (receipt.confidence * 100.0).round();
    format!(
        "`{}`: {} ({sure} % sure{from}{with})",
        path_text(&receipt.path.to_string()),
        receipt.kind.as_str()
    )
}

/// Changes of the agent beside the open conflicts.
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

fn commits(incoming: &[NewCommit]) -> String {
    list(incoming, |commit| format!("`{}` {}", commit.sha.short(), plain(&commit.subject)))
}

/// The files whose content is neither side's, which a reviewer should read first.
fn decisions(meta: &ForkRunRecord) -> String {
    let Some(evidence) = &meta.evidence else { return "Nothing.".to_owned() };
    if evidence.files_made.is_empty() {
        return "Nothing: every file is as one side has it.".to_owned();
    }
    let files = list(&evidence.files_made, |path| format!("`{}`", path_text(path)));
    format!("These files are as neither side has them; please look here first:\n{files}")
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

/// A list of at most [`LISTED`] items; more are counted.
fn list<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let more = items.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("- … and {more} more"));
    let lines = items.iter().take(LISTED).map(|item| format!("- {}", line(item)));
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

fn section(title: &str, text: &str) -> String {
    format!("### {title}\n\n{text}")
}

/// Text from elsewhere, quoted line by line, so that it cannot pass for forklift's.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {}", plain(line))).collect::<Vec<_>>().join("\n")
}

/// Without markup, mentions and keywords that a forge would act on.
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
    use model::id::Sha;

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
        let commit = |n: u32| NewCommit {
            sha: Sha::parse(&format!("{n:040}")).expect("legal"),
            subject: "s".to_owned(),
            parents: 1,
        };
        let incoming: Vec<NewCommit> = (0..60).map(commit).collect();
        let text = commits(&incoming);
        assert_eq!(text.lines().count(), LISTED + 1);
        assert!(text.ends_with("and 10 more"), "{text}");
    }
}
