//! Search for the commit of upstream that breaks the fork's check: each probe is a merge in memory and a check in a box.

use host::git::{CommitDraft, SealedRepo};
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::Sha;
use serde_json::json;
use shell::Ui;

use super::check_bench::{CheckBench, words};
use super::store::FoundBreak;
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::rules::train::CommitLabel;
use crate::rules::train::bisect::{Bisect, Bisection, Probe};
use crate::rules::words::counted;

/// Bytes of the patch of a commit that are shown.
const PATCH_CAP: usize = 16 * 1024;

/// Lines of the message that are shown.
const MESSAGE_LINES: usize = 20;

/// Commits of upstream, with the last of which the check fails.
pub(crate) struct BreakSearch<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) bench: &'a CheckBench<'a>,
    pub(crate) repo: &'a SealedRepo,
    /// The fork before them.
    pub(crate) base: &'a Sha,
    /// Oldest first.
    pub(crate) line: &'a [Sha],
}

/// Words about a check that was red once and is green again.
pub(crate) const GREEN_AGAIN: &str = "red once, green again; no commit is named";

/// Words about a check that ended in two ways on the same files.
pub(crate) fn flaky_words(what: &str) -> String {
    format!("the check passes once and fails once on {what}: it is flaky, and no commit is named")
}

fn place_words(position: usize) -> String {
    match position {
        0 => "the fork itself".to_owned(),
        _ => format!("the fork with upstream up to commit {position}"),
    }
}

/// Result of a search.
#[derive(Debug)]
pub(crate) enum BreakFound {
    Commit(Box<BreakReport>),
    /// One of these, because those between them conflict with the fork and cannot be checked.
    OneOf(Vec<CommitLabel>),
    /// The check fails on the fork without them.
    RedBefore {
        how: String,
    },
    /// The check passes with all of them, so what failed before does not depend on the commits alone.
    GreenAgain {
        how: String,
    },
    /// The check ended in two ways on these files.
    Flaky {
        what: String,
    },
}

/// The commit that breaks the check, with what people need to see of it.
#[derive(Debug)]
pub(crate) struct BreakReport {
    pub(crate) found: FoundBreak,
    /// From 1, among the commits that were searched.
    pub(crate) position: usize,
    /// Every commit before it was seen to pass the check.
    pub(crate) is_first: bool,
    pub(crate) message: String,
    pub(crate) patch: String,
    /// End of the output of the check.
    pub(crate) output: String,
}

/// Times that each side of a break is checked once more before a commit is named. A check that fails in half of its runs then
/// blames a commit in one search of 256.
const REPEATS: usize = 3;

impl BreakSearch<'_> {
    pub(crate) async fn run(&self) -> Result<BreakFound, Failure> {
        let found = self.search().await?;
        if matches!(found, BreakFound::GreenAgain { .. } | BreakFound::Flaky { .. }) {
            self.bench.forget()?;
        }
        Ok(found)
    }

    async fn search(&self) -> Result<BreakFound, Failure> {
        let before = self.bench.ran();
        let mut bisect = Bisect::new(self.line.len());
        let left = counted(self.line.len(), "commit");
        self.ui.phase("search", &format!("searching {left} for one that breaks the check"));
        // The end was red once, here or in a run, and a check may be red by chance: it has to be red in a run of its own.
        if let Some(commit) = self.merged(self.line.len()).await? {
            let what = format!("up to commit {} again", self.line.len());
            let checked = self.bench.check_again(self.repo, &commit, &what).await?;
            if checked.summary.passed() {
                return Ok(BreakFound::GreenAgain { how: words(&checked.summary) });
            }
        }
        loop {
            match bisect.next() {
                Bisection::Try(position) => bisect.learn(position, self.probe(position).await?),
                Bisection::Found(position) => {
                    if let Some(other) = self.repeat(position - 1, position).await? {
                        return Ok(other);
                    }
                    let checks = self.bench.ran() - before;
                    let report = self.report(position, checks, bisect.is_first(position)).await?;
                    return Ok(BreakFound::Commit(Box::new(report)));
                }
                Bisection::OneOf(positions) => {
                    let ends = positions.first().zip(positions.last());
                    if let Some((first, last)) = ends
                        && let Some(other) = self.repeat(first - 1, *last).await?
                    {
                        return Ok(other);
                    }
                    let shas: Vec<Sha> =
                        positions.iter().map(|at| self.line[at - 1].clone()).collect();
                    let lines = self.repo.commit_lines(&shas).await.or_machine()?;
                    let label = |line: host::git::CommitLine| CommitLabel {
                        sha: line.sha,
                        subject: line.subject,
                    };
                    return Ok(BreakFound::OneOf(lines.into_iter().map(label).collect()));
                }
                Bisection::RedBefore => {
                    let checked = self.bench.check_again(self.repo, self.base, "the fork").await?;
                    return Ok(match checked.summary.passed() {
                        false => BreakFound::RedBefore { how: words(&checked.summary) },
                        true => BreakFound::Flaky { what: place_words(0) },
                    });
                }
            }
        }
    }

    /// Runs the check again on the fork itself and on both sides of a break, in turn. Returns what was found instead if one
    /// of them ends otherwise than before: then no commit is to blame.
    async fn repeat(&self, green: usize, red: usize) -> Result<Option<BreakFound>, Failure> {
        let pair = [(green, Probe::Green), (red, Probe::Red)];
        let base = (green != 0).then_some((0, Probe::Green));
        let repeats = base.into_iter().chain(pair.repeat(REPEATS));
        for (position, expected) in repeats {
            let Some(commit) = self.merged(position).await? else { continue };
            let what = format!("{} once more", place_words(position));
            let checked = self.bench.check_again(self.repo, &commit, &what).await?;
            let is_green = checked.summary.passed();
            if position == 0 && base.is_some() && !is_green {
                // It may be red by chance as well.
                let once_more = self.bench.check_again(self.repo, &commit, &what).await?;
                return Ok(Some(match once_more.summary.passed() {
                    false => BreakFound::RedBefore { how: words(&once_more.summary) },
                    true => BreakFound::Flaky { what: place_words(0) },
                }));
            }
            if is_green != (expected == Probe::Green) {
                return Ok(Some(BreakFound::Flaky { what: place_words(position) }));
            }
        }
        Ok(None)
    }

    async fn probe(&self, position: usize) -> Result<Probe, Failure> {
        let Some(commit) = self.merged(position).await? else { return Ok(Probe::Unknown) };
        let what = match position {
            0 => "the fork without upstream's commits".to_owned(),
            _ => format!("up to commit {position} of {}", self.line.len()),
        };
        let checked = self.bench.check(self.repo, &commit, &what).await?;
        Ok(if checked.summary.passed() { Probe::Green } else { Probe::Red })
    }

    /// The fork with the commits up to this position; `None` if they conflict with it.
    async fn merged(&self, position: usize) -> Result<Option<Sha>, Failure> {
        if position == 0 {
            return Ok(Some(self.base.clone()));
        }
        merge_in_memory(self.repo, self.base, &self.line[position - 1]).await
    }

    async fn report(
        &self,
        position: usize,
        checks: usize,
        is_first: bool,
    ) -> Result<BreakReport, Failure> {
        let sha = &self.line[position - 1];
        let facts = self.repo.new_commits(sha, &[], 1).await.or_machine()?.into_iter().next();
        let unknown =
            || Failure::new(ForkliftExit::Machine, format!("git knows nothing of commit {sha}"));
        let facts = facts.ok_or_else(unknown)?;
        let messages = self.repo.new_messages(sha, &[], 1).await.or_machine()?;
        let message = messages.into_iter().next().map(|(_, text)| text).unwrap_or_default();
        let patch = match facts.parents.first() {
            Some(parent) => {
                let patch = self.repo.diff(parent, sha, PATCH_CAP).await.or_machine()?;
                String::from_utf8_lossy(&patch.bytes).into_owned()
            }
            None => String::new(),
        };
        let merged = self.merged(position).await?.ok_or_else(unknown)?;
        // Its result is known by now.
        let checked = self.bench.check(self.repo, &merged, "the one that breaks").await?;
        Ok(BreakReport {
            found: FoundBreak {
                commit: CommitLabel { sha: sha.clone(), subject: facts.subject },
                author: facts.author.name,
                how: words(&checked.summary),
                checks,
                one_of: Vec::new(),
            },
            position,
            is_first,
            message,
            patch,
            output: checked.summary.tail,
        })
    }
}

/// Merges a commit of upstream into the fork; `None` if it conflicts.
pub(crate) async fn merge_in_memory(
    repo: &SealedRepo,
    base: &Sha,
    upstream: &Sha,
) -> Result<Option<Sha>, Failure> {
    let merged = repo.merge_tree(base, upstream).await.or_machine()?;
    if !merged.is_clean {
        return Ok(None);
    }
    let parents = [base.clone(), upstream.clone()];
    let draft = CommitDraft {
        tree: &merged.tree,
        parents: &parents,
        identity: &host_identity(),
        when: Timestamp::UNIX_EPOCH,
        message: "a merge to be checked\n",
    };
    repo.commit_tree(draft).await.or_machine().map(Some)
}

impl BreakReport {
    /// Shows the commit, with its message and its patch.
    pub(crate) fn show(&self, ui: &Ui, of: usize) {
        let FoundBreak { commit, author, how, checks, .. } = &self.found;
        ui.event(
            "break",
            &json!({
                "commit": commit.sha, "subject": commit.subject, "author": author, "message": self.message,
                "patch": self.patch, "position": self.position, "of": of, "first": self.is_first, "checks": checks,
                "check": how, "output": self.output,
            }),
        );
        ui.result("breaks", &format!("{} ({author})", commit.words()));
        ui.result(
            "place",
            &format!(
                "{} of {of}, found with {}; both sides of it ended alike in {REPEATS} more runs each",
                self.position,
                counted(*checks, "check")
            ),
        );
        ui.result("check", how);
        if !self.is_first {
            ui.result(
                "earlier",
                "not all were checked: one before it may break the check too, if upstream mended it since",
            );
        }
        if !ui.is_json() {
            ui.page(&quoted(self.message.lines().take(MESSAGE_LINES)));
            ui.page(&quoted(self.patch.lines()));
            ui.page(&quoted(
                self.output.lines().rev().take(MESSAGE_LINES).collect::<Vec<_>>().into_iter().rev(),
            ));
        }
    }

    /// The same as a page for the train's folder.
    pub(crate) fn render(&self) -> String {
        let FoundBreak { commit, author, how, checks, .. } = &self.found;
        let block = |text: &str| model::inert::inert_block(text.trim_end());
        format!(
            "# {} breaks the check\n\nBy {author}; the check {how}. Found with {}.\n\n{}\n\n## Patch\n\n{}\n\n## Output of the check\n\n{}\n",
            commit.words(),
            counted(*checks, "check"),
            block(&self.message),
            block(&self.patch),
            block(&self.output)
        )
    }
}

fn quoted<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| format!("  | {line}\n")).chain(["\n".to_owned()]).collect()
}
