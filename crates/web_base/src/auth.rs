//! Authentication: who sends a request. Without a token file and a proxy's header there is no login; then a page is
//! read-only, and served to this machine alone.

use std::path::{Path, PathBuf};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hmac::{Hmac, KeyInit, Mac};
use model::secret::Secret;
use sha2::Sha256;

use crate::header::header_text;
use crate::origin::{is_ours, knows_host};
use crate::session::{Fingerprint, Sessions, Tries, fingerprint, fresh_id, same};

/// Fewest characters of a token.
pub const TOKEN_MIN_CHARS: usize = 32;
const SITE: &str = "sec-fetch-site";

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Anyone on this machine, who may read.
    Reader,
    /// A user who logged in with the token.
    Session { id: String },
    /// A user whom the reverse proxy names.
    User { name: String },
    /// A program with the token.
    Bearer,
}

/// Names of the session cookie. With TLS the name itself promises that no other host and no plain connection has set it.
#[derive(Debug, Clone, Copy)]
pub struct CookieName {
    pub http: &'static str,
    pub https: &'static str,
}

/// Principals that may log in, and the files in which logins are kept.
#[derive(Debug)]
pub struct AuthOptions<'a> {
    pub token_file: Option<PathBuf>,
    /// The header in which a reverse proxy names the user.
    pub user_header: Option<String>,
    pub public_url: Option<String>,
    pub cookie_name: CookieName,
    pub key_file: &'a Path,
    pub sessions_file: &'a Path,
}

#[derive(Debug)]
pub struct Auth {
    token_file: Option<PathBuf>,
    user_header: Option<String>,
    public_url: Option<String>,
    cookie_name: CookieName,
    /// Key of the tokens in forms. Without randomness there are no forms.
    key: Option<String>,
    pub sessions: Sessions,
    pub tries: Tries,
}

impl Auth {
    /// The key of forms and the sessions are on disk, so that an open page survives a restart.
    pub fn open(options: AuthOptions<'_>) -> Self {
        Self {
            token_file: options.token_file,
            user_header: options.user_header,
            public_url: options.public_url,
            cookie_name: options.cookie_name,
            key: load_key(options.key_file),
            sessions: Sessions::load(options.sessions_file),
            tries: Tries::default(),
        }
    }

    fn is_guarded(&self) -> bool {
        self.token_file.is_some() || self.user_header.is_some()
    }

    pub fn has_token(&self) -> bool {
        self.token_file.is_some()
    }

    fn is_https(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// Checks a token. The file is read each time, so that a new token is valid at once.
    pub fn accepts(&self, given: &str) -> Option<Fingerprint> {
        let own = fingerprint(self.token()?.expose());
        same(&own, &fingerprint(given)).then_some(own)
    }

    /// The token in a principal's forms; only a logged-in principal has forms.
    pub fn form_token(&self, principal: &Principal) -> Option<String> {
        let whose = match principal {
            Principal::Session { id } => format!("session {id}"),
            Principal::User { name } => format!("user {name}"),
            Principal::Reader | Principal::Bearer => return None,
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_ref()?.as_bytes()).ok()?;
        mac.update(whose.as_bytes());
        Some(model::digest::hex(&mac.finalize().into_bytes()))
    }

    pub fn knows_form(&self, principal: &Principal, given: &str) -> bool {
        self.form_token(principal).is_some_and(|own| same(&fingerprint(&own), &fingerprint(given)))
    }

    pub fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let from = (header_text(headers, SITE), header_text(headers, ORIGIN.as_str()));
        let host = header_text(headers, HOST.as_str()).unwrap_or_default();
        is_ours(from, host, self.public_url.as_deref())
    }

    /// The header that sets or clears the session cookie.
    pub fn cookie(&self, id: Option<&str>) -> Option<(HeaderName, HeaderValue)> {
        let name = self.cookie_name();
        let value = match id {
            Some(id) => format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict"),
            None => format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"),
        };
        let value = if self.is_https() { value + "; Secure" } else { value };
        Some((SET_COOKIE, HeaderValue::from_str(&value).ok()?))
    }

    /// The principal of a request; `None` if authentication fails.
    pub fn authenticate(&self, headers: &HeaderMap) -> Option<Principal> {
        // Other schemes are between the browser and the reverse proxy.
        if let Some(given) = bearer(headers) {
            return self.accepts(given).map(|_| Principal::Bearer);
        }
        if let Some(name) =
            self.user_header.as_ref().and_then(|header| header_text(headers, header))
        {
            return (!name.trim().is_empty()).then(|| Principal::User { name: name.to_owned() });
        }
        if let Some(id) = self.session_id(headers) {
            let token = fingerprint(self.token()?.expose());
            if self.sessions.knows(&id, &token, host::clock::now()) {
                return Some(Principal::Session { id });
            }
        }
        (!self.is_guarded()).then_some(Principal::Reader)
    }

    fn session_id(&self, headers: &HeaderMap) -> Option<String> {
        let name = self.cookie_name();
        let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = pairs.flat_map(|value| value.split(';').map(str::trim));
        pairs.find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// With TLS the name itself promises that no other host and no plain connection has set it.
    fn cookie_name(&self) -> &'static str {
        if self.is_https() { self.cookie_name.https } else { self.cookie_name.http }
    }

    fn token(&self) -> Option<Secret> {
        let path = self.token_file.as_ref()?;
        match host::file::read_private(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).trim().to_owned();
                Some(Secret::new(text)).filter(|token| !token.expose().is_empty())
            }
            Err(error) => {
                let error = model::error_chain(&error);
                tracing::error!(error, "login is impossible");
                None
            }
        }
    }

    /// True if a request is meant for a host name of ours. Others may have pointed theirs at this machine (DNS rebinding).
    pub fn is_for_us(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let public = self.public_url.as_deref();
        let asked = uri.authority().map(Authority::as_str);
        let host = header_text(headers, HOST.as_str());
        host.is_some_and(|host| knows_host(host, public))
            && asked.is_none_or(|host| knows_host(host, public))
            && headers.get_all(HOST).iter().count() == 1
    }
}

/// The key in a file, which is made if there is none. One that cannot be stored is valid as long as the process.
fn load_key(path: &Path) -> Option<String> {
    let known = host::file::read_private(path).ok();
    let known = known.and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(known) = known.filter(|key| key.len() >= TOKEN_MIN_CHARS) {
        return Some(known);
    }
    let fresh =
        fresh_id().inspect_err(|error| tracing::error!(%error, "there is no randomness")).ok()?;
    if let Err(error) = host::file::write_atomic(path, fresh.as_bytes(), 0o600) {
        let error = model::error_chain(&error);
        tracing::warn!(error, "forms of an open page will not survive a restart");
    }
    Some(fresh)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, given) = header_text(headers, AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(given)
}
