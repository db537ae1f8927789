//! A box with a way out, from its order to what the host has written down about it.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use egress::policy::{AllowRule, EgressLimits, EgressPolicy, EgressProfile};
use egress::record::{DeniedHost, EgressEntry, EgressVerdict, read_log};
use egress::{EgressConfig, EgressReport, EgressSummary, ModelRouteSpec, ModelUsage};
use engine::box_dir::BoxDir;
use engine::launch::{self, BoxEgress, attach};
use engine::record::ExitRecord;
use engine::shim::EGRESS_SOCKET;
use model::chain::VerifiedChain;
use model::secret::Secret;
use model::verdict::Ended;
use sandbox::spec::{BoxRelay, BoxSpec};

use crate::support::Rig;

/// Where the proxy is inside a box.
pub(crate) const PROXY: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

/// The only name that every machine resolves without asking anybody.
pub(crate) const LOCALHOST: &str = "localhost";

/// What the box's programs have for speaking to the proxy.
const CLIENT: &str = include_str!("client.pl");

/// A box that is still to be started. Its profile is `model-only` unless a test says otherwise.
pub(crate) struct Outing<'a> {
    rig: &'a Rig,
    spec: BoxSpec,
    policy: EgressPolicy,
    model: Option<ModelRouteSpec>,
    keys: Vec<(String, Secret)>,
    log: PathBuf,
}

impl<'a> Outing<'a> {
    /// Runs a Perl script that has the client at hand.
    pub(crate) fn perl(rig: &'a Rig, script: &str) -> Self {
        Self::perl_with(rig, script, &[])
    }

    /// The same with arguments.
    pub(crate) fn perl_with(rig: &'a Rig, script: &str, args: &[&str]) -> Self {
        let program = format!("{CLIENT}\n{script}");
        Self::argv(rig, &[&["perl", "-e", &program, "--"], args].concat())
    }

    /// Runs a command.
    pub(crate) fn argv(rig: &'a Rig, argv: &[&str]) -> Self {
        let relay = BoxRelay { listen: PROXY, socket: EGRESS_SOCKET.to_owned() };
        let mut spec = rig.argv(argv).spec;
        spec.relays.push(relay);
        spec.probe_addresses =
            host::net::addresses().into_iter().map(|ip| (ip, 80).into()).collect();
        let log = BoxDir::new(&spec.box_dir).egress_log();
        let policy = EgressPolicy::new(EgressProfile::ModelOnly);
        Self { rig, spec, policy, model: None, keys: Vec::new(), log }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut BoxSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(crate) fn profile(mut self, profile: EgressProfile) -> Self {
        self.policy.profile = profile;
        self
    }

    pub(crate) fn allow(mut self, rule: &str) -> Self {
        self.policy.allow.push(AllowRule::parse(rule).expect("a rule"));
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut EgressLimits)) -> Self {
        change(&mut self.policy.limits);
        self
    }

    /// Permits addresses that this machine's operator chose.
    pub(crate) fn permit_these(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.policy.permit_private.extend(addresses);
        self
    }

    /// Permits one port of this host's loopback, and the name by which it is asked for.
    pub(crate) fn reach(self, port: u16) -> Self {
        self.permit(port).allow(LOCALHOST)
    }

    fn permit(mut self, port: u16) -> Self {
        // The name may have both addresses, and one that is not permitted spoils the other.
        let both = [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
        self.policy.permit_private.extend::<[SocketAddr; 2]>(both);
        self
    }

    /// Gives the box a model, and the shim its key.
    pub(crate) fn model(mut self, spec: ModelRouteSpec, key: Option<(&str, &str)>) -> Self {
        let port = spec
            .upstream
            .to_string()
            .rsplit_once(':')
            .and_then(|(_, rest)| rest.split('/').next().and_then(|port| port.parse().ok()));
        self.model = Some(spec);
        self.keys.extend(key.map(|(name, value)| (name.to_owned(), Secret::new(value))));
        self.permit(port.expect("a port"))
    }

    /// Keeps the log somewhere else than beside the box.
    pub(crate) fn log(mut self, path: PathBuf) -> Self {
        self.log = path;
        self
    }

    pub(crate) fn start(self) -> Out<'a> {
        let box_dir = BoxDir::new(&self.spec.box_dir);
        let config = EgressConfig {
            run: self.rig.run().to_string(),
            policy: self.policy,
            model: self.model,
            log_path: self.log.clone(),
        };
        let egress = BoxEgress { config, keys: self.keys };
        self.rig.launcher.launch(&self.spec, Some(&egress)).expect("a launch");
        Out { rig: self.rig, spec: self.spec, box_dir, log: self.log }
    }

    /// Runs the box to its end, however it ends.
    pub(crate) async fn run(self) -> Back {
        self.start().end().await
    }

    /// Runs the box to its end, which has to be a good one.
    pub(crate) async fn run_ok(self) -> Back {
        self.run().await.ok()
    }
}

/// A box that is out.
pub(crate) struct Out<'a> {
    rig: &'a Rig,
    pub(crate) spec: BoxSpec,
    pub(crate) box_dir: BoxDir,
    log: PathBuf,
}

/// A failed test leaves nothing running.
impl Drop for Out<'_> {
    fn drop(&mut self) {
        // It has ended long ago, unless the test failed.
        drop(launch::stop(&self.box_dir));
    }
}

impl Out<'_> {
    /// Waits for the end. Whatever happened, there is a record, and the log is whole.
    pub(crate) async fn end(self) -> Back {
        let record = self.record().await;
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let stdout = read(self.box_dir.stdout(self.spec.output));
        let stderr = read(self.box_dir.stderr());
        let Some(report) = record.egress.clone() else { panic!("{record:#?} {stdout} {stderr}") };
        let log = self.check_log(&report.summary);
        Back { record, stdout, stderr, report, log }
    }

    /// Waits for the end and takes what was written last, even if there never was a way out.
    pub(crate) async fn record(&self) -> ExitRecord {
        attach(&self.box_dir).await.expect("a record")
    }

    /// The log as it stands, with its chain checked.
    pub(crate) fn replay(&self) -> VerifiedChain<EgressEntry> {
        let bytes = fs::read(&self.log).expect("a log");
        read_log(self.rig.run().as_str(), &bytes).expect("a whole chain")
    }

    /// Holds the log against the summary.
    fn check_log(&self, summary: &EgressSummary) -> Vec<EgressEntry> {
        let replay = self.replay();
        assert_eq!(replay.head.head, summary.log_head);
        let size = fs::metadata(&self.log).expect("a log").len();
        assert_eq!(replay.whole_bytes as u64, size);
        assert_eq!(replay.lines.len() as u64, summary.totals.requests);
        let denied =
            replay.lines.iter().filter(|entry| entry.verdict == EgressVerdict::Denied).count();
        assert_eq!(denied as u64, summary.denials.iter().map(|denial| denial.count).sum::<u64>());
        assert_eq!(summary.complete, summary.totals.unlogged == 0);
        replay.lines
    }
}

/// A box that has ended.
pub(crate) struct Back {
    pub(crate) record: ExitRecord,
    pub(crate) stdout: String,
    /// Its connections and requests, line by line.
    pub(crate) log: Vec<EgressEntry>,
    stderr: String,
    report: EgressReport,
}

/// What a person wants to see of a box that did not do what it should.
impl std::fmt::Debug for Back {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = |text: &str| text.chars().take(4000).collect::<String>();
        f.debug_struct("Back")
            .field("record", &self.record)
            .field("stdout", &start(&self.stdout))
            .field("stderr", &start(&self.stderr))
            .field("log", &self.log.iter().take(20).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Back {
    /// The same, after a good end.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.record.ended, Ended::Exited { code: 0 }, "{self:#?}");
        self
    }

    pub(crate) fn summary(&self) -> &EgressSummary {
        &self.report.summary
    }

    pub(crate) fn usage(&self) -> &ModelUsage {
        &self.report.usage
    }

    /// The answers that the box was given, each with its status and its text.
    pub(crate) fn answers(&self) -> Vec<(u16, &str)> {
        let parse = |line| parse_answer(line).unwrap_or_else(|| panic!("{line}: {self:#?}"));
        self.stdout.lines().map(parse).collect()
    }

    pub(crate) fn answer(&self) -> (u16, &str) {
        let answers = self.answers();
        assert_eq!(answers.len(), 1, "{self:#?}");
        answers[0]
    }

    /// Expects every answer to be a refusal for one reason, in the record as in the log.
    pub(crate) fn all_refused(&self, targets: &[(&str, u16)], reason: &str) {
        assert_eq!(self.answers().len(), targets.len(), "{self:#?}");
        for ((status, text), (host, port)) in self.answers().into_iter().zip(targets) {
            assert_eq!(status, 403, "{host}: {text}");
            assert!(text.starts_with(&format!("blocked: {host}:{port} ")), "{text}");
        }
        let logged: Vec<_> =
            self.log.iter().map(|entry| (entry.host.as_str(), entry.port)).collect();
        assert_eq!(logged, targets, "{self:#?}");
        for entry in &self.log {
            assert_eq!(
                (entry.verdict, entry.reason.as_deref()),
                (EgressVerdict::Denied, Some(reason))
            );
            assert_eq!((entry.bytes_up, entry.bytes_down), (0, 0), "{entry:?}");
        }
        for (host, _) in targets {
            assert!(self.denied(host, reason) > 0, "{self:#?}");
        }
        assert_eq!(self.summary().totals.allowed, 0);
    }

    /// How often a host was refused for a reason, by the record.
    pub(crate) fn denied(&self, host: &str, reason: &str) -> u64 {
        let is_it = |denial: &&DeniedHost| denial.host == host && denial.reason == reason;
        self.summary().denials.iter().find(is_it).map_or(0, |denial| denial.count)
    }

    /// The reasons in the log, line by line; empty for what went through.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        self.log.iter().map(|entry| entry.reason.as_deref().unwrap_or_default()).collect()
    }
}

fn parse_answer(line: &str) -> Option<(u16, &str)> {
    let (status, text) = line.split_once(' ')?;
    Some((status.parse().ok()?, text))
}
