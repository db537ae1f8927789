//! Findings about a fork: what advisories and upstream's own words name as fixes, and what the fork has of them.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{FoundMessage, TagMessage};
use model::id::Sha;
use shell::Ui;

use super::facts::{CommitPlace, ForkFacts};
use super::source::{FoundAdvisory, LoadedAdvisories};
use crate::exit::{Failure, OrExit};
use crate::rules::security::advisory::AdvisoryId;
use crate::rules::security::candidate::{Beginning, FixCandidate};
use crate::rules::security::finding::{FindingSource, FixCommit, FixFinding};
use crate::rules::security::message::{
    ClaimStrength, ID_PATTERNS, UPSTREAM_PATTERNS, find_ids, read_message,
};
use crate::rules::security::presence::{
    HALF_THERE, Presence, State, Sureness, join_alternatives, join_beginnings, join_commits,
};
use crate::rules::security::project::ProjectNames;
use crate::rules::security::severity::Severity;

/// Messages of upstream that are read.
const MOST_MESSAGES: usize = 5000;

/// Messages in the fork's history that are read for identifiers.
const MOST_SAID: usize = 50_000;

/// Characters of a summary that is taken from a message.
const SUMMARY_CHARS: usize = 200;

/// Pull requests that are looked for by their numbers.
const MOST_PULLS: usize = 200;

/// Commits of a fix that are judged as one change.
const MOST_CHAINED: usize = 20;

/// Release tags of upstream, by name.
pub(crate) type ReleaseTags = BTreeMap<String, Sha>;

/// Scan of one fork.
pub(crate) struct FixScan<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) facts: &'a ForkFacts,
    pub(crate) project: &'a ProjectNames,
    pub(crate) tags: &'a ReleaseTags,
    pub(crate) tag_messages: &'a [TagMessage],
}

/// A claim of upstream's own.
struct Claim {
    id: AdvisoryId,
    aliases: Vec<AdvisoryId>,
    source: FindingSource,
    summary: String,
    /// Commits of upstream with this claim, and how plainly each makes it; none for a tag.
    commits: Vec<(Sha, ClaimStrength)>,
}

impl Claim {
    fn shas(&self) -> impl Iterator<Item = &Sha> {
        self.commits.iter().map(|(commit, _)| commit)
    }

    /// Returns whether one of the commits says that it is the fix.
    fn says(&self) -> bool {
        self.commits.iter().any(|(_, strength)| *strength == ClaimStrength::Says)
    }

    fn is_called(&self, found: &FoundAdvisory) -> bool {
        let mut ids = [&self.id].into_iter().chain(&self.aliases);
        ids.any(|id| found.advisory.is_called(id.as_str()))
    }
}

impl FixScan<'_> {
    /// Makes the findings, and counts the advisories about the project in each database.
    pub(crate) async fn find(
        &self,
        loaded: &mut LoadedAdvisories,
    ) -> Result<Vec<FixFinding>, Failure> {
        let mut candidates = self.candidates(loaded).await?;
        let messages = self.facts.repo.search_messages(
            &self.facts.upstream[..1],
            std::slice::from_ref(&self.facts.base),
            UPSTREAM_PATTERNS,
            MOST_MESSAGES,
        );
        let claims = self.claims(messages.await.or_machine()?);
        self.find_pulls(&mut candidates).await?;
        let claims = attach_claims(&mut candidates, claims);
        let commits: BTreeSet<Sha> = candidates
            .iter()
            .flat_map(|(_, candidate)| candidate.commits())
            .chain(claims.iter().flat_map(Claim::shas))
            .cloned()
            .collect();
        let places = self.facts.places(&commits).await?;
        let known: BTreeMap<Sha, CommitPlace> = places
            .iter()
            .filter(|(_, place)| **place != CommitPlace::Elsewhere)
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        self.ui.phase("fixes", &format!("looking at {} commits of upstream", known.len()));
        let fixes = self.facts.look_at(self.ui, &known).await?;
        let said = self.said_in_fork().await?;
        let mut findings = Vec::new();
        for (found, candidate) in &candidates {
            let judged = self.judge(candidate, &fixes).await?;
            let judged = self.judge_together(judged).await?;
            findings.push(advisory_finding(found, candidate, judged));
        }
        findings.extend(claims.into_iter().map(|claim| claim_finding(claim, &fixes)));
        for finding in &mut findings {
            soften(finding, &said);
        }
        Ok(findings)
    }

    /// Identifiers that commits in the fork's history say they fix. Upstream often fixes a hole once more, in another way.
    async fn said_in_fork(&self) -> Result<BTreeMap<AdvisoryId, Sha>, Failure> {
        let base = std::slice::from_ref(&self.facts.base);
        let found = self.facts.repo.search_messages(base, &[], ID_PATTERNS, MOST_SAID).await;
        let said = found.or_machine()?.into_iter().filter_map(|found| {
            let claim = read_message(&found.message)?;
            (claim.strength == ClaimStrength::Says).then_some((claim.ids, found.sha))
        });
        Ok(said.flat_map(|(ids, sha)| ids.into_iter().map(move |id| (id, sha.clone()))).collect())
    }

    /// The advisories about the project. The commits of all of them are looked for at once.
    async fn candidates(
        &self,
        loaded: &mut LoadedAdvisories,
    ) -> Result<Vec<(FoundAdvisory, FixCandidate)>, Failure> {
        let named: BTreeSet<Sha> =
            loaded.advisories.iter().flat_map(|found| found.advisory.fix_commits()).collect();
        let places = self.facts.places(&named).await?;
        let is_known =
            |commit: &Sha| places.get(commit).is_some_and(|place| *place != CommitPlace::Elsewhere);
        let mut candidates: Vec<(FoundAdvisory, FixCandidate)> = Vec::new();
        for found in std::mem::take(&mut loaded.advisories) {
            let Some(candidate) = FixCandidate::of(&found.advisory, self.project, is_known) else {
                continue;
            };
            if let Some(database) =
                loaded.databases.iter_mut().find(|it| it.source == found.database)
            {
                database.matching += 1;
            }
            let is_double =
                candidates.iter().any(|(known, _)| known.advisory.id == found.advisory.id);
            if !is_double {
                candidates.push((found, candidate));
            }
        }
        Ok(candidates)
    }

    fn claims(&self, messages: Vec<FoundMessage>) -> Vec<Claim> {
        let by_commit = messages.into_iter().flat_map(claims_of);
        let by_tag = self.tag_messages.iter().filter(|tag| self.facts.lacks(&tag.commit));
        let by_tag = by_tag.flat_map(|tag| {
            find_ids(&tag.message).into_iter().map(|id| Claim {
                id,
                aliases: Vec::new(),
                source: FindingSource::Tag { name: tag.name.clone() },
                summary: format!("named by the tag {}", tag.name),
                commits: Vec::new(),
            })
        });
        join_claims(by_commit.chain(by_tag))
    }

    /// Finds the commits of pull requests where an advisory names no commit: forges write the number into the message.
    async fn find_pulls(
        &self,
        candidates: &mut [(FoundAdvisory, FixCandidate)],
    ) -> Result<(), Failure> {
        let lacks_commit = |candidate: &FixCandidate| {
            candidate.named.is_empty() && candidate.beginnings.is_empty()
        };
        let wanted = candidates.iter().filter(|(_, candidate)| lacks_commit(candidate));
        let pulls: BTreeSet<u32> = wanted.flat_map(|(_, it)| it.pulls.iter().copied()).collect();
        if pulls.is_empty() {
            return Ok(());
        }
        let patterns: Vec<String> = pulls
            .iter()
            .take(MOST_PULLS)
            .flat_map(|pull| [format!(r"\(#{pull}\)"), format!("^Merge pull request #{pull} ")])
            .collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let tips =
            [self.facts.upstream.as_slice(), std::slice::from_ref(&self.facts.base)].concat();
        let found = self.facts.repo.search_messages(&tips, &[], &patterns, MOST_MESSAGES).await;
        let found = found.or_machine()?;
        for (_, candidate) in candidates.iter_mut().filter(|(_, it)| lacks_commit(it)) {
            for pull in &candidate.pulls {
                let (end, start) = (format!("(#{pull})"), format!("Merge pull request #{pull} "));
                let is_it = |found: &&FoundMessage| {
                    let subject = found.message.lines().next().unwrap_or_default();
                    subject.trim_end().ends_with(&end) || subject.starts_with(&start)
                };
                candidate.named.extend(found.iter().filter(is_it).map(|found| found.sha.clone()));
            }
        }
        Ok(())
    }

    /// Judges commits that build on one another as one change where one by one they tell nothing: alone, the later ones do not
    /// apply.
    async fn judge_together(
        &self,
        (presence, mut fixes): (Presence, Vec<FixCommit>),
    ) -> Result<(Presence, Vec<FixCommit>), Failure> {
        let count = |state: State| fixes.iter().filter(|fix| fix.state == state).count();
        let is_open = count(State::Missing) > 0
            && count(State::Missing) + count(State::Unclear) == fixes.len();
        if presence.state != State::Unclear
            || !is_open
            || !(2..=MOST_CHAINED).contains(&fixes.len())
        {
            return Ok((presence, fixes));
        }
        fixes.sort_by_key(|fix| fix.seconds);
        let Some((joined, applies)) = self.facts.look_at_chain(&fixes).await? else {
            return Ok((presence, fixes));
        };
        if joined.state != State::Missing {
            return Ok((presence, fixes));
        }
        let why = format!("its {} commits together: {}", fixes.len(), joined.why);
        for fix in &mut fixes {
            (fix.state, fix.sureness, fix.why) = (joined.state, joined.sureness, why.clone());
            fix.applies.clone_from(&applies);
        }
        Ok((Presence { why, ..joined }, fixes))
    }

    async fn judge(
        &self,
        candidate: &FixCandidate,
        fixes: &BTreeMap<Sha, FixCommit>,
    ) -> Result<(Presence, Vec<FixCommit>), Failure> {
        let named: Vec<&FixCommit> =
            candidate.named.iter().filter_map(|it| fixes.get(it)).collect();
        let mut judged = Vec::new();
        for beginning in &candidate.beginnings {
            judged.push(self.judge_beginning(beginning, &named, fixes).await?);
        }
        if !judged.is_empty() {
            let found = join_beginnings(judged.iter().map(|(presence, _)| presence.clone()));
            if let Some((at, presence)) = found {
                return Ok((presence, judged.swap_remove(at).1));
            }
        }
        if !named.is_empty() {
            return Ok((join_fixes(&named), named.into_iter().cloned().collect()));
        }
        Ok((self.judge_versions(candidate).await?, Vec::new()))
    }

    /// Judges one beginning by its fixes, to which the commits that the advisory names by their addresses are another
    /// alternative.
    async fn judge_beginning(
        &self,
        beginning: &Beginning,
        named: &[&FixCommit],
        fixes: &BTreeMap<Sha, FixCommit>,
    ) -> Result<(Presence, Vec<FixCommit>), Failure> {
        let introduced = beginning.introduced.as_ref();
        let lacking = introduced.filter(|commit| self.facts.lacks(commit));
        // The fork may have taken the same change over under another id, or as a part of a squashed update.
        let taken = lacking.and_then(|commit| fixes.get(commit)).map(|it| it.state);
        let has_old_lines =
            beginning.fixed.iter().filter_map(|(commit, _)| fixes.get(commit)).any(has_old_lines);
        if let (Some(introduced), false) = (lacking, has_old_lines)
            && matches!(taken, Some(State::Missing | State::NotAffected))
        {
            let why =
                format!("upstream's {} brought it in, which the fork lacks", introduced.short());
            return Ok((Presence::new(State::NotAffected, Sureness::Likely, why), Vec::new()));
        }
        let (presence, commits) = self.judge_fixes(beginning, named, fixes).await?;
        Ok(match (lacking, presence.state) {
            (Some(introduced), State::Missing) if taken != Some(State::Present) => {
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
    ) -> Result<(Presence, Vec<FixCommit>), Failure> {
        let mut alternatives: Vec<(Presence, Vec<FixCommit>)> = Vec::new();
        for (commit, within) in &beginning.fixed {
            let Some(fix) = fixes.get(commit) else { continue };
            let mut presence = fix.presence();
            if let Some((from, _)) = within.as_ref().filter(|_| presence.state != State::Present) {
                let range = self
                    .facts
                    .repo
                    .commits_between(std::slice::from_ref(commit), std::slice::from_ref(from));
                let count = range.await.or_machine()?.len();
                if count != 1 {
                    let why = format!(
                        "the fix is one of {count} commits of upstream, up to {}",
                        commit.short()
                    );
                    presence = Presence::unclear(why);
                }
            }
            alternatives.push((presence, vec![fix.clone()]));
        }
        if !named.is_empty() {
            let commits = named.iter().map(|fix| (*fix).clone()).collect();
            alternatives.push((join_fixes(named), commits));
        }
        let joined = join_alternatives(alternatives.iter().map(|(presence, _)| presence.clone()));
        Ok(match joined {
            Some((at, presence)) => (presence, alternatives.swap_remove(at).1),
            None => (Presence::unclear("its fix is on none of upstream's branches"), Vec::new()),
        })
    }

    /// Judges by the releases with the fix, where no commit is known.
    async fn judge_versions(&self, candidate: &FixCandidate) -> Result<Presence, Failure> {
        let releases = candidate.versions.iter().filter_map(|version| {
            let names = [format!("v{version}"), version.clone()];
            names.into_iter().find_map(|name| Some((name.clone(), self.tags.get(&name)?.clone())))
        });
        let releases: Vec<(String, Sha)> = releases.collect();
        let commits: BTreeSet<Sha> = releases.iter().map(|(_, commit)| commit.clone()).collect();
        let places = self.facts.places(&commits).await?;
        let has =
            releases.iter().find(|(_, commit)| places.get(commit) == Some(&CommitPlace::Fork));
        Ok(match (has, releases.first(), candidate.versions.first()) {
            (Some((name, _)), ..) => Presence::new(
                State::Present,
                Sureness::Certain,
                format!("upstream's release {name} is in the fork's history"),
            ),
            (None, Some((name, _)), _) => Presence::unclear(format!(
                "no commit is known as its fix; upstream's release {name} has it, which the fork lacks"
            )),
            (None, None, Some(version)) => Presence::unclear(format!(
                "no commit is known as its fix; version {version} has it, for which upstream has no tag"
            )),
            (None, None, None) => Presence::unclear("no commit and no release is known as its fix"),
        })
    }
}

/// Returns whether the fork has most of the lines that a fix takes away: the code with the hole, whatever brought it in.
fn has_old_lines(fix: &FixCommit) -> bool {
    fix.likeness.removed_share().is_some_and(|share| share >= HALF_THERE)
}

/// Takes back "missing" where a commit in the fork's history says that it fixes the same.
fn soften(finding: &mut FixFinding, said: &BTreeMap<AdvisoryId, Sha>) {
    let mut ids = std::iter::once(&finding.id).chain(&finding.aliases);
    let by = ids.find_map(|id| said.get(id)).filter(|_| finding.state == State::Missing);
    if let Some(by) = by {
        let why = format!("the fork's {} says that it fixes it too; {}", by.short(), finding.why);
        let Presence { state, sureness, why } = Presence::unclear(why);
        (finding.state, finding.sureness, finding.why) = (state, sureness, why);
    }
}

/// The claims of one message: one for each identifier, because a message about a release names many. One of another
/// kind beside it, such as the GHSA of a CVE, is an alias.
fn claims_of(found: FoundMessage) -> Vec<Claim> {
    let Some(claim) = read_message(&found.message) else { return Vec::new() };
    let subject = found.message.lines().next().unwrap_or_default();
    let mut ids = claim.ids;
    if ids.is_empty() {
        ids.extend(AdvisoryId::parse(&format!("commit-{}", found.sha.short())).ok());
    }
    let kind = |id: &AdvisoryId| id.as_str().split('-').next().map(str::to_owned);
    let aliases = match ids.as_slice() {
        [one, other] if kind(one) != kind(other) => ids.split_off(1),
        _ => Vec::new(),
    };
    let claim = |id| Claim {
        id,
        aliases: aliases.clone(),
        source: FindingSource::Message,
        summary: subject.chars().take(SUMMARY_CHARS).collect(),
        commits: vec![(found.sha.clone(), claim.strength)],
    };
    ids.into_iter().map(claim).collect()
}

/// Joins claims with the same identifier. A tag adds nothing to the message of a commit.
fn join_claims(claims: impl Iterator<Item = Claim>) -> Vec<Claim> {
    let mut joined: Vec<Claim> = Vec::new();
    for claim in claims {
        match joined.iter_mut().find(|known| known.id == claim.id) {
            Some(known) => known.commits.extend(claim.commits),
            None => joined.push(claim),
        }
    }
    joined
}

/// Gives the commits that upstream's messages name to the advisories that know none. Returns the claims about other things.
fn attach_claims(
    candidates: &mut [(FoundAdvisory, FixCandidate)],
    claims: Vec<Claim>,
) -> Vec<Claim> {
    let mut rest = Vec::new();
    for claim in claims {
        let about = candidates.iter_mut().find(|(found, candidate)| {
            let has = |commit: &Sha| candidate.commits().any(|known| known == commit);
            claim.is_called(found) || claim.shas().any(has)
        });
        match about {
            None => rest.push(claim),
            Some((_, candidate))
                if candidate.beginnings.is_empty()
                    && candidate.named.is_empty()
                    && claim.says() =>
            {
                candidate.named = claim.shas().cloned().collect();
            }
            Some(_) => {}
        }
    }
    rest
}

fn advisory_finding(
    found: &FoundAdvisory,
    candidate: &FixCandidate,
    (presence, fixes): (Presence, Vec<FixCommit>),
) -> FixFinding {
    let FoundAdvisory { database, file, advisory } = found;
    let Presence { state, sureness, why } = presence;
    FixFinding {
        id: advisory.id.clone(),
        aliases: advisory.aliases.clone(),
        severity: advisory.severity,
        summary: advisory.summary.clone(),
        source: FindingSource::Advisory { database: database.clone(), file: file.clone() },
        state,
        sureness,
        why,
        fixes,
        fixed_in: candidate.versions.clone(),
    }
}

/// A finding by upstream's own words. Commits with code that say that they are the fix count before those that mention it, and
/// the latter count only where another commit, such as one of the release notes, says that it was fixed.
fn claim_finding(claim: Claim, fixes: &BTreeMap<Sha, FixCommit>) -> FixFinding {
    let with = |wanted: Option<ClaimStrength>| -> Vec<&FixCommit> {
        let commits = claim.commits.iter();
        let commits = commits.filter(|(_, strength)| wanted.is_none_or(|it| it == *strength));
        commits.filter_map(|(commit, _)| fixes.get(commit)).collect()
    };
    let plain = with(Some(ClaimStrength::Says));
    let found = if plain.iter().any(|fix| fix.has_code) { plain } else { with(None) };
    let presence = match found.is_empty() {
        true => Presence::unclear("upstream's tag names it; no commit is known as its fix"),
        false => join_fixes(&found),
    };
    let presence = match (presence.state, claim.says()) {
        (State::Missing, false) => Presence::unclear(format!(
            "upstream's message mentions it and does not say that it fixes it; {}",
            presence.why
        )),
        _ => presence,
    };
    let fixed_in = match &claim.source {
        FindingSource::Tag { name } => vec![name.clone()],
        FindingSource::Message | FindingSource::Advisory { .. } => Vec::new(),
    };
    let code = found.iter().find(|fix| fix.has_code).map(|fix| fix.subject.clone());
    FixFinding {
        id: claim.id,
        aliases: claim.aliases,
        severity: Severity::Unknown,
        summary: code.unwrap_or(claim.summary).chars().take(SUMMARY_CHARS).collect(),
        source: claim.source,
        state: presence.state,
        sureness: presence.sureness,
        why: presence.why,
        fixes: found.into_iter().cloned().collect(),
        fixed_in,
    }
}

/// Joins commits that together are a fix. Those without code, such as release notes, count only where there are no others.
fn join_fixes(fixes: &[&FixCommit]) -> Presence {
    let all = || fixes.iter().copied();
    let code: Vec<Presence> = all().filter(|fix| fix.has_code).map(FixCommit::presence).collect();
    match code.is_empty() {
        true => join_commits(&all().map(FixCommit::presence).collect::<Vec<_>>()),
        false => join_commits(&code),
    }
}
