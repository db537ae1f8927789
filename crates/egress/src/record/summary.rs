//! The summary of a run's egress, for its record and for display.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::escape::escape_line;
use serde::{Deserialize, Serialize};

use super::{EgressEntry, EgressVerdict};

/// Hosts reached and denied by a run, with byte counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressSummary {
    /// Traffic by host, in the order of their names.
    pub per_host: Vec<HostTraffic>,
    /// Denials, in the order of host and reason.
    pub denials: Vec<DeniedHost>,
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    pub totals: Totals,
    /// The hash of the log's last line.
    pub log_head: String,
    /// True if the log has a line for every connection and request.
    pub complete: bool,
}

/// Connections and requests to one host, and their bytes out of the box (up) and into it (down).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTraffic {
    pub host: String,
    pub allowed: u64,
    pub denied: u64,
    pub failed: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

/// One kind of refusal of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedHost {
    pub host: String,
    /// The reason, as one word.
    pub reason: String,
    pub count: u64,
}

/// All hosts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Connections and requests that have a line.
    pub requests: u64,
    pub allowed: u64,
    pub denied: u64,
    pub failed: u64,
    /// Refused without a line, after the run reached its limit on requests.
    pub unlogged: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

/// Limit on listed hosts; further ones are counted together, since a box can invent any number.
const HOSTS_MAX: usize = 2000;
const OTHER_HOSTS: &str = "(other hosts)";
/// Placeholder for a request without a readable host.
const NO_HOST: &str = "(no host)";

#[derive(Debug, Default)]
pub(super) struct EgressTally {
    hosts: BTreeMap<String, HostTraffic>,
    denials: BTreeMap<(String, String), u64>,
    first_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    pub(super) totals: Totals,
}

impl EgressTally {
    pub(super) fn absorb(&mut self, entry: &EgressEntry) {
        self.first_at = self.first_at.or(Some(entry.ts));
        self.last_at = Some(entry.ts);
        let host = self.bounded_name(&entry.host);
        if entry.verdict == EgressVerdict::Denied {
            let reason = entry.reason.clone().unwrap_or_default();
            *self.denials.entry((host.clone(), reason)).or_default() += 1;
        }
        let traffic = self.hosts.entry(host.clone()).or_default();
        traffic.host = host;
        traffic.bytes_up += entry.bytes_up;
        traffic.bytes_down += entry.bytes_down;
        let totals = &mut self.totals;
        totals.requests += 1;
        totals.bytes_up += entry.bytes_up;
        totals.bytes_down += entry.bytes_down;
        let (one, all) = match entry.verdict {
            EgressVerdict::Allowed => (&mut traffic.allowed, &mut totals.allowed),
            EgressVerdict::Denied => (&mut traffic.denied, &mut totals.denied),
            EgressVerdict::Failed => (&mut traffic.failed, &mut totals.failed),
        };
        *one += 1;
        *all += 1;
    }

    fn bounded_name(&self, host: &str) -> String {
        let name = if host.is_empty() { NO_HOST } else { host };
        let has_room = self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(name);
        if has_room { name } else { OTHER_HOSTS }.to_owned()
    }

    pub(super) fn summary(&self, log_head: &str, complete: bool) -> EgressSummary {
        let denial = |((host, reason), count): (&(String, String), &u64)| DeniedHost {
            host: host.clone(),
            reason: reason.clone(),
            count: *count,
        };
        EgressSummary {
            per_host: self.hosts.values().cloned().collect(),
            denials: self.denials.iter().map(denial).collect(),
            first_at: self.first_at,
            last_at: self.last_at,
            totals: self.totals,
            log_head: log_head.to_owned(),
            complete: complete && self.totals.unlogged == 0,
        }
    }
}

/// Renders the summary for display: denials first, since the user can change those.
#[must_use]
pub fn render_summary(summary: &EgressSummary) -> Vec<String> {
    let mut lines: Vec<String> = summary.denials.iter().map(render_denial).collect();
    for traffic in &summary.per_host {
        if traffic.allowed > 0 {
            lines.push(format!(
                "reached: {}, {}, {} up, {} down",
                escape_line(&traffic.host),
                render_count(traffic.allowed),
                render_size(traffic.bytes_up),
                render_size(traffic.bytes_down)
            ));
        }
        if traffic.failed > 0 {
            lines.push(format!(
                "failed: {}, {}",
                escape_line(&traffic.host),
                render_count(traffic.failed)
            ));
        }
    }
    if summary.totals.unlogged > 0 {
        lines.push(format!("blocked: {} more requests, not listed", summary.totals.unlogged));
    }
    if !summary.complete {
        lines.push("the egress log is not complete".to_owned());
    }
    lines
}

fn render_denial(denial: &DeniedHost) -> String {
    let host = escape_line(&denial.host);
    let count = render_count(denial.count);
    if denial.reason == "not_allowed" {
        format!("blocked: {host}, {count}; allow with --allow {host}")
    } else {
        format!("blocked: {host}, {count} ({})", denial.reason.replace('_', " "))
    }
}

fn render_count(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn render_size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TrafficKind;

    fn entry(
        host: &str,
        verdict: EgressVerdict,
        reason: Option<&str>,
        bytes_down: u64,
    ) -> EgressEntry {
        EgressEntry {
            run: "r".to_owned(),
            seq: 1,
            ts: Timestamp::UNIX_EPOCH,
            kind: TrafficKind::Http,
            host: host.to_owned(),
            port: 80,
            address: None,
            verdict,
            reason: reason.map(str::to_owned),
            bytes_up: 10,
            bytes_down,
            ms: 1,
            status: None,
            spend: None,
            prev: String::new(),
        }
    }

    #[test]
    fn people_see_what_was_blocked_and_how_to_allow_it() {
        let mut tally = EgressTally::default();
        for _ in 0..3 {
            tally.absorb(&entry("example.org", EgressVerdict::Denied, Some("not_allowed"), 0));
        }
        tally.absorb(&entry("169.254.169.254", EgressVerdict::Denied, Some("ip_literal"), 0));
        tally.absorb(&entry("pypi.org", EgressVerdict::Allowed, None, 1_250_000));
        tally.absorb(&entry("pypi.org", EgressVerdict::Failed, Some("unreachable"), 0));
        tally.absorb(&entry("e\u{1b}[2J", EgressVerdict::Denied, Some("bad_target"), 0));
        let lines = render_summary(&tally.summary("head", true));
        assert_eq!(
            lines,
            [
                "blocked: 169.254.169.254, once (ip literal)",
                "blocked: e\\x1b[2J, once (bad target)",
                "blocked: example.org, 3 times; allow with --allow example.org",
                "reached: pypi.org, once, 20 B up, 1.2 MB down",
                "failed: pypi.org, once",
            ]
        );
    }

    #[test]
    fn invented_hosts_do_not_fill_the_memory() {
        let mut tally = EgressTally::default();
        for number in 0..HOSTS_MAX + 50 {
            tally.absorb(&entry(
                &format!("h{number}"),
                EgressVerdict::Denied,
                Some("not_allowed"),
                0,
            ));
        }
        let summary = tally.summary("", true);
        assert_eq!(summary.per_host.len(), HOSTS_MAX + 1);
        assert_eq!(summary.per_host[0].host, OTHER_HOSTS);
        assert_eq!(summary.per_host[0].denied, 50);
        assert_eq!(summary.totals.denied, HOSTS_MAX as u64 + 50);
    }
}
