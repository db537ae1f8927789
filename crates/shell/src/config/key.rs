//! Every key of the configuration. Help, `config list` and the documentation are made from this table.

/// A key of the configuration. `NAME` and `HOST` in it stand for names of the user.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    /// Variable that outranks the file.
    pub variable: Option<&'static str>,
    pub(super) kind: ValueKind,
    /// Value if nothing is set, in words.
    pub default: &'static str,
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    Whole,
    Number,
    Switch,
}

pub const KEYS: &[Key] = &[
    Key {
        variable: Some("BOTTLEWORKS_PROVIDER"),
        default: "the only one that is installed and has a key",
        ..text("agent", "The agent: opencode, codex, claude, pi, or a NAME of agents")
    },
    Key {
        variable: Some("BOTTLEWORKS_MODEL"),
        default: "the agent's own",
        ..text(
            "model",
            "The model of agents that name none; with its server before a slash where there are several",
        )
    },
    Key {
        default: "NAME",
        ..text("agents.NAME.provider", "The program: opencode, codex, claude or pi")
    },
    text("agents.NAME.model", "The model"),
    text("agents.NAME.variant", "Reasoning effort of the model"),
    text("agents.NAME.persona", "One of the agent's own personas"),
    text(
        "agents.NAME.url",
        "Address of the model server; a private address that is written here may be reached",
    ),
    text("agents.NAME.wire", "How the server is talked to: messages, chat or responses"),
    Key {
        default: "the server's usual one",
        ..text("agents.NAME.key_env", "Variable with the model's key")
    },
    text("agents.NAME.key_file", "File with the model's key: mode 0600, or a pipe"),
    text("agents.NAME.key_command", "Command line that prints the model's key"),
    Key {
        default: "false",
        ..switch(
            "agents.NAME.login",
            "Use the login of the agent's own program instead of a key; its token stays outside the box",
        )
    },
    Key {
        default: "the price list",
        ..text("agents.NAME.price", "Dollars for a million tokens: \"IN,OUT\"")
    },
    Key { default: "asked", ..text("forges.HOST.kind", "gitea, github or gitlab") },
    text("forges.HOST.token_env", "Variable with the forge's token"),
    text("forges.HOST.token_file", "File with the forge's token: mode 0600, or a pipe"),
    text("forges.HOST.token_command", "Command line that prints the forge's token"),
    Key {
        variable: Some("BOTTLEWORKS_TIMEOUT"),
        default: "480",
        ..whole("limits.timeout_secs", "Time limit of an agent of forklift, in seconds")
    },
    Key {
        variable: Some("BOTTLEWORKS_SILENCE"),
        default: "180, 600",
        ..whole(
            "limits.silence_secs",
            "Seconds of silence after which forklift (180) and wf (600) end an agent",
        )
    },
    Key { default: "4096", ..whole("limits.memory_mb", "Memory of a box, in MiB") },
    Key { default: "8192", ..whole("limits.disk_mb", "Disk space of a workspace, in MiB") },
    Key { default: "512", ..whole("limits.processes", "Processes and threads in a box") },
    Key {
        default: "200",
        ..whole("limits.cpu_percent", "Hundredths of a processor for a box: 150 is one and a half")
    },
    Key {
        kind: ValueKind::Number,
        ..text(
            "limits.max_usd",
            "Dollars after which an agent of forklift or wf gets no more from its model",
        )
    },
    whole(
        "limits.max_tokens",
        "Tokens after which an agent of forklift or wf gets no more from its model",
    ),
    Key {
        variable: Some("BOTTLEWORKS_NOTIFY_COMMAND"),
        ..text(
            "notify.command",
            "Command line that forklift runs on every verdict, with it as JSON on its input",
        )
    },
    Key {
        variable: Some("BOTTLEWORKS_IDENTITY_NAME"),
        default: "git's user.name",
        ..text("identity.name", "Author and committer of published commits")
    },
    Key {
        variable: Some("BOTTLEWORKS_IDENTITY_EMAIL"),
        default: "git's user.email",
        ..text("identity.email", "Address of author and committer")
    },
    Key {
        default: "false",
        ..switch("identity.sign_off", "Add Signed-off-by to published commits")
    },
    Key {
        default: "true",
        ..switch(
            "identity.agent_trailer",
            "Name the agent with Co-authored-by in published commits",
        )
    },
    Key {
        default: "the host's own key",
        ..text(
            "identity.gpg_key",
            "Key of GnuPG with which bot-bottle signs published commits, where an agent's manifest has sign_commits",
        )
    },
    Key {
        variable: Some("BOTTLEWORKS_REMOTE_ORIGIN"),
        default: "origin",
        ..text("remotes.origin", "The remote of your fork, for forklift")
    },
    Key {
        variable: Some("BOTTLEWORKS_REMOTE_UPSTREAM"),
        default: "upstream",
        ..text(
            "remotes.upstream",
            "The remote of the project that it was forked from, for forklift",
        )
    },
    Key {
        variable: Some("BOTTLEWORKS_FLEET_DATABASE"),
        default: "a file in ~/.bot-bottle",
        ..text(
            "fleet.database",
            "PostgreSQL for bot-bottle, in place of its file: postgres://user@host[,host]/database, without the password",
        )
    },
    text("fleet.password_env", "Variable with the password of the database"),
    text("fleet.password_file", "File with the password of the database: mode 0600, or a pipe"),
    text("fleet.password_command", "Command line that prints the password of the database"),
    Key {
        default: "the system's",
        ..text(
            "fleet.ca_file",
            "Certificates that the database's is checked by, besides the system's",
        )
    },
    Key {
        default: "true",
        ..switch(
            "fleet.run_bottles",
            "Run bottles on the host of bot-bottle serve, and not only on those of its workers",
        )
    },
    Key {
        variable: Some("BOTTLEWORKS_FLEET_BOTTLES"),
        default: "bottles stay on their hosts",
        ..text(
            "fleet.bottles",
            "Store of frozen bottles: s3://bucket, gs://bucket, az://container or file:///folder, with a folder after it if you like",
        )
    },
    Key {
        default: "the cloud's own",
        ..text("fleet.bottles_endpoint", "Address of the store's server, as of an S3 of your own")
    },
    Key { default: "us-east-1", ..text("fleet.bottles_region", "Region of the bucket, for S3") },
    Key {
        default: "the machine's role",
        ..text("fleet.bottles_account", "Access key or account in the store")
    },
    text(
        "fleet.bottles_secret_env",
        "Variable with the secret of that account; for Google the JSON of a service account",
    ),
    text("fleet.bottles_secret_file", "File with that secret: mode 0600, or a pipe"),
    text("fleet.bottles_secret_command", "Command line that prints that secret"),
    text(
        "fleet.bottles_key_env",
        "Variable with the key that seals the bottles: 64 hexadecimal digits, the same on every host",
    ),
    text("fleet.bottles_key_file", "File with that key: mode 0600, or a pipe"),
    text("fleet.bottles_key_command", "Command line that prints that key"),
    Key {
        default: "no limit",
        ..whole(
            "fleet.bottles_max_gb",
            "Room for the files of frozen bottles on this host; those that rested longest go first, and only from here",
        )
    },
    Key {
        default: "7",
        ..whole(
            "fleet.bottles_keep_days",
            "Days for which the store keeps earlier states of a bottle; the one before the newest stays",
        )
    },
    Key {
        variable: Some("BOTTLEWORKS_ADVISORIES"),
        ..text(
            "security.advisories",
            "Sources of advisories for forklift security, separated by commas: folders and https addresses",
        )
    },
];

const fn text(name: &'static str, help: &'static str) -> Key {
    Key { name, variable: None, kind: ValueKind::Text, default: "none", help }
}

const fn whole(name: &'static str, help: &'static str) -> Key {
    Key { kind: ValueKind::Whole, ..text(name, help) }
}

const fn switch(name: &'static str, help: &'static str) -> Key {
    Key { kind: ValueKind::Switch, ..text(name, help) }
}

impl Key {
    /// The variable and its value, if it is set.
    pub(super) fn find_variable(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Option<(&'static str, String)> {
        let variable = self.variable?;
        lookup(variable).filter(|value| !value.is_empty()).map(|value| (variable, value))
    }

    /// The key that a path of names leads to.
    pub(super) fn find(path: &[String]) -> Option<&'static Self> {
        KEYS.iter().find(|key| {
            let parts: Vec<&str> = key.name.split('.').collect();
            let fits = |(part, name): (&&str, &String)| is_placeholder(part) || part == name;
            parts.len() == path.len() && parts.iter().zip(path).all(fits)
        })
    }
}

fn is_placeholder(part: &str) -> bool {
    part == "NAME" || part == "HOST"
}

/// Splits a key as the user types it. A host name may be typed without quotation marks: the dots in the middle are its own.
pub(super) fn split(name: &str) -> Option<Vec<String>> {
    let parts: Vec<String> =
        toml_edit::Key::parse(name).ok()?.iter().map(|key| key.get().to_owned()).collect();
    match parts.as_slice() {
        [first, middle @ .., last]
            if middle.len() > 1 && matches!(first.as_str(), "agents" | "forges") =>
        {
            Some(vec![first.clone(), middle.join("."), last.clone()])
        }
        _ => Some(parts),
    }
}

impl ValueKind {
    pub(super) fn parse(self, value: &str) -> Result<toml::Value, String> {
        let number = || "give a number".to_owned();
        match self {
            Self::Text => Ok(toml::Value::String(value.to_owned())),
            Self::Whole => {
                let whole = value.parse::<u32>().ok().map(i64::from);
                whole.map(toml::Value::Integer).ok_or_else(|| "give a whole number".to_owned())
            }
            Self::Number => match value.parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(toml::Value::Float(value)),
                _ => Err(number()),
            },
            Self::Switch => match value {
                "true" => Ok(toml::Value::Boolean(true)),
                "false" => Ok(toml::Value::Boolean(false)),
                _ => Err("give true or false".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_needs_no_quotation_marks() {
        let expected = ["forges", "git.example.org", "token_env"].map(str::to_owned).to_vec();
        for typed in ["forges.git.example.org.token_env", "forges.\"git.example.org\".token_env"] {
            assert_eq!(split(typed), Some(expected.clone()), "{typed}");
        }
        assert_eq!(Key::find(&expected).map(|key| key.name), Some("forges.HOST.token_env"));
    }

    /// The documentation has the table, word for word.
    #[test]
    fn every_key_is_documented() {
        let row = |key: &Key| {
            let variable = key.variable.map(|name| format!("`{name}`")).unwrap_or_default();
            format!("| `{}` | {variable} | {} | {} |\n", key.name, key.default, key.help)
        };
        let table: String = KEYS.iter().map(row).collect();
        let page = include_str!("../../../../docs/configuration.md");
        assert!(page.contains(&table), "docs/configuration.md lacks this table:\n{table}");
    }

    /// The table has each key of the types: a value at each of them is accepted, and no other key is.
    #[test]
    fn the_table_has_the_keys_that_are_accepted() {
        let mut table = toml::Table::new();
        for key in KEYS {
            let value = match key.kind {
                ValueKind::Text if key.name.ends_with(".provider") => "claude".into(),
                ValueKind::Text if key.name.starts_with("remotes.") => "other".into(),
                ValueKind::Text => "1,1".into(),
                ValueKind::Whole => 1.into(),
                ValueKind::Number => 1.0.into(),
                ValueKind::Switch => true.into(),
            };
            super::super::insert(&mut table, key.name, value);
        }
        let config: super::super::Config = table.clone().try_into().expect("every key is accepted");
        let back = toml::Table::try_from(config).expect("a table");
        assert_eq!(back, table, "the table lacks a key of the types");
    }
}
