//! The key that signs published commits: the host's own, or one of GnuPG that the configuration names.

use std::time::Duration;

use attest::key::SecretKey;
use attest::ssh_signature::GIT_NAMESPACE;
use host::process::{RunLimits, run_with_input};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::escape::escape_line;
use model::exit::BottleExit;
use shell::config::Config;
use shell::doctor::Finding;

use super::home::Home;
use crate::exit::{Failure, OrExit, OrGeneral};
use crate::rules::gpg_status::{CommitSignature, read_signature};

/// Time for one signature. An agent of GnuPG that asks for a passphrase somewhere is not waited for longer.
const GPG_LIMIT: Duration = Duration::from_secs(20);
const GPG_OUTPUT_MAX: usize = 64 << 10;

pub(super) enum CommitSigner {
    Host(SecretKey),
    Gpg(GpgKey),
}

impl CommitSigner {
    pub(super) fn load(home: &Home) -> Result<Self, Failure> {
        match gpg_key_of(home)? {
            Some(key) => Ok(Self::Gpg(key)),
            None => Ok(Self::Host(home.keyring().load_or_create().or_general()?)),
        }
    }

    /// The signature over a commit, and the id of the key.
    pub(super) async fn sign(&self, commit: &[u8]) -> Result<CommitSignature, Failure> {
        match self {
            Self::Host(key) => Ok(CommitSignature {
                armored: key.sign_ssh(GIT_NAMESPACE, commit),
                key: key.public().id().to_string(),
            }),
            Self::Gpg(key) => key.sign(commit).await,
        }
    }
}

/// A key in the keyring of GnuPG, by a name that `gpg` knows it by.
pub(super) struct GpgKey(String);

/// The key that `identity.gpg_key` names.
fn gpg_key_of(home: &Home) -> Result<Option<GpgKey>, Failure> {
    if !home.is_configured {
        return Ok(None);
    }
    let key = Config::load().or_exit(BottleExit::Usage)?.identity.gpg_key;
    Ok(key.map(GpgKey))
}

impl GpgKey {
    async fn sign(&self, data: &[u8]) -> Result<CommitSignature, Failure> {
        let failed = |reason: &str| {
            let words = format!("gpg did not sign with the key {}: {reason}", self.0);
            let remedy = "try: echo | gpg --batch --detach-sign --local-user KEY, as the user that runs bot-bottle";
            Failure::new(BottleExit::General, words).with_remedy(remedy)
        };
        let program = host::tool::which("gpg").ok_or_else(|| failed("gpg was not found"))?;
        let user = format!("--local-user={}", self.0);
        let options = ["--batch", "--no-tty", "--status-fd=2", "--armor", "--detach-sign"];
        let mut spec = CommandSpec::new(program).args(options).arg(user).arg("--output=-");
        spec.env = host::env::vars_os();
        let limits = RunLimits {
            timeout: Some(GPG_LIMIT),
            stdout_cap: GPG_OUTPUT_MAX,
            stderr_cap: GPG_OUTPUT_MAX,
            grace: Duration::from_secs(1),
            ..RunLimits::default()
        };
        let output = run_with_input(&spec, data, &limits, &Cancel::new()).await.or_general()?;
        let words = String::from_utf8_lossy(&output.stderr);
        match output.exit {
            CommandExit::Exited(0) => {
                let signature = read_signature(&output.stdout, &words);
                signature.ok_or_else(|| failed("it did not say that a signature was made"))
            }
            CommandExit::TimedOut => Err(failed("it took longer than 20 seconds")),
            _ => Err(failed(&escape_line(last_line(&words)))),
        }
    }
}

/// The last line of `gpg` for people.
fn last_line(words: &str) -> &str {
    let mut lines = words.lines().filter(|line| !line.starts_with("[GNUPG:]") && !line.is_empty());
    lines.next_back().unwrap_or("it failed and said nothing")
}

/// Signs something, where a key of GnuPG is configured.
pub(crate) async fn check_gpg_key(home: &Home) -> Option<Finding> {
    const NAME: &str = "signing key";
    let key = match gpg_key_of(home) {
        Ok(key) => key?,
        Err(failure) => return Some(Finding::bad(NAME, failure.to_string())),
    };
    Some(match key.sign(b"bot-bottle doctor\n").await {
        Ok(signature) => Finding::good(NAME, format!("gpg signs with {}", signature.key)),
        Err(failure) => Finding::bad(NAME, failure.to_string()),
    })
}
