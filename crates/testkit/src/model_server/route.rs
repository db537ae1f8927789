//! Paths of requests.

use super::Wire;

/// Prefix of the name of a script.
pub(super) const SCRIPT_PREFIX: &str = "/s/";

/// Endpoint of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// The next turn.
    Turn(Wire),
    /// A count of the tokens of a conversation.
    CountTokens,
    /// The list of models.
    Models,
    /// Liveness probe.
    Greeting,
    /// Something else.
    Unknown,
}

/// The script that a path names, empty if it names none, and what is asked of it.
pub(super) fn parse_route<'a>(method: &str, path: &'a str) -> (&'a str, Route) {
    let (script, rest) = match path.strip_prefix(SCRIPT_PREFIX) {
        Some(named) => named.split_once('/').unwrap_or((named, "")),
        None => ("", path),
    };
    // Agents differ in whether their base URL ends in `/v1`, so only the end of the path counts.
    let asks_for = |end: &str| rest == end || rest.ends_with(&format!("/{end}"));
    let route = match method {
        "HEAD" => Route::Greeting,
        "GET" if asks_for("models") => Route::Models,
        "POST" if asks_for("messages/count_tokens") => Route::CountTokens,
        "POST" if asks_for("messages") => Route::Turn(Wire::Messages),
        "POST" if asks_for("chat/completions") => Route::Turn(Wire::Chat),
        "POST" if asks_for("responses") => Route::Turn(Wire::Responses),
        _ => Route::Unknown,
    };
    (script, route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, script: &str, route: Route) {
        assert_eq!(parse_route(method, path), (script, route));
    }

    #[test]
    fn the_end_of_the_path_says_what_is_asked() {
        check("POST", "/s/merge/v1/messages", "merge", Route::Turn(Wire::Messages));
        check("POST", "/s/merge/v1/messages/count_tokens", "merge", Route::CountTokens);
        check("POST", "/s/merge/v1/chat/completions", "merge", Route::Turn(Wire::Chat));
        check("POST", "/s/merge/responses", "merge", Route::Turn(Wire::Responses));
        check("GET", "/s/merge/v1/models", "merge", Route::Models);
        check("HEAD", "/s/merge", "merge", Route::Greeting);
    }

    #[test]
    fn what_nobody_serves_is_unknown() {
        check("GET", "/s/merge/v1/messages", "merge", Route::Unknown);
        check("POST", "/s/merge/v1/embeddings", "merge", Route::Unknown);
        check("GET", "/", "", Route::Unknown);
    }
}
