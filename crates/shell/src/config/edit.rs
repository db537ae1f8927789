//! Changes of the configuration file. Comments and order stay as the user wrote them.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::key::{Key, split};
use super::{Config, ConfigFileError, parse, path_of_user, read};

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    #[error("there is no key '{name}'; the keys are listed by: {program} config list")]
    UnknownKey { name: String, program: &'static str },
    #[error("{name} cannot be '{value}': {rule}")]
    Value { name: String, value: String, rule: String },
    #[error("{path}: {reason}", path = path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error(transparent)]
    Write(#[from] host::file::FileError),
}

/// Sets keys in the user's file; `None` removes one. Returns whether the file changed.
pub fn set_values(
    program: &'static str,
    changes: &[(&str, Option<&str>)],
) -> Result<bool, EditError> {
    ConfigEdit::prepare(program, changes)?.write()
}

/// A change of the user's file that is checked and not yet written.
#[derive(Debug)]
pub(crate) struct ConfigEdit {
    pub(crate) path: PathBuf,
    before: String,
    after: String,
    /// The configuration that the changed file gives, without variables.
    pub(crate) config: Config,
}

impl ConfigEdit {
    pub(crate) fn prepare(
        program: &'static str,
        changes: &[(&str, Option<&str>)],
    ) -> Result<Self, EditError> {
        let path = path_of_user()?;
        let before = read(&path)?;
        let mut after = before.clone();
        for (name, value) in changes {
            after = edit(program, &path, &after, name, *value)?;
        }
        // The whole file has to be good, also where it was wrong before.
        let config = parse(&path, &after, |_| None)?;
        Ok(Self { path, before, after, config })
    }

    /// Writes the file, and returns whether it changed.
    pub(crate) fn write(&self) -> Result<bool, EditError> {
        if self.after == self.before {
            return Ok(false);
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(host::file::FileError::io("create", folder))?;
        }
        host::file::write_atomic(&self.path, self.after.as_bytes(), 0o600)?;
        Ok(true)
    }
}

/// The path of a key that the user typed, and the key.
pub(super) fn find_key(
    program: &'static str,
    name: &str,
) -> Result<(Vec<String>, &'static Key), EditError> {
    let path = split(name).unwrap_or_default();
    match Key::find(&path) {
        Some(key) => Ok((path, key)),
        None => Err(EditError::UnknownKey { name: name.to_owned(), program }),
    }
}

fn edit(
    program: &'static str,
    path: &Path,
    text: &str,
    name: &str,
    value: Option<&str>,
) -> Result<String, EditError> {
    let (names, key) = find_key(program, name)?;
    let malformed = |reason: String| EditError::Malformed { path: path.to_path_buf(), reason };
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| malformed(error.message().to_owned()))?;
    let Some((last, tables)) = names.split_last() else { return Ok(text.to_owned()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        if value.is_none() && table.get(name).is_none() {
            return Ok(text.to_owned());
        }
        let item = table.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            // Without a header of its own as long as it has only tables.
            table.set_implicit(true);
            Item::Table(table)
        });
        let fault = || malformed(format!("{name} is not a table"));
        table = item.as_table_like_mut().ok_or_else(fault)?;
    }
    match value {
        None => {
            table.remove(last);
        }
        Some(value) => {
            let wrong =
                |rule| EditError::Value { name: name.to_owned(), value: value.to_owned(), rule };
            let mut new = match key.kind.parse(value).map_err(wrong)? {
                toml::Value::Integer(number) => toml_edit::value(number),
                toml::Value::Float(number) => toml_edit::value(number),
                toml::Value::Boolean(switch) => toml_edit::value(switch),
                _ => toml_edit::value(value),
            };
            let decor = table.get(last).and_then(Item::as_value).map(|old| old.decor().clone());
            if let (Some(new), Some(decor)) = (new.as_value_mut(), decor) {
                *new.decor_mut() = decor;
            }
            // A new key would lose the comment before the old one.
            match table.get_mut(last) {
                Some(item) => *item = new,
                None => {
                    table.insert(last, new);
                }
            }
        }
    }
    Ok(document.to_string())
}

impl Config {
    /// The value of a key, as text.
    pub(super) fn value_of(&self, path: &[String]) -> Option<String> {
        let table = toml::Table::try_from(self).ok()?;
        let (last, tables) = path.split_last()?;
        let mut inner = &table;
        for name in tables {
            inner = inner.get(name)?.as_table()?;
        }
        match inner.get(last)? {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Integer(number) => Some(number.to_string()),
            toml::Value::Float(number) => Some(number.to_string()),
            toml::Value::Boolean(switch) => Some(switch.to_string()),
            toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str, name: &str, value: Option<&str>) -> String {
        edit("forklift", Path::new("/c.toml"), text, name, value)
            .unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_change_keeps_comments_and_order() {
        let text = "# mine\nagent = \"codex\" # for now\n\n[limits]\n# short\ntimeout_secs = 60\n";
        assert_eq!(
            change(text, "agent", Some("claude")),
            "# mine\nagent = \"claude\" # for now\n\n[limits]\n# short\ntimeout_secs = 60\n"
        );
        assert_eq!(
            change(text, "limits.timeout_secs", None),
            "# mine\nagent = \"codex\" # for now\n\n[limits]\n"
        );
    }

    #[test]
    fn tables_are_made_as_they_are_needed() {
        let text = change("", "agents.claude.key_command", Some("pass show anthropic"));
        assert_eq!(text, "[agents.claude]\nkey_command = \"pass show anthropic\"\n");
        let text = change(&text, "forges.git.example.org.token_env", Some("T"));
        assert!(text.ends_with("\n[forges.\"git.example.org\"]\ntoken_env = \"T\"\n"), "{text}");
        let text = change(&text, "identity.sign_off", Some("true"));
        assert!(text.ends_with("\n[identity]\nsign_off = true\n"), "{text}");
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        assert_eq!(
            change("", "agnet", Some("x")),
            "there is no key 'agnet'; the keys are listed by: forklift config list"
        );
        assert_eq!(
            change("", "limits.timeout_secs", Some("soon")),
            "limits.timeout_secs cannot be 'soon': give a whole number"
        );
        assert_eq!(
            change("agents = 1\n", "agents.x.model", Some("m")),
            "/c.toml: agents is not a table"
        );
    }
}
