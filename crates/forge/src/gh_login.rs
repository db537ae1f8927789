//! Token that GitHub's own program `gh` would use for a server: its variables, then its login.

use std::time::Duration;

use host::env;
use host::process::{RunLimits, run};
use host::signal::Cancel;
use host::tool::which;
use model::command::{CommandExit, CommandSpec};
use model::secret::Secret;

/// Time limit of `gh`, which reads a file or a key ring.
const GH_LIMIT: Duration = Duration::from_secs(10);

/// Environment of the child: paths of programs and of the user's configuration.
const PASSED_ON: [&str; 5] =
    ["PATH", "HOME", "XDG_CONFIG_HOME", "GH_CONFIG_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Finds the token for a server, if there is one. A token for the cloud is never given to another server.
pub(crate) async fn find_login(host: &str) -> Option<Secret> {
    let set = |name: &&str| env::var(name).filter(|value| !value.is_empty());
    match variables(host).iter().find_map(set) {
        Some(token) => Some(Secret::new(token)),
        None => run_gh(host).await,
    }
}

/// Returns the variables in `gh`'s own order.
fn variables(host: &str) -> [&'static str; 2] {
    if host == "github.com" || host.ends_with(".github.com") || host.ends_with(".ghe.com") {
        ["GH_TOKEN", "GITHUB_TOKEN"]
    } else {
        ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]
    }
}

async fn run_gh(host: &str) -> Option<Secret> {
    which("gh")?;
    let mut spec = CommandSpec::new("gh").args(["auth", "token", "--hostname", host]);
    for name in PASSED_ON {
        if let Some(value) = env::var_os(name) {
            spec = spec.env(name, value);
        }
    }
    let limits = RunLimits { timeout: Some(GH_LIMIT), stdout_cap: 4096, ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new()).await.ok()?;
    let token = String::from_utf8(output.stdout).ok()?;
    let token = token.trim();
    (output.exit == CommandExit::Exited(0) && !token.is_empty()).then(|| Secret::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_for_the_cloud_is_for_the_cloud_alone() {
        assert_eq!(variables("github.com")[0], "GH_TOKEN");
        assert_eq!(variables("ssh.github.com")[0], "GH_TOKEN");
        assert_eq!(variables("acme.ghe.com")[0], "GH_TOKEN");
        assert_eq!(variables("git.example")[0], "GH_ENTERPRISE_TOKEN");
        assert_eq!(variables("github.com.example")[0], "GH_ENTERPRISE_TOKEN");
    }
}
