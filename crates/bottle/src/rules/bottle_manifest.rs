//! Bottle manifests: the contents of a box. Several may be merged; contradictions are refused.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::agent_manifest::{ManifestFault, parse_toml};

const SETUP_SECS: u64 = 600;

/// A bottle, or several merged ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BottleManifest {
    /// The image that a container engine holds.
    pub(crate) image: Option<String>,
    /// An unpacked root file system, for bubblewrap.
    pub(crate) root: Option<PathBuf>,
    /// Programs that must be in the root; a missing one is named before the agent starts.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// A line for the shell, run in a new workspace before the agent.
    pub(crate) setup: Option<String>,
    pub(crate) setup_timeout_secs: Option<u64>,
    /// Folders of the host that the box sees, read-only.
    #[serde(default, rename = "mount")]
    pub(crate) mounts: Vec<MountTable>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountTable {
    pub(crate) host: PathBuf,
    pub(crate) inside: String,
}

pub(crate) fn parse_bottle(text: &str) -> Result<BottleManifest, ManifestFault> {
    let manifest: BottleManifest = parse_toml(text)?;
    let wrong = |key, what: String| Err(ManifestFault::Value { key, what });
    if manifest.image.is_some() && manifest.root.is_some() {
        return wrong("image", "give an image or a root, not both".to_owned());
    }
    if manifest.root.as_ref().is_some_and(|root| !root.is_absolute()) {
        return wrong("root", "give an absolute path".to_owned());
    }
    let is_word = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
        !text.is_empty() && text.chars().all(plain) && !text.starts_with('-')
    };
    if let Some(odd) = manifest.packages.iter().find(|name| !is_word(name)) {
        return wrong("packages", format!("'{}' is not the name of a program", odd.escape_debug()));
    }
    for mount in &manifest.mounts {
        if let Err(what) = check_inside(&mount.inside) {
            return wrong("mount.inside", what);
        }
        if !mount.host.is_absolute() {
            return wrong(
                "mount.host",
                format!("{} is not an absolute path", mount.host.display()),
            );
        }
    }
    Ok(manifest)
}

/// Mounts go below `/opt`; the rest of the box stays unchanged.
fn check_inside(inside: &str) -> Result<(), String> {
    let rest = inside.strip_prefix("/opt/").filter(|rest| !rest.is_empty());
    let parts = rest.map(|rest| rest.split('/').collect::<Vec<_>>()).unwrap_or_default();
    let odd = |part: &&str| part.is_empty() || *part == "." || *part == "..";
    let is_ours = matches!(parts.first(), Some(&("forklift" | "bottleworks")));
    if parts.is_empty() || parts.iter().any(odd) || is_ours {
        return Err(format!("'{}' cannot be; choose a path below /opt", inside.escape_debug()));
    }
    Ok(())
}

/// Merges bottles: later ones add to earlier ones.
pub(crate) fn pour(bottles: &[BottleManifest]) -> Result<BottleManifest, ManifestFault> {
    let mut whole = BottleManifest::default();
    for bottle in bottles {
        let has_root = whole.image.is_some() || whole.root.is_some();
        if has_root && (bottle.image.is_some() || bottle.root.is_some()) {
            let what = "two of the bottles name an image or a root".to_owned();
            return Err(ManifestFault::Value { key: "image", what });
        }
        whole.image = whole.image.take().or_else(|| bottle.image.clone());
        whole.root = whole.root.take().or_else(|| bottle.root.clone());
        whole.packages.extend(bottle.packages.iter().cloned());
        whole.mounts.extend(bottle.mounts.iter().cloned());
        whole.setup = match (whole.setup.take(), &bottle.setup) {
            (Some(first), Some(then)) => Some(format!("{{ {first}\n}} && {{ {then}\n}}")),
            (first, then) => first.or_else(|| then.clone()),
        };
        whole.setup_timeout_secs = whole.setup_timeout_secs.max(bottle.setup_timeout_secs);
    }
    Ok(whole)
}

impl BottleManifest {
    /// Shell line before the first agent: a check for the programs, then the bottle's own set-up.
    pub(crate) fn setup_line(&self) -> Option<String> {
        let looks = self.packages.iter().map(|name| {
            format!("command -v {name} >/dev/null || {{ echo 'missing in the box: {name}' >&2; exit 66; }}\n")
        });
        let line: String = looks.chain(self.setup.clone()).collect();
        (!line.is_empty()).then_some(line)
    }

    pub(crate) fn setup_secs(&self) -> u64 {
        self.setup_timeout_secs.unwrap_or(SETUP_SECS)
    }
}

pub(crate) const BOTTLE_TEMPLATE: &str = r#"# A bottle: what the box is made of.
# image = "forklift/kitchen-sink:latest"   # for a container engine
# root = "/srv/roots/debian"               # for bubblewrap; this host's /usr if nothing is said
packages = ["git"]                         # programs that must be there
# setup = "npm ci"                         # run once, in the box, before the agent

# [[mount]]                                # read-only; refused if it holds secrets or sockets
# host = "/srv/datasets"
# inside = "/opt/datasets"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuse(text: &str, word: &str) {
        let fault = parse_bottle(text).expect_err("refused").to_string();
        assert!(fault.contains(word), "{fault}");
    }

    #[test]
    fn the_template_is_a_manifest() {
        assert_eq!(parse_bottle(BOTTLE_TEMPLATE).expect("it reads").packages, ["git"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        refuse("imgae = \"x\"", "imgae");
        refuse("image = \"x\"\nroot = \"/r\"", "not both");
        refuse("root = \"r\"", "absolute path");
        refuse("packages = [\"a;b\"]", "not the name of a program");
        for inside in ["/etc/x", "/opt", "/opt/", "/opt/../etc", "/opt/forklift/x", "opt/x"] {
            refuse(&format!("[[mount]]\nhost = \"/srv\"\ninside = \"{inside}\""), "below /opt");
        }
    }

    #[test]
    fn bottles_are_poured_together_unless_they_contradict() {
        let read = |text| parse_bottle(text).expect("it reads");
        let one = read("image = \"x\"\nsetup = \"a\"");
        let two = read("packages = [\"rg\"]\nsetup = \"b\"");
        let whole = pour(&[one.clone(), two]).expect("poured");
        assert_eq!(whole.setup.as_deref(), Some("{ a\n} && { b\n}"));
        assert!(whole.setup_line().expect("a line").starts_with("command -v rg"));
        assert!(pour(&[one.clone(), one]).is_err());
    }
}
