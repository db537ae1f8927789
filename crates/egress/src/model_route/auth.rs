//! Replacement of keys in the headers of a call, and removal of headers that could change what the call is.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use model::secret::Secret;

use super::spec::AuthStyle;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const CHATGPT_ACCOUNT: HeaderName = HeaderName::from_static("chatgpt-account-id");

/// Mark by which Anthropic's server takes the token of a login.
const LOGIN_BETA: &str = "oauth-2025-04-20";

/// Headers by which a client could authenticate itself or charge another account.
const ACCOUNT: [&str; 11] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "x-amz-security-token",
    "openai-organization",
    "openai-project",
    "chatgpt-account-id",
];

/// Headers in which servers and gateways look for another method, path, host or sender than the request has.
const OVERRIDE: [&str; 11] = [
    "forwarded",
    "x-http-method",
    "x-method-override",
    "x-http-method-override",
    "x-host",
    "x-http-host-override",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "client-ip",
    "true-client-ip",
];
const OVERRIDE_PREFIXES: [&str; 4] = ["x-forwarded", "x-original-", "x-rewrite-", "x-envoy-"];

/// Returns whether the box may not send a header. Many servers see no difference between `_` and `-`.
fn is_stripped(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    ACCOUNT.contains(&name.as_str())
        || OVERRIDE.contains(&name.as_str())
        || OVERRIDE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a call carries the key that the box was given, in any of the usual headers.
pub(super) fn shows_key(headers: &HeaderMap, dummy: &str) -> bool {
    let bearer = headers.get_all(AUTHORIZATION).into_iter().filter_map(bearer_of);
    let plain = [X_API_KEY, API_KEY];
    let plain = plain.iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes);
    bearer.chain(plain).any(|shown| is_same(shown, dummy.as_bytes()))
}

fn bearer_of(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compares in constant time.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Removes every key and every override that the client sent and inserts the real key. A key that no header can carry is left
/// out; the store has already refused it.
pub(super) fn exchange_key(
    headers: &mut HeaderMap,
    style: AuthStyle,
    key: Option<&Secret>,
    account: Option<&str>,
) {
    let stripped: Vec<HeaderName> =
        headers.keys().filter(|name| is_stripped(name)).cloned().collect();
    for name in stripped {
        headers.remove(name);
    }
    let Some(key) = key else { return };
    let plain = |text: &str| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let bearer = || plain(&format!("Bearer {}", key.expose()));
    let added = match style {
        AuthStyle::XApiKey => vec![(X_API_KEY, plain(key.expose()))],
        AuthStyle::ApiKey => vec![(API_KEY, plain(key.expose()))],
        AuthStyle::Bearer => vec![(AUTHORIZATION, bearer())],
        AuthStyle::ClaudeLogin => {
            let betas = betas_with(headers, LOGIN_BETA);
            vec![(AUTHORIZATION, bearer()), (BETA, HeaderValue::from_str(&betas).ok())]
        }
        AuthStyle::ChatgptLogin => {
            vec![(AUTHORIZATION, bearer()), (CHATGPT_ACCOUNT, account.and_then(plain))]
        }
        AuthStyle::Both => vec![(X_API_KEY, plain(key.expose())), (AUTHORIZATION, bearer())],
    };
    for (name, value) in added {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// Features of Anthropic's API that a call names.
pub(super) fn betas_of(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(BETA).into_iter().filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split(',')).map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn betas_with(headers: &HeaderMap, more: &str) -> String {
    let mut betas = betas_of(headers);
    if !betas.iter().any(|beta| beta == more) {
        betas.push(more.to_owned());
    }
    betas.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn the_dummy_is_found_wherever_clients_put_it() {
        let shows = |pairs: &[(&'static str, &str)]| shows_key(&headers(pairs), "dummy-1");
        assert!(shows(&[("authorization", "Bearer dummy-1")]));
        assert!(shows(&[("authorization", "bearer  dummy-1")]));
        assert!(shows(&[("x-api-key", "dummy-1")]));
        assert!(shows(&[("api-key", "dummy-1")]));
        assert!(shows(&[("x-api-key", "forged"), ("x-api-key", "dummy-1")]));
        assert!(!shows(&[("x-api-key", "dummy-2")]));
        assert!(!shows(&[("authorization", "dummy-1")]));
        assert!(!shows(&[("cookie", "dummy-1")]));
        assert!(!shows(&[]));
    }

    #[test]
    fn every_key_of_the_client_goes_and_the_real_one_comes() {
        let check = |style, expected: &[(&str, &str)]| {
            let mut map = headers(&[
                ("authorization", "Bearer forged"),
                ("x-api-key", "forged"),
                ("x-api-key", "forged too"),
                ("api-key", "forged"),
                ("cookie", "a=forged"),
                ("proxy-authorization", "Basic forged"),
                ("openai-organization", "somebody-else"),
            ]);
            exchange_key(&mut map, style, Some(&Secret::new("real")), Some("acc-1"));
            let mut left: Vec<_> =
                map.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            left.sort_unstable();
            assert_eq!(left, expected);
            assert!(!format!("{map:?}").contains("real"));
        };
        check(AuthStyle::XApiKey, &[("x-api-key", "real")]);
        check(AuthStyle::ApiKey, &[("api-key", "real")]);
        check(AuthStyle::Bearer, &[("authorization", "Bearer real")]);
        check(AuthStyle::Both, &[("authorization", "Bearer real"), ("x-api-key", "real")]);
        check(
            AuthStyle::ClaudeLogin,
            &[("anthropic-beta", "oauth-2025-04-20"), ("authorization", "Bearer real")],
        );
        check(
            AuthStyle::ChatgptLogin,
            &[("authorization", "Bearer real"), ("chatgpt-account-id", "acc-1")],
        );
    }

    #[test]
    fn the_mark_of_a_login_joins_what_the_client_asks_for() {
        let mut map = headers(&[("anthropic-beta", "a, b"), ("chatgpt-account-id", "forged")]);
        exchange_key(&mut map, AuthStyle::ClaudeLogin, Some(&Secret::new("real")), None);
        assert_eq!(map["anthropic-beta"], "a,b,oauth-2025-04-20");
        assert!(!map.contains_key("chatgpt-account-id"));
    }

    #[test]
    fn what_could_make_it_another_call_goes_in_every_spelling() {
        let mut map = headers(&[
            ("x-original-url", "/v1/files"),
            ("x_original_url", "/v1/files"),
            ("x-rewrite-url", "/v1/files"),
            ("x-http-method-override", "DELETE"),
            ("x-http-method", "DELETE"),
            ("x-method-override", "DELETE"),
            ("forwarded", "for=127.0.0.1;host=intra.example"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "intra.example"),
            ("x-forwarded-prefix", "/admin"),
            ("x_forwarded_proto", "http"),
            ("x_api_key", "forged"),
            ("x-stainless-lang", "js"),
            ("anthropic-beta", "x"),
            ("session_id", "s"),
        ]);
        exchange_key(&mut map, AuthStyle::XApiKey, None, None);
        let mut left: Vec<_> = map.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["anthropic-beta", "session_id", "x-stainless-lang"]);
    }

    #[test]
    fn without_a_key_nothing_is_added() {
        let mut map = headers(&[("x-api-key", "dummy"), ("accept", "*/*")]);
        exchange_key(&mut map, AuthStyle::Both, None, None);
        assert_eq!(map.len(), 1);
    }
}
