//! Reads commit messages for words that act on others, with bounds: the range of an upstream may be large, and an agent may
//! write much.

use host::git::{FoundMessages, SealedRepo};
use model::id::Sha;

use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::message::message_points;
use crate::rules::strategy::Strategy;
use crate::rules::upstream_action::{ACTION_PATTERNS, UpstreamActions, fork_address};

/// Bytes of messages that are read.
const BYTES: usize = 16 << 20;

/// Sentences about new commits that are kept.
const POINTS: usize = 20;

impl ForkRun<'_> {
    /// Sentences about the messages of new commits. A rebase makes commits of the fork again, with the messages of their
    /// authors.
    pub(super) async fn read_messages(
        &self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<Vec<String>, Failure> {
        let record = &self.run.record;
        if record.settings.strategy == Strategy::Rebase {
            return Ok(Vec::new());
        }
        let known = [record.pins.base.clone(), record.pins.upstream.clone()];
        let found = repo.find_messages(tip, &known, &[], BYTES).await;
        let FoundMessages { messages, is_cut } = found.or_machine()?;
        let own = record.attribution.as_ref().map(|user| user.email.as_str());
        let points = messages.iter().flat_map(|(sha, text)| message_points(sha, text, own));
        let mut points: Vec<String> = points.take(POINTS).collect();
        points.extend(is_cut.then(|| "not all messages of new commits could be read".to_owned()));
        Ok(points)
    }

    /// Messages of upstream's new commits that may act on issues of the fork.
    pub(super) async fn read_upstream_messages(
        &self,
        repo: &SealedRepo,
    ) -> Result<Option<UpstreamActions>, Failure> {
        let record = &self.run.record;
        let known = std::slice::from_ref(&record.pins.base);
        let found = repo.find_messages(&record.pins.upstream, known, &ACTION_PATTERNS, BYTES).await;
        let FoundMessages { messages, is_cut } = found.or_machine()?;
        let fork = fork_address(&record.fork.forge);
        let mut actions = UpstreamActions { is_cut, ..UpstreamActions::default() };
        for (sha, message) in &messages {
            actions.read(sha, message, fork.as_ref());
        }
        Ok((actions != UpstreamActions::default()).then_some(actions))
    }
}
