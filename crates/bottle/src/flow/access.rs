//! Access to the forge from the host's side of a run: the variables, the token, the client.

use std::sync::Arc;

use forge::{Forge, ForgeAddress, ForgeError, ForgeOptions, HttpPool, Remote, WebBase};
use host::git::UserEnv;
use model::exit::BottleExit;
use model::secret::Secret;
use shell::config::{Config, FORGE_TOKEN_VARIABLE};

use super::bottle::Record;
use super::home::Home;
use super::members::MemberCache;
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::forge_env::{ForgeEnv, TOKEN_VARIABLE, parse_forge_env};

/// Variables of a forge run and the token that goes with them.
#[derive(Debug, Clone)]
pub(crate) struct ForgeAccess {
    pub(crate) env: ForgeEnv,
    /// Empty where the kind of forge needs none.
    pub(crate) token: Secret,
    /// Login of the token's account, where the token may not say it.
    pub(crate) bot_login: Option<String>,
    /// Connections that are shared with others on the same runtime.
    pub(crate) pool: Option<HttpPool>,
    pub(crate) members: Arc<MemberCache>,
}

impl ForgeAccess {
    /// Reads the variables, and the token from its variable or its file.
    pub(crate) fn from_env(home: &Home) -> Result<Self, Failure> {
        let env = parse_forge_env(host::env::var).or_exit(BottleExit::Usage)?;
        let token = if env.kind.needs_token() {
            need_token(home, host_of(&env).as_deref())?
        } else {
            Secret::new("")
        };
        Self::new(env, token)
    }

    /// Returns `given`, or else reads the token for a bottle whose record names a forge; `None` without a token.
    pub(crate) fn or_of_record(
        given: Option<Self>,
        home: &Home,
        record: &Record,
    ) -> Result<Option<Self>, Failure> {
        let (None, Some(mut env)) = (&given, record.forge.clone()) else { return Ok(given) };
        // A record of an earlier version lacks it.
        env.allow_http |= ForgeEnv::allows_http(host::env::var);
        match find_token(home, host_of(&env).as_deref())? {
            Some(token) => Self::new(env, token).map(Some),
            None if env.kind.needs_token() => Ok(None),
            None => Self::new(env, Secret::new("")).map(Some),
        }
    }

    /// Refuses a token that git and the client would send unencrypted to another machine.
    pub(crate) fn new(env: ForgeEnv, token: Secret) -> Result<Self, Failure> {
        match WebBase::parse(&env.web).filter(WebBase::sends_in_the_clear) {
            Some(web) if !env.allow_http => {
                let host = web.host().to_owned();
                Err(ForgeError::PlainHttp { host }).or_exit(BottleExit::Usage)
            }
            Some(_) | None => {
                Ok(Self { env, token, bot_login: None, pool: None, members: Arc::default() })
            }
        }
    }

    pub(crate) async fn open(&self) -> Result<Forge, Failure> {
        open_forge(&self.env, &self.token, self.pool.clone()).await
    }

    /// The user's environment for git, with the token for this forge alone, which no argument and no address has.
    pub(crate) fn git_env(&self) -> UserEnv {
        let env = UserEnv::from_env();
        match self.env.kind.git_authorization(&self.token) {
            Some(value) => env
                .with("GIT_CONFIG_COUNT", "1")
                .with("GIT_CONFIG_KEY_0", format!("http.{}/.extraHeader", self.env.web))
                .with("GIT_CONFIG_VALUE_0", format!("Authorization: {value}")),
            None => env,
        }
    }
}

pub(crate) async fn open_forge(
    env: &ForgeEnv,
    token: &Secret,
    pool: Option<HttpPool>,
) -> Result<Forge, Failure> {
    let options = ForgeOptions {
        kind: Some(env.kind),
        web: WebBase::parse(&env.web),
        plain_http: env.plain_http(),
        pool,
        ..ForgeOptions::default()
    };
    let remote: Remote = ForgeAddress::parse_remote(&env.remote_url()).ok_or_else(|| {
        Failure::usage(format!("{} names no repository on a forge", env.remote_url()))
    })?;
    Forge::open(&remote, token, &options).await.or_general()
}

pub(crate) fn need_token(home: &Home, host: Option<&str>) -> Result<Secret, Failure> {
    find_token(home, host)?.ok_or_else(|| {
        Failure::usage(format!(
            "the forge's token is not there: set {FORGE_TOKEN_VARIABLE} (or {TOKEN_VARIABLE}), or put it into {} (mode 0600)",
            home.token_file.display()
        ))
    })
}

fn host_of(env: &ForgeEnv) -> Option<String> {
    WebBase::parse(&env.web).map(|web| web.host().to_owned())
}

/// Finds the token for the host of a forge: in a variable, in the shared configuration, or in the file.
fn find_token(home: &Home, host: Option<&str>) -> Result<Option<Secret>, Failure> {
    let shared = Config::load().or_exit(BottleExit::Usage)?;
    if let Some(token) = shared.forge_token(host, &[TOKEN_VARIABLE]).or_exit(BottleExit::Usage)? {
        return Ok(Some(token));
    }
    match host::file::read_private(&home.token_file) {
        Ok(bytes) => {
            let token = String::from_utf8_lossy(&bytes).trim().to_owned();
            Ok((!token.is_empty()).then(|| Secret::new(token)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).or_exit(BottleExit::Usage),
    }
}
