//! Decisions about one advisory: from its beginnings, its fixes and its releases, and what the fork has of them.

use std::collections::{BTreeMap, BTreeSet};

use model::id::Sha;

use super::facts::CommitPlace;
use super::scan::FixScan;
use crate::exit::{Failure, OrExit};
use crate::rules::security::candidate::{Beginning, FixCandidate, FixedWithin};
use crate::rules::security::code_place::FileFacts;
use crate::rules::security::finding::FixCommit;
use crate::rules::security::presence::{
    Applies, HALF_THERE, LACKS_ALL, Presence, State, Sureness, join_alternatives, join_beginnings,
    join_commits,
};
use crate::rules::security::release::ReleaseSpan;

/// Commits of a fix that are judged as one change.
const MOST_CHAINED: usize = 20;

/// A decision with the commits of the fix that decides.
type Judged = (Presence, Vec<FixCommit>);

impl FixScan<'_> {
    pub(super) async fn judge(
        &self,
        candidate: &FixCandidate,
        fixes: &BTreeMap<Sha, FixCommit>,
    ) -> Result<Judged, Failure> {
        let named: Vec<&FixCommit> =
            candidate.named.iter().filter_map(|it| fixes.get(it)).collect();
        let mut judged = Vec::new();
        for beginning in &candidate.beginnings {
            judged.push(self.judge_beginning(beginning, &named, fixes).await?);
        }
        if judged.is_empty() && !named.is_empty() {
            judged.push((join_fixes(&named), named.into_iter().cloned().collect()));
            for span in &candidate.releases {
                judged.extend(self.judge_return(span, &candidate.named).await?.map(no_commits));
            }
        }
        if judged.is_empty() {
            for span in &candidate.releases {
                judged.push(no_commits(self.judge_releases(span).await?));
            }
        }
        let found = join_beginnings(judged.iter().map(|(presence, _)| presence.clone()));
        Ok(match found {
            Some((at, presence)) => (presence, judged.swap_remove(at).1),
            None => no_commits(Presence::unclear("no commit and no release is known as its fix")),
        })
    }

    /// Judges one beginning by its fixes, to which the commits that the advisory names by their addresses are another
    /// alternative.
    async fn judge_beginning(
        &self,
        beginning: &Beginning,
        named: &[&FixCommit],
        fixes: &BTreeMap<Sha, FixCommit>,
    ) -> Result<Judged, Failure> {
        let introduced = beginning.introduced.as_ref();
        let mut later = Vec::new();
        for fix in named.iter().copied() {
            // What was there before the hole came back does not close it.
            let is_earlier = match introduced.filter(|begin| fixes.contains_key(begin)) {
                Some(begin) => {
                    self.facts.repo.is_ancestor(&fix.commit, begin).await.or_machine()?
                }
                None => false,
            };
            if !is_earlier {
                later.push(fix);
            }
        }
        let lacking = introduced.filter(|commit| self.facts.lacks(commit));
        let taken = lacking.and_then(|commit| fixes.get(commit));
        let about = beginning.fixed.iter().filter_map(|(commit, _)| fixes.get(commit));
        let about: Vec<&FixCommit> = about.chain(later.iter().copied()).collect();
        if let (Some(introduced), Some(taken)) = (lacking, taken)
            && let Some(sureness) = lacks_hole(taken, &about)
        {
            let why =
                format!("upstream's {} brought it in, which the fork lacks", introduced.short());
            return Ok(no_commits(Presence::new(State::NotAffected, sureness, why)));
        }
        let (presence, commits) = self.judge_fixes(beginning, &later, fixes).await?;
        let is_taken = taken.is_some_and(|it| it.state == State::Present);
        Ok(match (lacking, presence.state) {
            (Some(introduced), State::Missing) if !is_taken => {
                let why = format!(
                    "upstream's {} brought it in, and it is unclear whether the fork has that; {}",
                    introduced.short(),
                    presence.why
                );
                (Presence::unclear(why), commits)
            }
            _ => (presence, commits),
        })
    }

    /// Judges by the fixes of one beginning, each of which is enough.
    async fn judge_fixes(
        &self,
        beginning: &Beginning,
        named: &[&FixCommit],
        fixes: &BTreeMap<Sha, FixCommit>,
    ) -> Result<Judged, Failure> {
        let mut alternatives: Vec<Judged> = Vec::new();
        for (commit, within) in &beginning.fixed {
            let Some(fix) = fixes.get(commit) else { continue };
            let presence = self.judge_fix(fix, within.as_ref()).await?;
            alternatives.push((presence, vec![fix.clone()]));
        }
        if !named.is_empty() {
            let commits = named.iter().map(|fix| (*fix).clone()).collect();
            alternatives.push((join_fixes(named), commits));
        }
        let joined = join_alternatives(alternatives.iter().map(|(presence, _)| presence.clone()));
        Ok(match (joined, &beginning.introduced) {
            (Some((at, presence)), _) => (presence, alternatives.swap_remove(at).1),
            (None, Some(begin)) if beginning.fixed.is_empty() => {
                let has = if self.facts.lacks(begin) { "may have" } else { "has" };
                let why = format!(
                    "upstream's {} brought it in, which the fork {has}; the advisory names no fix of that",
                    begin.short()
                );
                no_commits(Presence::unclear(why))
            }
            (None, _) => no_commits(Presence::unclear("its fix is on none of upstream's branches")),
        })
    }

    /// Judges a fix that may be known only to lie in a range.
    async fn judge_fix(
        &self,
        fix: &FixCommit,
        within: Option<&FixedWithin>,
    ) -> Result<Presence, Failure> {
        let presence = fix.presence();
        let Some((from, _)) = within.filter(|_| presence.state != State::Present) else {
            return Ok(presence);
        };
        let (commit, from) = (std::slice::from_ref(&fix.commit), std::slice::from_ref(from));
        let count = self.facts.repo.commits_between(commit, from).await.or_machine()?.len();
        Ok(match count {
            1 => presence,
            _ => Presence::unclear(format!(
                "the fix is one of {count} commits of upstream, up to {}",
                fix.commit.short()
            )),
        })
    }

    /// Judges commits that build on one another as one change: alone, the later ones do not apply, and those of several
    /// branches exclude each other.
    pub(super) async fn judge_together(
        &self,
        (presence, mut fixes): Judged,
    ) -> Result<Judged, Failure> {
        let count = |state: State| fixes.iter().filter(|fix| fix.state == state).count();
        let is_open = count(State::Missing) > 0
            && count(State::Missing) + count(State::Unclear) == fixes.len();
        if !is_open || !(2..=MOST_CHAINED).contains(&fixes.len()) {
            return Ok((presence, fixes));
        }
        fixes.sort_by_key(|fix| fix.seconds);
        let Some((joined, applies)) = self.facts.look_at_chain(&fixes).await? else {
            for fix in &mut fixes {
                fix.applies = Some(Applies::Excludes);
            }
            return Ok((presence, fixes));
        };
        for fix in &mut fixes {
            fix.applies.clone_from(&applies);
        }
        if presence.state != State::Unclear || joined.state != State::Missing {
            return Ok((presence, fixes));
        }
        let why = format!("its {} commits together: {}", fixes.len(), joined.why);
        for fix in &mut fixes {
            (fix.state, fix.sureness, fix.why) = (joined.state, joined.sureness, why.clone());
        }
        Ok((Presence { why, ..joined }, fixes))
    }

    /// Judges by the releases with the fix, where no commit is known whose lines could be looked for.
    async fn judge_releases(&self, span: &ReleaseSpan) -> Result<Presence, Failure> {
        let begin = match &span.introduced {
            Some(version) => self.place_of(version).await?.map(|(tag, _, place)| (tag, place)),
            None => None,
        };
        let mut lacking = None;
        for version in &span.fixed {
            match self.place_of(version).await? {
                Some((tag, _, CommitPlace::Fork)) => {
                    let why = format!(
                        "upstream's release {tag} is in the fork's history; no commit is known whose lines could be looked for"
                    );
                    return Ok(Presence::new(State::Present, Sureness::Likely, why));
                }
                Some((tag, ..)) => lacking = lacking.or(Some(tag)),
                None => {}
            }
        }
        if let Some((tag, CommitPlace::Upstream | CommitPlace::Elsewhere)) = &begin {
            let why =
                format!("upstream's release {tag} brought it in, which the fork's history lacks");
            return Ok(Presence::new(State::NotAffected, Sureness::Likely, why));
        }
        let begin = match begin {
            Some((tag, _)) => {
                format!("upstream's release {tag}, which the fork has, brought it in; ")
            }
            None => String::new(),
        };
        let why = match (lacking, span.fixed.first()) {
            (Some(tag), _) => format!(
                "{begin}no commit is known as its fix; upstream's release {tag} has it, which the fork lacks"
            ),
            (None, Some(version)) => format!(
                "{begin}no commit is known as its fix; version {version} has it, for which upstream has no tag"
            ),
            (None, None) => format!("{begin}no commit and no release is known as its fix"),
        };
        Ok(Presence::unclear(why))
    }

    /// Judges a beginning in releases that came after the fixes that are known as commits; `None` if that says nothing new.
    async fn judge_return(
        &self,
        span: &ReleaseSpan,
        named: &[Sha],
    ) -> Result<Option<Presence>, Failure> {
        let Some(version) = &span.introduced else { return Ok(None) };
        let Some((_, commit, CommitPlace::Fork)) = self.place_of(version).await? else {
            return Ok(None);
        };
        for fix in named {
            let is_known = self.facts.repo.has_commits(std::slice::from_ref(fix)).await;
            if !is_known.or_machine()?
                || !self.facts.repo.is_ancestor(fix, &commit).await.or_machine()?
            {
                return Ok(None);
            }
        }
        self.judge_releases(span).await.map(Some)
    }

    /// The tag of a version, its commit and where that stands; `None` if upstream has no such tag.
    async fn place_of(&self, version: &str) -> Result<Option<(String, Sha, CommitPlace)>, Failure> {
        let names = [format!("v{version}"), version.to_owned()];
        let tag = names.into_iter().find_map(|name| {
            let commit = self.tags.get(&name)?.clone();
            Some((name, commit))
        });
        let Some((name, commit)) = tag else { return Ok(None) };
        let places = self.facts.places(&BTreeSet::from([commit.clone()])).await?;
        let place = places.get(&commit).copied().unwrap_or(CommitPlace::Elsewhere);
        Ok(Some((name, commit, place)))
    }
}

fn no_commits(presence: Presence) -> Judged {
    (presence, Vec::new())
}

/// Says how sure it is that the fork has neither what brought a hole in nor the code that the fixes change; `None` if it may
/// have it, such as by a squashed update or in another file.
fn lacks_hole(introduced: &FixCommit, fixes: &[&FixCommit]) -> Option<Sureness> {
    let files = &introduced.files;
    let is_comparable = |files: &FileFacts| files.code_files > 0;
    if !is_comparable(files) || fixes.iter().any(|fix| !is_comparable(&fix.files)) {
        return None;
    }
    // The fork may have the same change by another commit.
    let is_lacking = matches!(introduced.state, State::Missing | State::NotAffected);
    // The fork's files are those of upstream from before the hole.
    if is_lacking && files.is_common() && fixes.iter().all(|fix| fix.files.is_common()) {
        return Some(Sureness::Certain);
    }
    let lines = files.likeness;
    let lacks_new = lines.added_share().is_some_and(|share| share <= LACKS_ALL);
    let has_none = lacks_new && files.moved.is_empty() && files.unsearched == 0;
    let is_gone = |fix: &&FixCommit| {
        let has_old = fix.likeness.removed_share().is_some_and(|share| share >= HALF_THERE);
        fix.files.lacks_code() && !has_old
    };
    (has_none && !fixes.is_empty() && fixes.iter().all(is_gone)).then_some(Sureness::Likely)
}

/// Joins commits that together are a fix. Those without code, such as release notes, count only where there are no others.
pub(super) fn join_fixes(fixes: &[&FixCommit]) -> Presence {
    let all = || fixes.iter().copied();
    let code: Vec<Presence> = all().filter(|fix| fix.has_code).map(FixCommit::presence).collect();
    match code.is_empty() {
        true => join_commits(&all().map(FixCommit::presence).collect::<Vec<_>>()),
        false => join_commits(&code),
    }
}
