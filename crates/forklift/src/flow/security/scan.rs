//! Findings about a fork: what advisories and upstream's own words name as fixes, and what the fork has of them.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{FoundMessage, TagMessage};
use model::id::Sha;
use shell::Ui;

use super::facts::{CommitPlace, ForkFacts};
use super::judge::join_fixes;
use super::source::{FoundAdvisory, LoadedAdvisories};
use crate::exit::{Failure, OrExit};
use crate::rules::security::advisory::{Advisory, AdvisoryId};
use crate::rules::security::candidate::{FixCandidate, NamedCommits};
use crate::rules::security::finding::{FindingSource, FixCommit, FixFinding};
use crate::rules::security::message::{
    ClaimStrength, ID_PATTERNS, UPSTREAM_PATTERNS, find_ids, read_message,
};
use crate::rules::security::presence::{Presence, State};
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
        let mut findings: Vec<FixFinding> = Vec::new();
        for (found, candidate) in &candidates {
            let judged = self.judge(candidate, &fixes).await?;
            let judged = self.judge_together(judged).await?;
            let finding = advisory_finding(found, candidate, judged);
            // Of copies of which none is newer, the worse counts.
            match findings.iter_mut().find(|known| known.id == finding.id) {
                Some(known) if finding.is_weaker_than(known) => *known = finding,
                Some(_) => {}
                None => findings.push(finding),
            }
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
            let stands = self.facts.reverted_by(&found.sha).is_none();
            (claim.strength == ClaimStrength::Says && stands).then_some((claim.ids, found.sha))
        });
        Ok(said.flat_map(|(ids, sha)| ids.into_iter().map(move |id| (id, sha.clone()))).collect())
    }

    /// The advisories about the project. The commits of all of them are looked for at once.
    async fn candidates(
        &self,
        loaded: &mut LoadedAdvisories,
    ) -> Result<Vec<(FoundAdvisory, FixCandidate)>, Failure> {
        loaded.keep_newest();
        let all = || loaded.advisories.iter().map(|found| &found.advisory);
        let pairs: BTreeSet<(Sha, Sha)> = all().flat_map(Advisory::pairs).collect();
        let begins = all().flat_map(Advisory::begin_commits);
        let named = all().flat_map(Advisory::fix_commits).chain(begins).collect();
        let places = self.facts.places(&named).await?;
        let known: BTreeSet<Sha> = places
            .into_iter()
            .filter(|(_, place)| *place != CommitPlace::Elsewhere)
            .map(|(commit, _)| commit)
            .collect();
        let mut ordered = BTreeSet::new();
        for (begin, fix) in pairs {
            if known.contains(&begin)
                && known.contains(&fix)
                && self.facts.repo.is_ancestor(&begin, &fix).await.or_machine()?
            {
                ordered.insert((begin, fix));
            }
        }
        let commits = NamedCommits { known: &known, ordered: &ordered };
        let mut candidates: Vec<(FoundAdvisory, FixCandidate)> = Vec::new();
        for found in std::mem::take(&mut loaded.advisories) {
            let Some(candidate) = FixCandidate::of(&found.advisory, self.project, &commits) else {
                continue;
            };
            if let Some(database) =
                loaded.databases.iter_mut().find(|it| it.source == found.database)
            {
                database.matching += 1;
            }
            candidates.push((found, candidate));
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
        // The fork's own commits name its own pull requests.
        let tips = &self.facts.upstream;
        let found = self.facts.repo.search_messages(tips, &[], &patterns, MOST_MESSAGES).await;
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
        fixed_in: candidate.versions(),
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
