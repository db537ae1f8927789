//! Logins of the agents' own programs: which file has them, and where in it. A token of a login stays outside the box like any
//! key; the file is read again when a server refuses the token, because the program itself renews it there.

use std::path::PathBuf;

use agent::Provider;
use egress::model_route::AuthStyle;
use serde_json::Value;

use super::ResolveAgentError;

/// Server of ChatGPT logins.
pub(super) const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";

/// A login on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) path: PathBuf,
    /// Place of the token in the file, as a JSON pointer.
    pub(super) pointer: String,
    /// Place of the account's id, where the server asks for it.
    pub(super) account: Option<&'static str>,
    /// Header for the token, where that differs from a key.
    pub(super) auth: Option<AuthStyle>,
}

/// The login of an agent's program. `vendor` is the prefix of the model's server, for programs that have several.
pub(super) fn find_login(provider: Provider, vendor: &str) -> Option<Login> {
    let home = |variable: &str, usual: &str| {
        let set = host::env::var_os(variable).filter(|value| !value.is_empty());
        Some(set.map_or(host::env::home()?.join(usual), PathBuf::from))
    };
    let token = |pointer: &str| pointer.to_owned();
    Some(match provider {
        Provider::Claude => Login {
            path: home("CLAUDE_CONFIG_DIR", ".claude")?.join(".credentials.json"),
            pointer: token("/claudeAiOauth/accessToken"),
            account: None,
            auth: Some(AuthStyle::ClaudeLogin),
        },
        Provider::Codex => Login {
            path: home("CODEX_HOME", ".codex")?.join("auth.json"),
            pointer: token("/tokens/access_token"),
            account: Some("/tokens/account_id"),
            auth: Some(AuthStyle::ChatgptLogin),
        },
        Provider::OpenCode => Login {
            path: home("XDG_DATA_HOME", ".local/share")?.join("opencode/auth.json"),
            pointer: format!("/{vendor}/key"),
            account: None,
            auth: None,
        },
        Provider::Pi => Login {
            path: home("PI_CODING_AGENT_DIR", ".pi/agent")?.join("auth.json"),
            pointer: format!("/{vendor}/key"),
            account: None,
            auth: None,
        },
        Provider::Command | Provider::Scripted => return None,
    })
}

/// Variable with a token that the agent's program makes for machines, and the header for it.
pub(super) fn machine_token(provider: Provider) -> Option<(&'static str, AuthStyle)> {
    match provider {
        // `claude setup-token` prints it.
        Provider::Claude => Some(("CLAUDE_CODE_OAUTH_TOKEN", AuthStyle::ClaudeLogin)),
        Provider::OpenCode
        | Provider::Codex
        | Provider::Pi
        | Provider::Command
        | Provider::Scripted => None,
    }
}

/// Returns whether an agent's program has a login here that can be used.
pub fn has_login(provider: Provider, vendor: &str) -> bool {
    find_login(provider, vendor).is_some_and(|login| login.check(provider).is_ok())
}

impl Login {
    /// Checks that the token is there and has not expired.
    pub(super) fn check(&self, provider: Provider) -> Result<(), ResolveAgentError> {
        let name = provider.name();
        let fault =
            |reason: String| ResolveAgentError::Settings { path: self.path.clone(), reason };
        if !self.path.exists() {
            return Err(fault(format!("there is no login here; log in with {name} first")));
        }
        let bytes = host::file::read_private(&self.path)?;
        let file: Value = serde_json::from_slice(&bytes)
            .map_err(|_unreadable| fault(format!("it is not a login of {name}")))?;
        let token = file.pointer(&self.pointer).and_then(Value::as_str);
        if token.is_none_or(str::is_empty) {
            return Err(fault(format!("it has no login that can be used; log in with {name}")));
        }
        let expires_ms = file.pointer("/claudeAiOauth/expiresAt").and_then(Value::as_i64);
        if expires_ms.is_some_and(|at| at <= host::clock::now().as_millisecond()) {
            return Err(fault(format!(
                "the login has expired; start {name} once, which renews it"
            )));
        }
        Ok(())
    }
}
