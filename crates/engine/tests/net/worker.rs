//! A real agent in a box, with a scripted model on the other side of the wire.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agent::{
    AgentCommand, AgentReport, AgentRequest, Interaction, ModelEndpoint, Provider, SessionRequest,
    Usage,
};
use egress::model_route::{AuthStyle, KeySource, ModelRouteSpec, Upstream};
use engine::agent_log::Listener;
use engine::install::{self, Installed};
use engine::workspace::give;
use model::verdict::Ended;
use sandbox::spec::{BoxOutput, BoxSpec, MIB};
use testkit::model_server::{ModelServer, RequestLog};
use testkit::part::require_folder;
use testkit::tree::holding;
use tokio::sync::{Mutex, MutexGuard};

use crate::outing::{Back, Outing, PROXY};
use crate::support::Rig;

/// The folder below which the programs were installed, as XDG_DATA_HOME.
const AGENTS_VARIABLE: &str = "BOTTLEWORKS_TEST_AGENTS";

const KEY_VARIABLE: &str = "NET_TEST_AGENT_KEY";

/// The key that must never be found inside.
const REAL: &str = "real-key-of-the-agents-host";

/// The name under which the server has the script.
pub(crate) const SCRIPT: &str = "run";

/// The heavy ones work one after another.
static TURN: Mutex<()> = Mutex::const_new(());

/// An agent that is installed, and the box it works in.
pub(crate) struct Worker<'a> {
    rig: &'a Rig,
    provider: Provider,
    installed: Installed,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// What came of a piece of work.
pub(crate) struct Worked {
    pub(crate) back: Back,
    pub(crate) report: AgentReport,
}

impl<'a> Worker<'a> {
    /// The agent, if it is installed; `None` after saying that it is not.
    pub(crate) async fn find(rig: &'a Rig, provider: Provider) -> Option<Self> {
        let data = require_folder("agents", AGENTS_VARIABLE, "run scripts/test-real")?;
        let program = provider.program().expect("a program of its own");
        let agents = data.join("bottleworks/agents");
        let installed = install::find(&agents, &program).unwrap_or_else(|| {
            panic!("{} {} is not below {}", program.name, program.version, agents.display())
        });
        let turn = match provider {
            Provider::OpenCode => Some(TURN.lock().await),
            _ => None,
        };
        Some(Self { rig, provider, installed, _turn: turn })
    }

    /// Has it do something, in a box of its own on the rig's folders. `earlier` is what its conversation had used.
    pub(crate) async fn work(
        &self,
        server: &ModelServer,
        prompt: &str,
        session: SessionRequest,
        earlier: Option<Usage>,
    ) -> Worked {
        let command = self.command(prompt, session);
        let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
        let outing =
            Outing::argv(self.rig, &argv).model(self.route(server), Some((KEY_VARIABLE, REAL)));
        let out = outing.with(|spec| self.furnish(spec, &command)).start();
        let log = out.box_dir.stdout(out.spec.output);
        let back = out.end().await;
        let exit = match back.record.ended {
            Ended::Exited { code } => Some(code),
            _ => None,
        };
        let listener = match earlier {
            Some(earlier) => Listener::resuming(self.provider, &log, earlier),
            None => Listener::new(self.provider, &log),
        };
        let report = listener.finish(exit, |_| ());
        let worked = Worked { back: back.ok(), report };
        assert!(worked.report.outcome.is_finished(), "{:#?} {:#?}", worked.report, worked.back);
        self.check_key(server);
        worked
    }

    fn command(&self, prompt: &str, session: SessionRequest) -> AgentCommand {
        let request = AgentRequest {
            launcher: self.installed.launcher.clone(),
            prompt: prompt.to_owned(),
            manner: Interaction::Headless,
            model: Some(self.model().to_owned()),
            variant: None,
            agent: None,
            session,
            model_route: ModelEndpoint {
                base_url: egress::model_base_url(PROXY),
                wire: self.provider.default_wire().expect("a way to talk"),
                dummy_key: self.dummy(),
            },
            mcp: Vec::new(),
            workspace: guest::WORKSPACE.to_owned(),
            run_title: self.rig.run().to_string(),
            price: None,
            script: None,
            template: None,
        };
        self.provider.command(&request).expect("a command")
    }

    /// A name that the agent has bundled, where it looks names up.
    fn model(&self) -> &'static str {
        match self.provider {
            Provider::Codex => "gpt-5.5",
            Provider::Claude => "claude-sonnet-4-5",
            Provider::OpenCode | Provider::Pi | Provider::Command | Provider::Scripted => {
                "scripted"
            }
        }
    }

    fn dummy(&self) -> String {
        format!("bottle-{}", self.rig.run())
    }

    fn route(&self, server: &ModelServer) -> ModelRouteSpec {
        let upstream = Upstream::parse(&server.base_url(SCRIPT)).expect("an address");
        let auth = match self.provider {
            Provider::Claude => AuthStyle::XApiKey,
            _ => AuthStyle::Bearer,
        };
        ModelRouteSpec::new(upstream, auth, KeySource::Env(KEY_VARIABLE.to_owned()), &self.dummy())
    }

    /// Puts the agent's program, variables and files where it will find them.
    fn furnish(&self, spec: &mut BoxSpec, command: &AgentCommand) {
        spec.programs.push(self.installed.mount.clone());
        let usual =
            [("SHELL", "/bin/bash"), ("LANG", "C.UTF-8"), ("TERM", "dumb"), ("USER", "agent")];
        spec.env.extend(usual.map(|(name, value)| (name.to_owned(), value.to_owned())));
        spec.env.extend(egress::proxy_env(PROXY));
        spec.env.extend(command.env.clone());
        spec.output = BoxOutput::Log { cap: 16 * MIB };
        spec.deadline_secs = 150;
        for (name, text) in &command.files {
            write(&spec.guest_dir().join(name), text, 0o644);
        }
        let home = self.rig.harness_state().join("home");
        for (path, text) in &command.home {
            write(&home.join(path), text, 0o600);
        }
        give(&home, spec.user).expect("the agent's own home");
    }

    /// The model was asked with the real key, and nothing of the run holds it.
    fn check_key(&self, server: &ModelServer) {
        let asked = asked(server);
        let real =
            |request: &RequestLog| request.auth.as_deref().unwrap_or_default().ends_with(REAL);
        assert!(!asked.is_empty() && asked.iter().all(real), "{asked:?}");
        assert!(holding(self.rig.dir(), REAL).is_empty(), "{:?}", holding(self.rig.dir(), REAL));
    }
}

/// Requests that made the model work, titles and the like left out.
pub(crate) fn asked(server: &ModelServer) -> Vec<RequestLog> {
    server.requests().into_iter().filter(|request| request.turn.is_some()).collect()
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("a folder above")).expect("the folder");
    fs::write(path, text).expect("the file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}
