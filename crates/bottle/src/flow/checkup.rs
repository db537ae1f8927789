//! Checks of `doctor` beyond this machine: the forge's account, organisation and webhook, and the model servers of all
//! agents. Nothing is changed.

use std::time::Duration;

use forge::Forge;
use host::web_proxy::{WebProxy, WebScheme};
use shell::doctor::Finding;
use tokio::net::TcpStream;

use super::home::{Home, ManifestKind};
use super::hooks::{HookSite, installed_hooks};
use super::resolve::resolve_manifest_agent;
use crate::exit::Failure;
use crate::rules::forge_env::DEFAULT_ORG;
use crate::rules::hook::{HookFile, HookPlace, server_of};

const CONNECT_LIMIT: Duration = Duration::from_secs(3);

pub(crate) async fn check_forge(home: &Home) -> Vec<Finding> {
    observe_forge(home).await.unwrap_or_else(|finding| vec![finding])
}

/// The error is the finding that makes further checks impossible.
async fn observe_forge(home: &Home) -> Result<Vec<Finding>, Finding> {
    let variable = |name| host::env::var(name).filter(|value: &String| !value.trim().is_empty());
    let names = ["FORGE_GITEA_API", "FORGE_OWNER", "FORGE_REPO"];
    let [Some(_), Some(owner), Some(repo)] = names.map(variable) else {
        let advice = format!("not looked at: set {} and FORGE_TOKEN", names.join(", "));
        return Err(Finding::odd("forge", advice));
    };
    let name = format!("{}/{}", owner.trim(), repo.trim());
    let site = HookSite::open(home, &name).await;
    let site = site.map_err(|failure| Finding::bad("forge", failure.to_string()))?;
    let account = site.forge.whoami().await;
    let account = account.map_err(|error| Finding::bad("forge", model::error_chain(&error)))?;
    let login =
        account.login.clone().unwrap_or_else(|| "an account that it does not name".to_owned());
    let account_text = format!("{login} on {}, {}", site.place.host, site.place.repo);
    let identity = match account.may_push {
        false => Finding::bad("forge", format!("{account_text}; that account may not push")),
        true => Finding::good("forge", account_text),
    };
    let org = variable("FORGE_ORG").unwrap_or_else(|| DEFAULT_ORG.to_owned());
    let org = check_org(&site.forge, org.trim(), account.login.as_deref()).await;
    let mut findings = vec![identity, org];
    findings.extend(check_webhook(home, &site).await.unwrap_or_else(|finding| vec![finding]));
    Ok(findings)
}

/// Checks that the forge reveals members: membership is queried for each event.
async fn check_org(forge: &Forge, org: &str, login: Option<&str>) -> Finding {
    let Some(login) = login else {
        let why = "whose token it is, is not known";
        return Finding::odd("org", format!("not looked at: {why}; members of '{org}' may assign"));
    };
    match forge.is_org_member(org, login).await {
        Ok(true) => {
            Finding::good("org", format!("'{org}' tells who its members are; {login} is one"))
        }
        Ok(false) => Finding::bad(
            "org",
            format!(
                "{login} is no member of '{org}', or there is no such organisation; its members could not be seen"
            ),
        ),
        Err(error) => Finding::bad("org", model::error_chain(&error)),
    }
}

async fn check_webhook(home: &Home, site: &HookSite) -> Result<Vec<Finding>, Finding> {
    let name = "webhook";
    let installed = installed_hooks(home);
    let installed = installed.map_err(|failure| Finding::bad(name, failure.to_string()))?;
    let HookPlace { host, repo, .. } = &site.place;
    let is_ours = |hook: &&HookFile| hook.host == *host && hook.repo == *repo;
    let Some(hook) = installed.iter().find(is_ours) else {
        let advice = format!(
            "none was installed; for bot-bottle serve: bot-bottle hook install {repo} --url URL"
        );
        return Err(Finding::odd(name, advice));
    };
    let again =
        format!("install it again: bot-bottle hook install {} --url {}", hook.repo, hook.url);
    let there = site.forge.webhooks().await;
    let there = there.map_err(|error| Finding::bad(name, model::error_chain(&error)))?;
    let finding = match there.iter().find(|there| there.url == hook.url) {
        None => {
            Finding::bad(name, format!("the forge has none that leads to {}; {again}", hook.url))
        }
        Some(there) if !there.active => {
            Finding::bad(name, format!("the one to {} is not active; {again}", hook.url))
        }
        Some(_) if hook.installed_at.is_none() => {
            Finding::bad(name, format!("its secret may not be the forge's; {again}"))
        }
        Some(_) => Finding::good(name, format!("leads to {}", hook.url)),
    };
    Ok(vec![finding, check_receiver(&hook.url).await])
}

/// Checks the receiver from this machine; the forge may see another network.
async fn check_receiver(url: &str) -> Finding {
    match probe(url).await {
        Ok(server) => Finding::good("receiver", format!("{server} answers, seen from here")),
        Err(why) => {
            // A forge does not repeat deliveries, so each one is lost until a sweep finds its issue.
            Finding::bad("receiver", format!("{why}, seen from here; is bot-bottle serve running?"))
        }
    }
}

/// Checks the model server of each agent; an agent without a model needs none.
pub(crate) async fn check_egress(home: &Home) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for name in home.names(ManifestKind::Agents)? {
        let resolved = match home.load_agent(&name) {
            Ok(manifest) => resolve_manifest_agent(home, &manifest).await,
            Err(failure) => Err(failure),
        };
        let finding = match resolved.map(|agent| agent.model_server()) {
            Err(failure) => Finding::bad("agent", format!("{name}: cannot be started: {failure}")),
            Ok(None) => {
                Finding::good("egress", format!("{name}: has no model and needs no way to one"))
            }
            Ok(Some(url)) => match probe(&url).await {
                Ok(server) => Finding::good("egress", format!("{name}: {server} answers")),
                Err(why) => Finding::odd("egress", format!("{name}: {why}")),
            },
        };
        findings.push(finding);
    }
    Ok(findings)
}

/// Connects to the server of an address as runs do: through the proxy of the network, where there is one for it.
async fn probe(url: &str) -> Result<String, String> {
    let (host, port) = server_of(url).ok_or_else(|| format!("{url} names no server"))?;
    let web = WebProxy::from_env().map_err(|error| error.to_string())?;
    let scheme = if url.starts_with("https:") { WebScheme::Https } else { WebScheme::Http };
    let proxy = web.server_for(scheme, &host, port);
    let way = if proxy.is_some() { ", through the proxy," } else { "" };
    let connecting = async {
        let connected = match proxy {
            Some(proxy) => proxy.connect(&host, port).await.map(drop).map_err(|it| it.to_string()),
            None => TcpStream::connect((&*host, port))
                .await
                .map(drop)
                .map_err(|error| format!("does not answer ({error})")),
        };
        connected.map_err(|why| format!("{host}:{port} {why}"))
    };
    let server = format!("{host}:{port}{way}");
    match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
        Ok(Ok(())) => Ok(server),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("{server} does not answer within {} s", CONNECT_LIMIT.as_secs())),
    }
}
