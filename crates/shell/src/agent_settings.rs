//! Settings of agents that every program has: the default image, prices, scripts and the egress policy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use agent::scripted::{Script, ScriptError, parse_script};
use egress::model_route::Price;
use egress::{AllowRule, EgressPolicy, EgressProfile, RuleError};

/// The image for boxes on a container engine: the one that `docker/kitchen-sink` makes.
pub const DEFAULT_IMAGE: &str = "forklift/kitchen-sink:latest";

/// Price from dollars for a million tokens, read and written. A token from the cache costs a tenth of one that is
/// read; writing one into the cache costs as much as reading it.
pub fn price(input: f64, output: f64) -> Price {
    Price { input, output, cache_read: input / 10.0, cache_write: input }
}

/// Parses a price: dollars for a million tokens as `IN,OUT`.
pub fn parse_price(text: &str) -> Option<Price> {
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let (input, output) = text.split_once(',')?;
    Some(price(number(input)?, number(output)?))
}

/// A script of the scripted agent that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    #[error("could not read the script {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: ScriptError },
}

/// Loads a script of the scripted agent.
pub fn load_script(path: &Path) -> Result<Script, ScriptFileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ScriptFileError::Read { path: path.to_owned(), source })?;
    parse_script(&text).map_err(|source| ScriptFileError::Parse { path: path.to_owned(), source })
}

/// Egress policy from a profile, additional hosts, and private addresses that count as public.
pub fn egress_policy(
    profile: EgressProfile,
    allow: &[String],
    permit_private: &[SocketAddr],
) -> Result<EgressPolicy, RuleError> {
    let mut policy = EgressPolicy::new(profile);
    for rule in allow {
        policy.allow.push(AllowRule::parse(rule)?);
    }
    policy.permit_private = permit_private.to_vec();
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_two_numbers() {
        assert_eq!(parse_price("1, 10"), Some(price(1.0, 10.0)));
        for wrong in ["", "1", "1,", "1;2", "-1,2", "NaN,1", "1,inf"] {
            assert_eq!(parse_price(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_from_the_cache_cost_a_tenth() {
        let price = price(3.0, 15.0);
        assert_eq!((price.cache_read, price.cache_write), (0.3, 3.0));
    }

    #[test]
    fn a_script_that_cannot_be_used_names_its_file() {
        let error = load_script(Path::new("/nowhere/agent.toml")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/agent.toml"), "{error}");
    }

    #[test]
    fn a_policy_has_the_hosts_and_addresses_that_were_named() {
        let address = "10.0.0.5:8080".parse().unwrap();
        let policy =
            egress_policy(EgressProfile::ModelOnly, &["example.org".to_owned()], &[address])
                .unwrap();
        assert_eq!((policy.allow.len(), policy.permit_private), (1, vec![address]));
        assert!(egress_policy(EgressProfile::Open, &["not a host".to_owned()], &[]).is_err());
    }
}
