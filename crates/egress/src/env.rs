//! The variables by which programs in a box find the proxy.
//!
//! No single variable works for all programs, so each of the usual tools gets its own.

use std::net::SocketAddr;

use crate::model_route::MODEL_PREFIX;

/// Hosts that are reached directly, because inside the box they are the box.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

/// Returns the variables for a proxy that listens at `listen` inside the box, as in `127.0.0.1:3128`.
#[must_use]
pub fn proxy_env(listen: SocketAddr) -> Vec<(String, String)> {
    let proxy = format!("http://{listen}");
    let jvm = jvm_options(listen);
    let same = |names: &[&'static str], value: &str| {
        names.iter().map(|name| ((*name).to_owned(), value.to_owned())).collect::<Vec<_>>()
    };
    [
        // curl and git read the lower-case ones only, Go and many others either.
        same(&["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], &proxy),
        same(&["http_proxy", "https_proxy", "all_proxy"], &proxy),
        same(&["NO_PROXY", "no_proxy"], NO_PROXY),
        same(&["npm_config_proxy", "npm_config_https_proxy"], &proxy),
        same(&["npm_config_noproxy"], NO_PROXY),
        same(&["YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"], &proxy),
        same(&["NODE_USE_ENV_PROXY"], "1"),
        same(&["PIP_PROXY", "CARGO_HTTP_PROXY"], &proxy),
        same(&["JAVA_TOOL_OPTIONS", "GRADLE_OPTS"], &jvm),
    ]
    .concat()
}

/// Returns the base URL of the model for an agent inside the box.
#[must_use]
pub fn model_base_url(listen: SocketAddr) -> String {
    format!("http://{listen}{MODEL_PREFIX}")
}

fn jvm_options(listen: SocketAddr) -> String {
    let (host, port) = (listen.ip(), listen.port());
    let of = |scheme: &str| format!("-D{scheme}.proxyHost={host} -D{scheme}.proxyPort={port}");
    format!("{} {} -Dhttp.nonProxyHosts=localhost|127.*|[::1]", of("http"), of("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> String {
        let all = proxy_env("127.0.0.1:3128".parse().unwrap());
        all.into_iter().find(|(known, _)| known == name).unwrap().1
    }

    #[test]
    fn every_tool_is_told_in_its_own_way() {
        for name in ["HTTPS_PROXY", "http_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY"] {
            assert_eq!(value(name), "http://127.0.0.1:3128");
        }
        assert_eq!(value("no_proxy"), "127.0.0.1,localhost,::1");
        assert_eq!(
            value("JAVA_TOOL_OPTIONS"),
            "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 \
             -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
        );
    }

    #[test]
    fn no_variable_is_named_twice() {
        let mut names: Vec<_> = proxy_env("127.0.0.1:3128".parse().unwrap())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn the_model_is_below_the_proxy() {
        let base = model_base_url("127.0.0.1:3128".parse().unwrap());
        assert_eq!(base, "http://127.0.0.1:3128/-/model");
    }
}
