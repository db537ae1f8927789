//! `[notify]` in the configuration of `serve`: what people are told outside of the page, and how.

use std::path::PathBuf;

use serde::Deserialize;

use super::NoticeWord;

pub(crate) const WEBHOOK: &str = "webhook";
pub(crate) const MAIL: &str = "mail";
pub(crate) const DESKTOP: &str = "desktop";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NotifySettings {
    pub(crate) on: Vec<NoticeWord>,
    pub(crate) webhook_url: Option<String>,
    pub(crate) webhook_secret_file: Option<PathBuf>,
    pub(crate) mail_to: Vec<String>,
    pub(crate) mail_from: Option<String>,
    pub(crate) sendmail: PathBuf,
    pub(crate) desktop: bool,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            on: vec![
                NoticeWord::Question,
                NoticeWord::Attention,
                NoticeWord::Budget,
                NoticeWord::Dispatch,
            ],
            webhook_url: None,
            webhook_secret_file: None,
            mail_to: Vec::new(),
            mail_from: None,
            sendmail: PathBuf::from("/usr/sbin/sendmail"),
            desktop: false,
        }
    }
}

impl NotifySettings {
    /// Checks what types cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(url) = &self.webhook_url {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            let is_plain = url.chars().all(|c| c.is_ascii_graphic());
            if !is_plain || rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
                return Err(format!(
                    "notify.webhook_url cannot be '{url}': give http(s)://host/path"
                ));
            }
            if self.webhook_secret_file.is_none() {
                return Err(
                    "notify.webhook_url needs webhook_secret_file, which signs what is sent"
                        .to_owned(),
                );
            }
        }
        for address in self.mail_to.iter().chain(&self.mail_from) {
            let is_plain = |c: char| c.is_ascii_graphic() && !"<>(),;:\\\"[]".contains(c);
            let is_whole = address.split_once('@').is_some_and(|(user, host)| {
                !user.is_empty() && !host.is_empty() && !host.contains('@')
            });
            if !is_whole || address.starts_with('-') || !address.chars().all(is_plain) {
                return Err(format!(
                    "'{address}' is not an address of mail such as ann@example.org"
                ));
            }
        }
        match self.sendmail.is_absolute() {
            true => Ok(()),
            false => Err("notify.sendmail has to be a whole path".to_owned()),
        }
    }

    /// The channels that are set up.
    pub(crate) fn channels(&self) -> Vec<&'static str> {
        [
            (WEBHOOK, self.webhook_url.is_some()),
            (MAIL, !self.mail_to.is_empty()),
            (DESKTOP, self.desktop),
        ]
        .into_iter()
        .filter_map(|(channel, is_on)| is_on.then_some(channel))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        toml::from_str::<NotifySettings>(text).expect("settings").check()
    }

    #[test]
    fn channels_are_off_until_they_are_set_up() {
        assert!(NotifySettings::default().channels().is_empty());
        let text = "webhook_url = \"https://h.example/x\"\nwebhook_secret_file = \"/s\"\n\
                    mail_to = [\"ann@example.org\"]\ndesktop = true";
        let settings: NotifySettings = toml::from_str(text).expect("settings");
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.channels(), [WEBHOOK, MAIL, DESKTOP]);
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for (text, words) in [
            ("webhook_url = \"https://h.example/x\"", "webhook_secret_file"),
            ("webhook_url = \"ftp://h\"\nwebhook_secret_file = \"/s\"", "http(s)://"),
            ("webhook_url = \"https:///x\"\nwebhook_secret_file = \"/s\"", "http(s)://"),
            ("mail_to = [\"ann\"]", "not an address"),
            ("mail_to = [\"-oQ/tmp@x\"]", "not an address"),
            ("mail_to = [\"a@b\\nBcc: c@d\"]", "not an address"),
            ("mail_from = \"a@b, c@d\"", "not an address"),
            ("sendmail = \"sendmail\"", "a whole path"),
        ] {
            let error = check(text).expect_err("it is refused");
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(toml::from_str::<NotifySettings>("on = [\"everything\"]").is_err());
    }
}
