//! Signs the commits of a result with the host's key, or the one of GnuPG that is configured, where the manifest asks for that. A signature is part of a commit, so
//! the published commits are twins of the agent's: the same trees, people, dates and messages, under other ids.

use std::collections::{BTreeMap, BTreeSet};

use host::git::SealedRepo;
use model::id::Sha;
use run_store::operation_log::{Operation, OperationOutcome};
use serde_json::json;

use super::bottle::SignedTwin;
use super::commit_signer::CommitSigner;
use super::run::BottleRun;
use crate::exit::{Failure, OrGeneral};

/// Commits that are signed. Larger results are refused before.
const COMMITS_MAX: usize = 10_000;

impl BottleRun<'_> {
    /// The commit to publish: the signed twin of the result, or the result itself. It is on disk before it is published,
    /// so that a process that goes on after a killed one publishes the same commit, whatever became of the key.
    pub(super) async fn sign_result(
        &mut self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<Sha, Failure> {
        if !self.run.record.manifest.sign_commits {
            self.record.signed = None;
            return Ok(tip.clone());
        }
        if let Some(twin) = self.record.signed.as_ref().filter(|twin| twin.from == *tip) {
            return Ok(twin.to.clone());
        }
        let signer = CommitSigner::load(self.context.home)?;
        let pins = &self.run.record.pins;
        let known = [pins.start.clone(), pins.base.clone()];
        let commits = repo.new_commits(tip, &known, COMMITS_MAX).await.or_general()?;
        let mut written: BTreeMap<Sha, Sha> = BTreeMap::new();
        let mut keys = BTreeSet::new();
        // Parents come before their children.
        for commit in commits.iter().rev() {
            let twin_of = |parent: &Sha| written.get(parent).unwrap_or(parent).clone();
            let parents: Vec<Sha> = commit.parents.iter().map(twin_of).collect();
            let plain = repo.commit_with_parents(&commit.sha, &parents).await.or_general()?;
            let signature = signer.sign(&plain).await?;
            let signed = repo.write_signed(&plain, &signature.armored).await.or_general()?;
            keys.insert(signature.key);
            written.insert(commit.sha.clone(), signed);
        }
        let to = written.remove(tip).unwrap_or_else(|| tip.clone());
        let line = Operation::new("commits.sign", pins.branch.as_str(), OperationOutcome::Done);
        let detail = json!({ "from": tip, "to": to, "count": commits.len(), "keyid": keys });
        let log = self.run.operations().or_general()?;
        log.append(&line.with_detail(detail)).or_general()?;
        self.record.signed = Some(SignedTwin { from: tip.clone(), to: to.clone() });
        self.bottle.save(&self.record)?;
        host::failpoint::hit("commits-signed");
        Ok(to)
    }
}
