//! Authentication: who sends a request. Without a token file and a proxy's header there is no login; then the page is
//! read-only, and served to this machine alone.

use std::path::{Path, PathBuf};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use hmac::{Hmac, KeyInit, Mac};
use model::secret::Secret;
use sha2::Sha256;

use super::problem::Problem;
use super::rules::origin::{is_ours, knows_host};
use super::session::{Fingerprint, Sessions, Tries, fingerprint, fresh_id, same};
use super::{WebState, page};
use crate::exit::Failure;
use crate::flow::home::Home;
use crate::serve::header_text;
use crate::serve::settings::{ServeSettings, read_secret};

const TOKEN_MIN_CHARS: usize = 32;
const SITE: &str = "sec-fetch-site";

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Anyone on this machine, who may read.
    Reader,
    /// A user who logged in with the token.
    Session { id: String },
    /// A user whom the reverse proxy names.
    User { name: String },
    /// A program with the token.
    Bearer,
}

#[derive(Debug)]
pub(crate) struct Auth {
    token_file: Option<PathBuf>,
    user_header: Option<String>,
    public_url: Option<String>,
    /// Key of the tokens in forms. Without randomness there are no forms.
    key: Option<String>,
    pub(super) sessions: Sessions,
    pub(super) tries: Tries,
}

/// Refuses settings that would open the page to everyone, and unusable tokens.
pub(crate) fn check(settings: &ServeSettings) -> Result<(), Failure> {
    if let Some(path) = &settings.admin_token_file {
        let token = read_secret(path, "the admin token")?;
        if token.expose().chars().count() < TOKEN_MIN_CHARS {
            return Err(Failure::usage(format!(
                "the admin token in {} is shorter than {TOKEN_MIN_CHARS} characters; make one with: openssl rand -hex 32",
                path.display()
            )));
        }
    }
    if let Some(name) = &settings.user_header {
        axum::http::HeaderName::from_bytes(name.as_bytes())
            .or(Err(Failure::usage(format!("user_header cannot be '{name}'"))))?;
    }
    let guarded = settings.admin_token_file.is_some() || settings.user_header.is_some();
    match guarded || settings.listen.ip().is_loopback() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the page on {} would be open to everyone; set admin_token_file or user_header, or listen on 127.0.0.1",
            settings.listen
        ))),
    }
}

impl Auth {
    /// The key of forms and the sessions are on disk, so that an open page survives a restart.
    pub(crate) fn new(settings: &ServeSettings, home: &Home) -> Self {
        let key = load_key(&home.web_key);
        Self {
            token_file: settings.admin_token_file.clone(),
            user_header: settings.user_header.clone(),
            public_url: settings.public_url.clone(),
            key,
            sessions: Sessions::load(&home.web_sessions),
            tries: Tries::default(),
        }
    }

    pub(crate) fn is_guarded(&self) -> bool {
        self.token_file.is_some() || self.user_header.is_some()
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token_file.is_some()
    }

    pub(crate) fn is_https(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// Checks a token. The file is read each time, so that a new token is valid at once.
    pub(crate) fn accepts(&self, given: &str) -> Option<Fingerprint> {
        let own = fingerprint(self.token()?.expose());
        same(&own, &fingerprint(given)).then_some(own)
    }

    /// The token in a principal's forms; only a logged-in principal has forms.
    pub(crate) fn form_token(&self, principal: &Principal) -> Option<String> {
        let whose = match principal {
            Principal::Session { id } => format!("session {id}"),
            Principal::User { name } => format!("user {name}"),
            Principal::Reader | Principal::Bearer => return None,
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_ref()?.as_bytes()).ok()?;
        mac.update(whose.as_bytes());
        Some(model::digest::hex(&mac.finalize().into_bytes()))
    }

    pub(crate) fn knows_form(&self, principal: &Principal, given: &str) -> bool {
        self.form_token(principal).is_some_and(|own| same(&fingerprint(&own), &fingerprint(given)))
    }

    pub(crate) fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let from = (header_text(headers, SITE), header_text(headers, ORIGIN.as_str()));
        let host = header_text(headers, HOST.as_str()).unwrap_or_default();
        is_ours(from, host, self.public_url.as_deref())
    }

    /// The header that sets or clears the session cookie.
    pub(crate) fn cookie(&self, id: Option<&str>) -> Option<(axum::http::HeaderName, HeaderValue)> {
        let name = self.cookie_name();
        let value = match id {
            Some(id) => format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict"),
            None => format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"),
        };
        let value = if self.is_https() { value + "; Secure" } else { value };
        Some((SET_COOKIE, HeaderValue::from_str(&value).ok()?))
    }

    /// The principal of a request; `None` if authentication fails.
    fn authenticate(&self, headers: &HeaderMap) -> Option<Principal> {
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
        if self.is_https() { "__Host-bottle" } else { "bottle" }
    }

    fn token(&self) -> Option<Secret> {
        let path = self.token_file.as_ref()?;
        match read_secret(path, "the admin token") {
            Ok(token) => Some(token),
            Err(failure) => {
                tracing::error!(error = %failure, "login is impossible");
                None
            }
        }
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

/// Authenticates a request, or sends its client to the login.
pub(crate) async fn require_principal(
    State(web): State<WebState>,
    mut request: Request,
    next: Next,
) -> Response {
    match web.auth.authenticate(request.headers()) {
        Some(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        None => send_to_login(&web, &request),
    }
}

/// Refuses host names that others may have pointed at this machine (DNS rebinding).
pub(crate) async fn check_host(
    State(web): State<WebState>,
    request: Request,
    next: Next,
) -> Response {
    let public = web.auth.public_url.as_deref();
    let asked = request.uri().authority().map(Authority::as_str);
    let host = header_text(request.headers(), HOST.as_str());
    let known = host.is_some_and(|host| knows_host(host, public))
        && asked.is_none_or(|host| knows_host(host, public))
        && request.headers().get_all(HOST).iter().count() == 1;
    match known {
        true => next.run(request).await,
        false => {
            let detail = "unknown host name; set public_url to serve it by that name";
            let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, detail);
            answer_for(request.uri().path(), &web, problem)
        }
    }
}

/// Renders a problem as JSON for programs and as HTML for people.
pub(crate) fn answer_for(path: &str, web: &WebState, problem: Problem) -> Response {
    match path.starts_with("/api/") || path == "/metrics" {
        true => problem.into_response(),
        false => page::problem(web, &problem),
    }
}

fn send_to_login(web: &WebState, request: &Request) -> Response {
    let path = request.uri().path();
    let is_page = !path.starts_with("/api/") && path != "/metrics";
    if is_page && web.auth.has_token() && request.method() == Method::GET {
        let next = page::login::safe_next(path);
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    // After a button of an open page comes the login, and then the page of the bottle, where the script has kept the words.
    if let Some((bottle, _)) = path.rsplit_once('/').filter(|_| path.starts_with("/bottles/"))
        && web.auth.has_token()
    {
        let next = page::login::safe_next(bottle);
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    let detail = match web.auth.has_token() {
        true => "log in first, or send the admin token: Authorization: Bearer <token>",
        false => "the reverse proxy did not name you; open this page through it",
    };
    answer_for(path, web, Problem::new(StatusCode::UNAUTHORIZED, detail))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, given) = header_text(headers, AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(given)
}
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn settings(text: &str) -> ServeSettings {
        ServeSettings::parse(text).expect("they read")
    }

    #[test]
    fn nothing_is_open_to_everyone() {
        assert!(check(&settings("")).is_ok());
        let open = check(&settings("listen = \"0.0.0.0:80\"")).expect_err("it is refused");
        assert!(open.to_string().contains("would be open to everyone"), "{open}");
        let behind = "listen = \"0.0.0.0:80\"\nuser_header = \"X-Forwarded-User\"";
        assert!(check(&settings(behind)).is_ok());
        assert!(check(&settings("user_header = \"not a header\"")).is_err());
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("token");
        std::fs::write(&path, "short\n").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("private");
        let text = format!("admin_token_file = \"{}\"", path.display());
        let refusal = check(&settings(&text)).expect_err("it is refused").to_string();
        assert!(refusal.contains("shorter than 32 characters"), "{refusal}");
        assert!(!refusal.contains("short\n"), "{refusal}");
        std::fs::write(&path, "a".repeat(32)).expect("written");
        assert!(check(&settings(&text)).is_ok());
    }

    #[test]
    fn a_form_belongs_to_one_principal() {
        let dir = tempfile::tempdir().expect("a folder");
        let auth = Auth::new(&settings("user_header = \"X-User\""), &Home::at(dir.path()));
        let user = |name: &str| Principal::User { name: name.to_owned() };
        let own = auth.form_token(&user("ann")).expect("a token");
        assert!(auth.knows_form(&user("ann"), &own));
        assert!(!auth.knows_form(&user("bob"), &own));
        assert!(!auth.knows_form(&user("ann"), ""));
        assert!(!auth.knows_form(&Principal::Reader, ""), "a reader has no forms");
    }
}
