//! Reading and verifying the egress log, a hash-chained log ([`model::chain`]) whose first line is bound to the run.

use model::chain::{ChainDefect, ChainFault, ChainHead, ChainLine, VerifiedChain, verify_chain};

use super::EgressEntry;

/// Returns the chain head of a run's log before its first line.
#[must_use]
pub fn genesis(run: &str) -> ChainHead {
    ChainHead::genesis(format!("bottleworks egress log\n{run}\n").as_bytes())
}

/// Reads a log and verifies its chain. A torn last line is skipped.
pub fn read_log(run: &str, bytes: &[u8]) -> Result<VerifiedChain<EgressEntry>, ChainFault> {
    let chain: VerifiedChain<EgressEntry> = verify_chain(bytes, genesis(run))?;
    match chain.lines.iter().find(|entry| entry.run != run) {
        Some(entry) => Err(ChainFault { line: entry.seq, what: ChainDefect::Link }),
        None => Ok(chain),
    }
}

impl ChainLine for EgressEntry {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn prev(&self) -> &str {
        &self.prev
    }
}

#[cfg(test)]
mod tests {
    use model::digest::sha256;

    use super::*;
    use crate::record::{EgressVerdict, TrafficKind};

    fn log(run: &str, hosts: &[&str]) -> String {
        let mut head = genesis(run);
        let mut text = String::new();
        for (seq, host) in (1..).zip(hosts) {
            let entry = EgressEntry {
                run: run.to_owned(),
                seq,
                ts: jiff::Timestamp::UNIX_EPOCH,
                kind: TrafficKind::Connect,
                host: (*host).to_owned(),
                port: 443,
                address: None,
                verdict: EgressVerdict::Denied,
                reason: Some("not_allowed".to_owned()),
                bytes_up: 0,
                bytes_down: 0,
                ms: 1,
                status: None,
                spend: None,
                prev: head.head.clone(),
            };
            let line = serde_json::to_string(&entry).unwrap();
            head = head.after(line.as_bytes());
            text += &line;
            text.push('\n');
        }
        text
    }

    #[test]
    fn a_whole_log_is_read_and_its_head_is_the_last_hash() {
        let text = log("r1", &["a.example", "b.example"]);
        let chain = read_log("r1", text.as_bytes()).unwrap();
        let last = sha256(text.lines().last().unwrap().as_bytes());
        assert_eq!(chain.head, ChainHead { seq: 2, head: last });
        assert_eq!(chain.lines.len(), 2);
        assert_eq!(read_log("r1", b"").unwrap().head, genesis("r1"));
    }

    #[test]
    fn a_changed_a_missing_and_a_foreign_line_are_noticed() {
        let text = log("r1", &["a.example", "b.example", "c.example"]);
        let broken =
            |text: &str, run: &str| read_log(run, text.as_bytes()).unwrap_err().to_string();
        assert!(broken(&text.replace("b.example", "x.example"), "r1").contains("line 3"));
        let without_second: Vec<&str> = text
            .split_inclusive('\n')
            .enumerate()
            .filter(|(i, _)| *i != 1)
            .map(|(_, l)| l)
            .collect();
        assert!(broken(&without_second.concat(), "r1").contains("line 2"));
        assert!(broken(&text, "r2").contains("line 1"));
        assert!(broken("{}\n", "r1").contains("is not an entry of this log"));
    }

    #[test]
    fn a_torn_tail_is_passed_over() {
        let text = log("r1", &["a.example", "b.example"]);
        let torn = &text[..text.len() - 5];
        let chain = read_log("r1", torn.as_bytes()).unwrap();
        assert_eq!(chain.lines.len(), 1);
        assert_eq!(chain.whole_bytes, text.find('\n').unwrap() + 1);
    }
}
