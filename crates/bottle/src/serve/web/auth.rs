//! Authentication: which principals the settings allow, and what happens to requests of others.

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use web_base::auth::{Auth, AuthOptions, CookieName, TOKEN_MIN_CHARS};

use super::problem::Problem;
use super::{WebState, page};
use crate::exit::Failure;
use crate::flow::home::Home;
use crate::serve::settings::{ServeSettings, read_secret};

pub(crate) use web_base::auth::Principal;

const COOKIE: CookieName = CookieName { http: "bottle", https: "__Host-bottle" };

/// The logins that the settings allow.
pub(crate) fn open_auth(settings: &ServeSettings, home: &Home) -> Auth {
    Auth::open(AuthOptions {
        token_file: settings.admin_token_file.clone(),
        user_header: settings.user_header.clone(),
        public_url: settings.public_url.clone(),
        cookie_name: COOKIE,
        key_file: &home.web_key,
        sessions_file: &home.web_sessions,
    })
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
    match web.auth.is_for_us(request.uri(), request.headers()) {
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
        let auth = open_auth(&settings("user_header = \"X-User\""), &Home::at(dir.path()));
        let user = |name: &str| Principal::User { name: name.to_owned() };
        let own = auth.form_token(&user("ann")).expect("a token");
        assert!(auth.knows_form(&user("ann"), &own));
        assert!(!auth.knows_form(&user("bob"), &own));
        assert!(!auth.knows_form(&user("ann"), ""));
        assert!(!auth.knows_form(&Principal::Reader, ""), "a reader has no forms");
    }
}
