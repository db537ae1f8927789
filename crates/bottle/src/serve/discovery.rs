//! Discovery: the repositories of organisations that the configuration names with a star. What was found is stored, so that
//! a forge that is down at the start takes no repository away.

use std::sync::Arc;
use std::time::Duration;

use forge::{ForgeOptions, FoundRepository, PlainHttp, list_repositories};
use host::signal::Cancel;

use super::Service;
use super::settings::{ForgeSettings, ServeSettings, split_repo};
use crate::exit::{Failure, OrGeneral};
use crate::flow::fleet::open_store;
use crate::flow::home::Home;

/// Asks every organisation for its repositories and stores them. Returns what failed; what was stored before stays.
pub(super) async fn refresh(
    settings: &ServeSettings,
    home: &Home,
) -> Result<Vec<Failure>, Failure> {
    let mut failures = Vec::new();
    for forge in &settings.forges {
        for org in forge.organisations() {
            if let Err(failure) = refresh_one(forge, org, home).await {
                failures.push(Failure::transient(format!("{org}/*: {failure}")));
            }
        }
    }
    Ok(failures)
}

/// Asks organisations that were never asked, because the configuration has changed.
pub(super) async fn refresh_new(settings: &ServeSettings, home: &Home) -> Result<(), Failure> {
    for forge in &settings.forges {
        for org in forge.organisations() {
            let known =
                open_store(home)?.found_repositories(&source_of(forge, org)).or_general()?;
            if known.is_empty()
                && let Err(failure) = refresh_one(forge, org, home).await
            {
                tracing::warn!(org, %failure, "could not look for repositories; trying again later");
            }
        }
    }
    Ok(())
}

async fn refresh_one(forge: &ForgeSettings, org: &str, home: &Home) -> Result<(), Failure> {
    let kind = forge.kind().map_err(Failure::usage)?;
    let plain_http = if forge.allow_http { PlainHttp::Allowed } else { PlainHttp::Refused };
    let options = ForgeOptions { plain_http, ..ForgeOptions::default() };
    let token = forge.token(home)?;
    let found = list_repositories(kind, &forge.url, org, &token, &options).await.or_general()?;
    let is_served = |it: &FoundRepository| it.is_workable() && split_repo(&it.full_name).is_some();
    let names: Vec<String> =
        found.into_iter().filter(is_served).map(|repository| repository.full_name).collect();
    let (store, source) = (open_store(home)?, source_of(forge, org));
    // A token that lost its rights sees an empty organisation.
    if names.is_empty() && !store.found_repositories(&source).or_general()?.is_empty() {
        return Err(Failure::transient("the token sees no repository there any more"));
    }
    store.save_found_repositories(&source, &names).or_general()
}

/// The repositories of a forge that were found when it was asked last: without those that are left out, up to the limit.
pub(super) fn stored_names(
    forge: &ForgeSettings,
    settings: &ServeSettings,
    home: &Home,
) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for org in forge.organisations() {
        let mut found =
            open_store(home)?.found_repositories(&source_of(forge, org)).or_general()?;
        found.retain(|name| !forge.is_excluded(name));
        if found.len() > settings.max_found {
            let (count, most) = (found.len(), settings.max_found);
            tracing::warn!(
                org,
                count,
                most,
                "more repositories than max_found; the first are served"
            );
        }
        names.extend(found.into_iter().take(settings.max_found));
    }
    Ok(names)
}

/// Name of an organisation in the database.
fn source_of(forge: &ForgeSettings, org: &str) -> String {
    format!("{}/{org}", forge.url.trim_end_matches('/'))
}

/// Looks at the organisations every `discovery_secs`, until `stop`, and takes up what has changed.
pub(super) async fn keep_current(service: Arc<Service>, stop: Cancel) {
    loop {
        let pause = Duration::from_secs(service.settings().discovery_secs);
        tokio::select! {
            _ = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(failure) = look(&service).await {
            tracing::warn!(%failure, "could not look for repositories; trying again later");
        }
    }
}

async fn look(service: &Service) -> Result<(), Failure> {
    let settings = service.settings();
    let names = || -> Result<Vec<Vec<String>>, Failure> {
        settings.forges.iter().map(|it| stored_names(it, &settings, &service.home)).collect()
    };
    let before = names()?;
    for failure in refresh(&settings, &service.home).await? {
        tracing::warn!(%failure, "could not look for repositories; those found before stay");
    }
    if names()? != before {
        service.config.reload(&service.home).await?;
        tracing::info!("the repositories of an organisation have changed");
        service.reloaded.notify_one();
    }
    Ok(())
}
