//! Settings in `opencode.env`, and the flags that override them.

use model::env_file::{EnvFile, EnvFileError, MissingKeys};
use model::id::{IdError, Override};

/// Address and wire API of another model server.
const URL_KEY: &str = "OPENCODE_BASE_URL";
const WIRE_KEY: &str = "OPENCODE_WIRE_API";

/// The model's key. It stays on this host.
pub(crate) const API_KEY: &str = "OPENCODE_API_KEY";

pub(crate) const REQUIRED: [&str; 4] =
    [API_KEY, "OPENCODE_MODEL", "OPENCODE_VARIANT", "OPENCODE_AGENT"];

#[derive(Debug, Clone)]
pub(crate) struct AgentSettings {
    /// Each is set, by a flag or by the file.
    pub(crate) overrides: Overrides,
    pub(crate) url: Option<String>,
    pub(crate) wire: Option<String>,
}

/// Flags that outrank the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    pub(crate) model: Option<Override>,
    pub(crate) variant: Option<Override>,
    pub(crate) agent: Option<Override>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsFault {
    #[error(transparent)]
    Grammar(#[from] EnvFileError),
    #[error(transparent)]
    Missing(#[from] MissingKeys),
    #[error(transparent)]
    Value(#[from] IdError),
}

/// Checks the flags, whichever agent they are for.
pub(crate) fn parse_overrides(
    model: Option<&str>,
    variant: Option<&str>,
    agent: Option<&str>,
) -> Result<Overrides, IdError> {
    let parse = |value: Option<&str>| value.map(Override::parse).transpose();
    Ok(Overrides { model: parse(model)?, variant: parse(variant)?, agent: parse(agent)? })
}

pub(crate) fn parse_settings(
    bytes: &[u8],
    flags: &Overrides,
) -> Result<AgentSettings, SettingsFault> {
    let file = EnvFile::parse_bytes(bytes)?;
    file.require(&REQUIRED)?;
    let value = |key: &str| Override::parse(file.get(key).unwrap_or_default());
    let pick = |flag: &Option<Override>, key| flag.clone().map_or_else(|| value(key), Ok).map(Some);
    Ok(AgentSettings {
        overrides: Overrides {
            model: pick(&flags.model, "OPENCODE_MODEL")?,
            variant: pick(&flags.variant, "OPENCODE_VARIANT")?,
            agent: pick(&flags.agent, "OPENCODE_AGENT")?,
        },
        url: file.get(URL_KEY).map(str::to_owned),
        wire: file.get(WIRE_KEY).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "OPENCODE_API_KEY=sk-1\nOPENCODE_MODEL=a/b\nOPENCODE_VARIANT=high\nOPENCODE_AGENT=build\n";

    #[test]
    fn a_flag_outranks_the_file() {
        let flags = parse_overrides(Some("claude-35-sonnet"), None, None).expect("legal");
        let settings = parse_settings(FILE.as_bytes(), &flags).expect("good");
        let Overrides { model, variant, .. } = settings.overrides;
        assert_eq!(model.as_ref().map(Override::as_str), Some("claude-35-sonnet"));
        assert_eq!(variant.as_ref().map(Override::as_str), Some("high"));
    }

    #[test]
    fn a_forbidden_character_is_named() {
        let error = parse_overrides(Some("x;rm -rf"), None, None).unwrap_err().to_string();
        assert!(error.contains("';'"), "{error}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = parse_settings(b"OPENCODE_MODEL=a\n", &Overrides::default()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("OPENCODE_API_KEY") && text.contains("OPENCODE_AGENT"), "{text}");
    }

    #[test]
    fn a_bad_line_is_told_by_number() {
        let error = parse_settings(b"A=1\nB=`x`\n", &Overrides::default()).unwrap_err().to_string();
        assert!(error.starts_with("line 2"), "{error}");
    }
}
