//! The parts of a run that differ for one that lands a fix alone.

use engine::attribution::Attribution;
use host::git::SealedRepo;
use merge::likeness::Likeness;
use model::id::Sha;

use super::compare::{CodeComparison, FixChange};
use super::land::{flatten, restore_pins};
use crate::exit::{Failure, OrExit};
use crate::flow::integrate::host_identity;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::ForkRun;
use crate::rules::security::fix::{FixLanding, FixMaker};

impl ForkRun<'_> {
    /// Makes the pinned commits of a fix again if git has removed them since.
    pub(in crate::flow) async fn restore_fix(&self) -> Result<(), Failure> {
        let record = &self.run.record;
        match &record.fix {
            Some(fix) => restore_pins(&self.repo, &record.pins, fix).await,
            None => Ok(()),
        }
    }

    /// Counts the lines of a fix in the result.
    pub(in crate::flow) async fn inspect_fix(
        &mut self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<(), Failure> {
        let record = &self.run.record;
        if record.fix.is_none() {
            return Ok(());
        }
        let (base, upstream) = (&record.pins.base, &record.pins.upstream);
        // The stand-in for the fork has the state of upstream before the fix as its last parent.
        let parents = repo.commit_parts(base).await.or_machine()?.parents;
        let likeness = match parents.into_iter().last() {
            Some(before) => {
                let change = FixChange::between(repo, &before, upstream).await.or_machine()?;
                let comparison = CodeComparison { repo, other: tip, common: None };
                comparison.compare(&change).await.or_machine()?.likeness
            }
            None => Likeness::default(),
        };
        if let Some(fix) = &mut self.run.record.product.fix {
            fix.landing = Some(FixLanding::new(FixMaker::Agent, likeness));
        }
        Ok(())
    }

    /// Records who applied a fix, which is known only after its result was looked at.
    pub(in crate::flow) fn note_fix_maker(&mut self) {
        let record = &mut self.run.record.product;
        let maker = match (record.merged_alone, &record.resolver) {
            (true, None) => FixMaker::Git,
            (true, Some(_)) => FixMaker::Resolver,
            (false, _) => FixMaker::Agent,
        };
        if let Some(landing) = record.fix.as_mut().and_then(|fix| fix.landing.as_mut()) {
            landing.maker = maker;
        }
    }

    /// The commit to publish for a verified result: the result itself, or for a fix one commit with its files on top of the
    /// fork's branch.
    pub(in crate::flow) async fn commit_to_publish(
        &mut self,
        repo: &SealedRepo,
        tip: Sha,
    ) -> Result<Sha, Failure> {
        let record = &self.run.record;
        let Some(fix) = &record.fix else { return Ok(tip) };
        let user = record.attribution.as_ref();
        let committer = user.map_or_else(host_identity, Attribution::identity);
        let agent = record.settings.agent_name().filter(|_| !record.merged_alone);
        let trailers = user.map(|user| user.trailers(agent)).unwrap_or_default();
        let commit =
            flatten(repo, fix, (&record.pins.upstream, &tip), &committer, &trailers).await?;
        if let Some(fix) = &mut self.run.record.product.fix {
            fix.commit = Some(commit.clone());
        }
        Ok(commit)
    }
}

/// The commit that a run publishes, as far as it is known.
pub(in crate::flow) fn result_commit(record: &ForkRunRecord) -> Option<Sha> {
    match &record.fix {
        Some(fix) => fix.commit.clone().or_else(|| record.tip()),
        None => record.tip(),
    }
}
