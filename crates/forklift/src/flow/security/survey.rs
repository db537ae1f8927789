//! Survey of a fork: fetches it, reads the advisories, and reports every fix of upstream.

use std::collections::BTreeMap;
use std::path::Path;

use host::git::{FetchProgress, TagMessage, UserRepo};
use model::id::{RemoteName, Sha};
use shell::Ui;
use shell::identity::find_attribution;

use super::facts::ForkFacts;
use super::scan::{FixScan, ReleaseTags};
use super::source::LoadedAdvisories;
use crate::commands::ForkliftDirs;
use crate::commands::run_args::LookArgs;
use crate::exit::{Failure, OrExit};
use crate::flow::observe::{FETCH_LIMIT, Observation, ObserveOptions, fork_key, observe};
use crate::flow::past::ForkPast;
use crate::rules::fork_file::SecurityRules;
use crate::rules::security::finding::Report;
use crate::rules::security::project::ProjectNames;
use crate::rules::security::source_name::SourceName;
use crate::rules::target::Target;

/// Branches of upstream whose histories are searched.
const MOST_BRANCHES: usize = 300;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SurveyOptions<'a> {
    pub(crate) look: &'a LookArgs,
    /// Sources of advisories instead of the configured ones.
    pub(crate) sources: &'a [String],
    /// Names of upstream beside its address.
    pub(crate) projects: &'a [String],
    pub(crate) update: bool,
}

pub(crate) async fn survey(
    ui: &Ui,
    repo: UserRepo,
    places: &ForkliftDirs,
    options: SurveyOptions<'_>,
) -> Result<Report, Failure> {
    let remotes = &options.look.names.remotes(&places.shared);
    // The fork file may ask for releases; a fix counts as soon as upstream has it.
    let tip = Target::Tip;
    let seen = observe(
        ui,
        repo,
        ObserveOptions {
            remotes,
            main_branch: options.look.names.main_branch.as_ref(),
            target: Some(options.look.target.as_ref().unwrap_or(&tip)),
            forge: None,
            cache: &places.cache,
            checkout: None,
        },
    )
    .await?;
    let rules = seen.fork_file.as_ref().map(|file| file.rules.security.clone()).unwrap_or_default();
    let sources = sources(&options, places, &rules)?;
    let mut loaded = LoadedAdvisories::read(ui, &sources, &places.cache, options.update).await?;
    let upstream = upstream_tips(&seen).await?;
    let past = ForkPast::open(&seen.repo, &remotes.origin, &places.cache).await?;
    let facts =
        ForkFacts::observe(ui, past.sealed.clone(), seen.pins.base.clone(), upstream).await?;
    let names = options.projects.iter().chain(&rules.upstream).map(String::as_str);
    let project = ProjectNames::new(names.chain([seen.fork.upstream.as_str()]));
    let tags = release_tags(&seen.repo, &remotes.upstream, &loaded).await?;
    let tag_messages = tag_messages(ui, &seen.repo, &remotes.upstream, places).await?;
    let scan =
        FixScan { ui, facts: &facts, project: &project, tags: &tags, tag_messages: &tag_messages };
    let findings = scan.find(&mut loaded).await?;
    let behind =
        seen.repo.count_commits(&seen.pins.upstream, &seen.pins.base).await.or_machine()?;
    let user = find_attribution(&seen.repo, &places.shared, false).await.or_machine()?;
    let mut report = Report {
        fork: seen.fork.path,
        branch: seen.fork.branch,
        origin: seen.fork.origin,
        upstream: seen.fork.upstream,
        base: seen.pins.base,
        target: seen.pins.upstream,
        target_name: seen.target_name,
        behind,
        at: host::clock::now(),
        author: user
            .map_or_else(|| "unknown".to_owned(), |user| format!("{} <{}>", user.name, user.email)),
        databases: loaded.databases,
        findings,
    };
    report.sort();
    Ok(report)
}

/// The sources that were named, else those of the configuration and of the fork.
fn sources(
    options: &SurveyOptions<'_>,
    places: &ForkliftDirs,
    rules: &SecurityRules,
) -> Result<Vec<SourceName>, Failure> {
    let here = host::env::current_dir().or_usage()?;
    let parse = |text: &str, base: &Path| SourceName::parse(text, base).or_usage();
    if !options.sources.is_empty() {
        return options.sources.iter().map(|text| parse(text, &here)).collect();
    }
    let configured = places.shared.security.advisories.as_deref().unwrap_or_default();
    let configured = configured.split(',').map(str::trim).filter(|text| !text.is_empty());
    let mut found = Vec::new();
    for text in configured {
        let source = parse(text, &here)?;
        if matches!(&source, SourceName::Path { .. })
            && !Path::new(text.split('#').next().unwrap_or(text)).is_absolute()
        {
            return Err(Failure::usage(format!(
                "security.advisories names the relative folder '{text}'; name an absolute one"
            )));
        }
        found.push(source);
    }
    for text in &rules.advisories {
        found.push(SourceName::parse_foreign(text).or_usage()?);
    }
    Ok(found)
}

/// Tips of the branches that upstream has, the target first.
pub(crate) async fn upstream_tips(seen: &Observation) -> Result<Vec<Sha>, Failure> {
    let branches = seen.upstream_branches().await?;
    let mut tips = vec![seen.pins.upstream.clone()];
    for (_, tip) in branches.into_iter().take(MOST_BRANCHES) {
        if !tips.contains(&tip) {
            tips.push(tip);
        }
    }
    Ok(tips)
}

/// Messages of upstream's tags. They are fetched into a repository of the host's, because tags in the user's would be new
/// names there; the tags of the checkout are read where that fails.
async fn tag_messages(
    ui: &Ui,
    user: &UserRepo,
    upstream: &RemoteName,
    places: &ForkliftDirs,
) -> Result<Vec<TagMessage>, Failure> {
    let path = places.cache.join("forks").join(format!("{}.tags.git", fork_key(user)));
    let fetched = async {
        let repo = user.beside(&path).await?;
        let tags = ["+refs/tags/*:refs/tags/*"];
        repo.fetch_nameless(upstream, &tags, FETCH_LIMIT, &FetchProgress::default()).await?;
        repo.tag_messages().await
    };
    match fetched.await {
        Ok(messages) => Ok(messages),
        Err(error) => {
            let text = format!("upstream's tags could not be fetched: {}", error.reason());
            ui.warn(&format!("{text}; only tags of the checkout are read"));
            user.tag_messages().await.or_machine()
        }
    }
}

/// Upstream's tags, if an advisory names versions.
async fn release_tags(
    repo: &UserRepo,
    upstream: &RemoteName,
    loaded: &LoadedAdvisories,
) -> Result<ReleaseTags, Failure> {
    if loaded.advisories.is_empty() {
        return Ok(BTreeMap::new());
    }
    let refs = repo.remote_refs(upstream, "refs/tags/*", FETCH_LIMIT).await.or_machine()?;
    let named = refs
        .into_iter()
        .filter_map(|tag| Some((tag.name.strip_prefix("refs/tags/")?.to_owned(), tag.id)));
    Ok(named.collect())
}
