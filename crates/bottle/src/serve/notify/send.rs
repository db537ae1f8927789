//! The channels of notices.

use std::time::Duration;

use base64ct::{Base64, Encoding};
use forge::{HookError, HttpPool, RetryPolicy};
use hmac::{Hmac, KeyInit, Mac};
use host::process::{RunLimits, run, run_with_input};
use host::signal::Cancel;
use jiff::Timestamp;
use model::command::{CommandExit, CommandSpec};
use model::secret::Secret;
use orchestrator_db::NoticeDelivery;
use sha2::Sha256;

use super::settings::{DESKTOP, MAIL, WEBHOOK};
use super::text::{render_desktop, render_mail, render_webhook, summary};
use super::{NoticeKind, NotifySettings};
use crate::serve::settings::read_secret;

/// Longest time for one notice.
const SEND_LIMIT: Duration = Duration::from_secs(20);
/// Start of a secret whose bytes are in base64, as Standard Webhooks has it.
const SECRET_PREFIX: &str = "whsec_";
/// Variables by which a program finds the desktop of a user.
const DESKTOP_VARIABLES: [&str; 7] = [
    "PATH",
    "HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Reason why a notice did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// It is tried again.
    Passing(String),
    /// Another attempt would not help.
    Final(String),
}

/// Sends notices, with connections that are kept.
pub(super) struct Sender {
    pool: HttpPool,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self { pool: HttpPool::new(None, RetryPolicy::default().connect) }
    }

    pub(super) async fn send(
        &self,
        settings: &NotifySettings,
        delivery: &NoticeDelivery,
        kind: &NoticeKind,
    ) -> Result<(), SendError> {
        let (id, at) = (delivery.notice.id.as_str(), delivery.notice.created_at);
        match delivery.channel.as_str() {
            WEBHOOK => self.send_webhook(settings, id, kind, at).await,
            MAIL if !settings.mail_to.is_empty() => {
                let from = settings.mail_from.as_deref();
                let message = render_mail(id, kind, at, from, &settings.mail_to);
                let mut spec = CommandSpec::new(&settings.sendmail).arg("-i");
                if let Some(from) = from {
                    spec = spec.args(["-f", from]);
                }
                let spec = spec.arg("--").args(&settings.mail_to).env("PATH", path());
                call(&spec, message.as_bytes()).await
            }
            DESKTOP if settings.desktop => {
                let mut spec = CommandSpec::new("notify-send");
                for name in DESKTOP_VARIABLES {
                    if let Some(value) = host::env::var_os(name) {
                        spec = spec.env(name, value);
                    }
                }
                let spec = spec.args(["--app-name=bot-bottle", "--"]);
                call(&spec.arg(summary(kind)).arg(render_desktop(kind)), b"").await
            }
            channel => Err(SendError::Final(format!("the channel '{channel}' is not set up"))),
        }
    }

    /// Posts a notice, signed as Standard Webhooks describes it: over the id, the time and the body.
    async fn send_webhook(
        &self,
        settings: &NotifySettings,
        id: &str,
        kind: &NoticeKind,
        at: Timestamp,
    ) -> Result<(), SendError> {
        let (Some(url), Some(file)) = (&settings.webhook_url, &settings.webhook_secret_file) else {
            return Err(SendError::Final("the webhook is not set up".to_owned()));
        };
        let secret = read_secret(file, "the webhook's secret");
        let secret = secret.map_err(|failure| SendError::Passing(failure.to_string()))?;
        let body = render_webhook(id, kind, at);
        let sent_at = host::clock::now().as_second().to_string();
        let signature = sign(&secret, id, &sent_at, &body)?;
        let headers = [
            ("webhook-id", id),
            ("webhook-timestamp", sent_at.as_str()),
            ("webhook-signature", signature.as_str()),
        ];
        let sent = self.pool.post_hook(url, &headers, body.clone(), SEND_LIMIT).await;
        sent.map_err(|error| match error {
            HookError::Status(410) => SendError::Final("the receiver is gone (410)".to_owned()),
            other => SendError::Passing(other.to_string()),
        })
    }
}

fn sign(secret: &Secret, id: &str, sent_at: &str, body: &str) -> Result<String, SendError> {
    let key = match secret.expose().strip_prefix(SECRET_PREFIX) {
        Some(text) => Base64::decode_vec(text)
            .or(Err(SendError::Passing("the webhook's secret is not base64".to_owned())))?,
        None => secret.expose().as_bytes().to_vec(),
    };
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key)
        .map_err(|error| SendError::Passing(error.to_string()))?;
    mac.update(format!("{id}.{sent_at}.{body}").as_bytes());
    Ok(format!("v1,{}", Base64::encode_string(&mac.finalize().into_bytes())))
}

/// Runs a program that takes a notice.
async fn call(spec: &CommandSpec, input: &[u8]) -> Result<(), SendError> {
    let limits = RunLimits { timeout: Some(SEND_LIMIT), ..RunLimits::default() };
    let cancel = Cancel::new();
    let done = match input.is_empty() {
        true => run(spec, &limits, &cancel).await,
        false => run_with_input(spec, input, &limits, &cancel).await,
    };
    let program = spec.program.display();
    let done = done.map_err(|error| SendError::Passing(model::error_chain(&error)))?;
    let why = match done.exit {
        CommandExit::Exited(0) => return Ok(()),
        CommandExit::Exited(code) => format!("status {code}"),
        CommandExit::Signalled(signal) => format!("signal {signal}"),
        CommandExit::TimedOut => "no answer in time".to_owned(),
        CommandExit::NotStarted => "not started".to_owned(),
    };
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().next().unwrap_or_default().trim().to_owned();
    Err(SendError::Passing(format!("{program} failed ({why}): {said}")))
}

fn path() -> std::ffi::OsString {
    host::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_signature_is_the_one_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = "{\"test\": 2432232314}";
        let signed = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(signed, Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()));
        assert!(sign(&Secret::new("whsec_%%"), "a", "1", "b").is_err());
    }
}
