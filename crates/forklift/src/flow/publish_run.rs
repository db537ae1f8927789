//! A run that publishes the commit of an earlier one, without an agent. A closed run is never edited, so the publication
//! has a record of its own.

use engine::attribution::Attribution;
use engine::run::{Phase, Product, create, gather_evidence, load_plan};
use engine::workspace::{AGENT_IDENTITY, link_folder};
use host::git::{PushUrls, RemoteBranch, UserRepo};
use run_store::run_dir::RunDir;

use super::earlier::{StoredRun, branch_at, find_later_result};
use super::integrate::HOST_IDENTITY;
use super::observe::{find_push_urls, project_of};
use super::pull::ForgePlan;
use super::record::{Fork, ForkRecord, ForkRunRecord};
use super::resume::{load_args, save_args};
use super::run::{ForkRun, workspace_failure};
use crate::commands::ForkliftDirs;
use crate::commands::run_args::{AcceptArgs, RunArgs};
use crate::exit::{Failure, OrExit};
use crate::rules::judge::Verdict;
use crate::rules::publish_mode::PublishMode;

/// Refuses a closed run whose commit cannot be published.
pub(crate) fn refuse_unpublishable(
    places: &ForkliftDirs,
    run: &StoredRun,
    accept: &AcceptArgs,
) -> Result<(), Failure> {
    let StoredRun { dir, meta } = run;
    let id = dir.id();
    let verdict = meta.verdict.clone().unwrap_or(Verdict::UpToDate);
    if meta.tip().is_none() || !dir.repo().is_dir() {
        return Err(Failure::usage(format!(
            "{id} has no commit to publish: {}",
            verdict.message()
        )));
    }
    if verdict != Verdict::Publish && !accept.is_given() {
        return Err(Failure::usage(format!("{id} was not verified: {}", verdict.message())));
    }
    match find_later_result(&places.runs, id, meta)? {
        Some(later) => Err(Failure::usage(format!(
            "{id} is outdated: {later} published a later result for this fork"
        ))),
        None => Ok(()),
    }
}

/// Returns whether nothing is left to publish: origin has the branch, and there is a pull request or no forge for one.
pub(crate) async fn is_published(repo: &UserRepo, meta: &ForkRunRecord) -> bool {
    let Some(sent) = &meta.publication else { return false };
    let is_complete = sent.pushed && sent.problem.is_none() && sent.note.is_none();
    // A branch that is not there any more can be published again.
    is_complete && branch_at(repo, &meta.fork, sent).await != Some(RemoteBranch::Absent)
}

/// Findings that the run of a publication accepts.
pub(crate) enum Acceptance<'a> {
    /// These, beside those of the earlier run.
    Also(&'a AcceptArgs),
    /// Those of a new request for the same commits, and no others.
    Only(&'a RunArgs),
}

/// Creates the run. A verified commit is published as it is; another one, and one that was verified because more was accepted
/// than now, is judged again.
pub(crate) async fn create_publish_run(
    places: &ForkliftDirs,
    run: &StoredRun,
    repo: &UserRepo,
    accept: Acceptance<'_>,
    mode: PublishMode,
) -> Result<RunDir, Failure> {
    let StoredRun { dir, meta } = run;
    let now = host::clock::now();
    let new = RunDir::create(&places.runs, &project_of(&meta.fork.path), now).or_machine()?;
    link_folder(&dir.repo(), &new.repo()).await.map_err(workspace_failure)?;
    let fork = renew_addresses(&meta.fork, find_push_urls(repo, &meta.fork.remotes.origin).await?);
    let plan = load_plan(dir).map_err(ForkRun::failure)?;
    let mut secrets = plan.key.values().unwrap_or_default();
    secrets.extend(ForgePlan::find(&fork.forge, places)?.token);
    let mut product = ForkRecord {
        fork,
        publishes: Some(meta.publishes.clone().unwrap_or_else(|| dir.id().clone())),
        resumed_from: None,
        continued_work: None,
        ..meta.product.clone()
    };
    let mut args = load_args(dir)?;
    let is_less = match accept {
        Acceptance::Also(accept) => {
            accept.apply(&mut product.settings);
            false
        }
        Acceptance::Only(request) => {
            args = request.clone();
            AcceptArgs::of(request).replace(&mut product.settings)
        }
    };
    product.settings.publish_mode = mode;
    let is_verified = meta.verdict == Some(Verdict::Publish) && !is_less;
    if !is_verified {
        // The check is run again.
        (product.check, product.check_changed, product.ran_tests) = (None, None, None);
    }
    let record = ForkRunRecord {
        run: new.id().clone(),
        phase: if is_verified { Phase::Checked } else { Phase::Imported },
        started_at: now,
        finished_at: None,
        verdict: meta.verdict.clone().filter(|_| is_verified),
        publication: None,
        exit_status: None,
        operations_head: None,
        product,
        ..meta.clone()
    };
    save_args(&args, &new)?;
    create::<ForkRun<'_>>(&new, &record, &plan, &secrets).map_err(ForkRun::failure)?;
    Ok(new)
}

/// The addresses as they are now: a wrong one may be the reason why the commit was not published.
fn renew_addresses(fork: &Fork, urls: PushUrls) -> Fork {
    let is_derived = fork.forge == fork.push_url() || fork.forge == fork.origin;
    let forge = if is_derived { urls.first.clone() } else { fork.forge.clone() };
    Fork { forge, ..fork.pushing_to(urls) }
}

impl ForkRun<'_> {
    /// Gathers the evidence about the commit of a run that is to be judged again, by the rules of today.
    pub(crate) async fn gather_again(&mut self) -> Result<(), Failure> {
        if self.run.record.phase != Phase::Imported {
            return Ok(());
        }
        let Some(tip) = self.run.record.tip() else { return Ok(()) };
        let repo = self.run.import_repo(&self.repo);
        let by_host = self.run.record.merged_alone;
        let own = if by_host { HOST_IDENTITY } else { AGENT_IDENTITY };
        let user = self.run.record.attribution.as_ref().map(Attribution::identity);
        let before = self.run.record.evidence.clone().unwrap_or_default();
        let identity = user.as_ref().map_or(own, |it| (it.name.as_str(), it.email.as_str()));
        gather_evidence(self, &repo, &tip, identity).await?;
        if let (Some(evidence), Some(_)) = (&mut self.run.record.evidence, user) {
            // Strangers were looked for among the commits as the box made them, which are not here any more.
            evidence.foreign_count = before.foreign_count;
            evidence.foreign_identities = before.foreign_identities;
        }
        Ok(())
    }

    /// Accepts findings in a run that is not closed. A verdict that they led to is made again.
    pub(crate) fn accept(&mut self, accept: &AcceptArgs) {
        if !accept.is_given() {
            return;
        }
        let record = &mut self.run.record;
        accept.apply(&mut record.product.settings);
        let is_refused = record.verdict.as_ref().is_some_and(|it| *it != Verdict::Publish);
        if is_refused && record.phase > Phase::Imported && record.tip().is_some() {
            (record.phase, record.verdict, record.product.check) = (Phase::Imported, None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_the_user_gave_is_kept_and_a_derived_one_follows_origin() {
        let fork = |forge: &str, push: Option<&str>| Fork {
            path: "/fork".into(),
            origin: "https://old.example/me/fork".to_owned(),
            push_url: push.map(str::to_owned),
            more_push_urls: Vec::new(),
            upstream: "https://up.example/fork".to_owned(),
            branch: model::id::BranchName::parse("main").unwrap(),
            upstream_branch: None,
            remotes: crate::flow::record::ForkRemotes::default(),
            forge: forge.to_owned(),
        };
        let new = "https://new.example/me/fork";
        let urls = || PushUrls { first: new.to_owned(), more: Vec::new() };
        let forge = |fork: Fork| renew_addresses(&fork, urls()).forge;
        assert_eq!(forge(fork("https://old.example/me/fork", None)), new);
        assert_eq!(
            forge(fork("ssh://old.example/me/fork", Some("ssh://old.example/me/fork"))),
            new
        );
        assert_eq!(forge(fork("https://given.example/a/b", None)), "https://given.example/a/b");
    }
}
