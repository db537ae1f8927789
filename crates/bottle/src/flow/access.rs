//! The way to the forge for the host's side of a run: the variables, the token, the client.

use base64ct::{Base64, Encoding};
use forge::{Forge, ForgeAddress, ForgeKind, ForgeSetting, Remote, WebBase};
use host::git::UserEnv;
use model::exit::BottleExit;
use model::secret::Secret;

use super::home::Home;
use crate::exit::{Failure, OrExit};
use crate::rules::forge_env::{ForgeEnv, TOKEN_VARIABLE, parse_forge_env};

/// A forge run's variables and the token that goes with them.
#[derive(Debug, Clone)]
pub(crate) struct ForgeAccess {
    pub(crate) env: ForgeEnv,
    pub(crate) token: Secret,
    /// The login of the token's account, where the token may not say it.
    pub(crate) bot_login: Option<String>,
}

impl ForgeAccess {
    /// Reads the variables, and the token from its variable or its file.
    pub(crate) fn from_env(home: &Home) -> Result<Self, Failure> {
        let env = parse_forge_env(host::env::var).or_exit(BottleExit::Usage)?;
        Ok(Self { env, token: need_token(home)?, bot_login: None })
    }

    /// For a bottle that has a forge already: its record says which.
    pub(crate) fn of_record(home: &Home, env: Option<&ForgeEnv>) -> Result<Option<Self>, Failure> {
        let Some(env) = env else { return Ok(None) };
        Ok(find_token(home)?.map(|token| Self { env: env.clone(), token, bot_login: None }))
    }

    /// The client.
    pub(crate) async fn open(&self) -> Result<Forge, Failure> {
        open_forge(&self.env, self.token.clone()).await
    }

    /// The person's environment for git, with the token for this forge alone. It is in no argument and in no address.
    pub(crate) fn git_env(&self) -> UserEnv {
        UserEnv::from_env()
            .with("GIT_CONFIG_COUNT", "1")
            .with("GIT_CONFIG_KEY_0", format!("http.{}/.extraHeader", self.env.web))
            .with("GIT_CONFIG_VALUE_0", format!("Authorization: {}", self.authorization()))
    }

    /// How git shows the token. Gitea takes it as it is; the others want it as the password of a user of theirs.
    fn authorization(&self) -> String {
        let user = match self.env.kind.as_str() {
            "github" => "x-access-token",
            "gitlab" => "oauth2",
            _ => return format!("token {}", self.token.expose()),
        };
        let pair = format!("{user}:{}", self.token.expose());
        format!("Basic {}", Base64::encode_string(pair.as_bytes()))
    }
}

/// Opens the client for an assignment.
pub(crate) async fn open_forge(env: &ForgeEnv, token: Secret) -> Result<Forge, Failure> {
    let setting = ForgeSetting {
        kind: ForgeKind::parse(&env.kind),
        web: WebBase::parse(&env.web),
        ..ForgeSetting::default()
    };
    let Some(Remote::Hosted(address)) = ForgeAddress::parse_remote(&env.remote_url()) else {
        return Err(Failure::usage(format!("{} names no repository on a forge", env.remote_url())));
    };
    Forge::open(&address, token, &setting).await.or_general()
}

/// The token, from its variable or its file.
pub(crate) fn need_token(home: &Home) -> Result<Secret, Failure> {
    find_token(home)?.ok_or_else(|| {
        Failure::usage(format!(
            "the forge's token is not there: set {TOKEN_VARIABLE}, or put it into {} (mode 0600)",
            home.token_file().display()
        ))
    })
}

fn find_token(home: &Home) -> Result<Option<Secret>, Failure> {
    if let Some(token) = host::env::var(TOKEN_VARIABLE).filter(|token| !token.trim().is_empty()) {
        return Ok(Some(Secret::new(token.trim())));
    }
    match host::file::read_private(&home.token_file()) {
        Ok(bytes) => {
            let token = String::from_utf8_lossy(&bytes).trim().to_owned();
            Ok((!token.is_empty()).then(|| Secret::new(token)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).or_exit(BottleExit::Usage),
    }
}
