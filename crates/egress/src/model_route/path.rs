//! The calls that the model route forwards.

use hyper::Method;
use model::wire::WireApi;

#[derive(Clone, Debug)]
pub struct AllowedPath {
    pub method: Method,
    /// Its path below the route, without the version prefix.
    pub path: &'static str,
    /// The API it belongs to; `None` means all.
    pub api: Option<WireApi>,
    /// True if the model generates, so that tokens are used.
    pub generates: bool,
}

/// All calls that the route forwards.
pub const ALLOWED_PATHS: &[AllowedPath] = &[
    post("/messages", WireApi::Messages, true),
    post("/messages/count_tokens", WireApi::Messages, false),
    post("/chat/completions", WireApi::Chat, true),
    post("/responses", WireApi::Responses, true),
    AllowedPath { method: Method::GET, path: "/models", api: None, generates: false },
    // Agents probe the server this way.
    AllowedPath { method: Method::HEAD, path: "", api: None, generates: false },
];

const fn post(path: &'static str, api: WireApi, generates: bool) -> AllowedPath {
    AllowedPath { method: Method::POST, path, api: Some(api), generates }
}

/// Finds the call for `path`, the part below the route. The version prefix may be missing, since some servers
/// have it in their base URL.
pub(super) fn find_path(
    apis: &[WireApi],
    method: &Method,
    path: &str,
) -> Option<&'static AllowedPath> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = match path.strip_prefix("/v1") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => path,
    };
    // A single model is as harmless as the list of models.
    let is_same = |known: &str| {
        known == path || known == "/models" && path.strip_prefix("/models/").is_some_and(is_model)
    };
    ALLOWED_PATHS.iter().find(|known| {
        known.method == *method
            && is_same(known.path)
            && known.api.is_none_or(|api| apis.contains(&api))
    })
}

/// Returns whether a path segment can be the name of a model. A segment that begins with a dot may lead a server elsewhere.
fn is_model(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:@.".contains(&byte);
    !segment.starts_with('.') && segment.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, path: &str, expected: bool) {
        let found = find_path(&WireApi::ALL, method, path).is_some();
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn the_calls_of_the_three_apis_are_known() {
        for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions"] {
            check(&Method::POST, path, true);
        }
        check(&Method::POST, "/v1/responses", true);
        check(&Method::POST, "/responses", true);
        check(&Method::GET, "/v1/models", true);
        check(&Method::GET, "/v1/models/some-model-4.5", true);
        for path in ["", "/", "/v1", "/v1/"] {
            check(&Method::HEAD, path, true);
        }
    }

    #[test]
    fn everything_else_is_not() {
        check(&Method::GET, "/v1/messages", false);
        check(&Method::DELETE, "/v1/models/x", false);
        for path in ["/v1/files", "/v1/organizations", "/v1/messages/batches", "/v1x/messages"] {
            check(&Method::POST, path, false);
        }
        for path in ["/v1/../v1/messages", "/v1//messages", "/v1/messages%2f", "/v1/v1/messages"] {
            check(&Method::POST, path, false);
        }
        check(&Method::GET, "/v1/models/../files", false);
        check(&Method::GET, "/v1/models/a/b", false);
        for name in [".", "..", "...", ".%2e", "%2e%2e", "%2E.", "..%2f", "..%5c", "..;", "..\\x"] {
            check(&Method::GET, &format!("/v1/models/{name}"), false);
            check(&Method::GET, &format!("/models/{name}/"), false);
        }
        check(&Method::GET, "", false);
    }

    #[test]
    fn an_api_that_was_not_chosen_is_not_passed_on() {
        let only = [WireApi::Messages];
        assert!(find_path(&only, &Method::POST, "/v1/responses").is_none());
        assert!(find_path(&only, &Method::GET, "/v1/models").is_some());
    }
}
