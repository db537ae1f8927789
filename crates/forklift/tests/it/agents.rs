//! Real agent programs in a real box, behind the model route, with a scripted model: the whole way from the command
//! line to the branch on origin. Serial for each agent; they are heavy.

use std::path::PathBuf;

use testkit::hermetic::Output;
use testkit::model_server::{ModelScript, ModelServer, RequestLog, Turn};
use testkit::part::{Part, require, require_folder};
use testkit::repo::Fork;
use testkit::tree::holding;

use crate::support::Person;

/// The folder below which `forklift agents install` has put the programs, as XDG_DATA_HOME.
/// Merges upstream and keeps the lines of both sides.
const MERGE_BOTH: &str = "mkdir -p .git/info && echo '* merge=union' > .git/info/attributes && git merge --no-edit upstream/main";

const AGENTS_VARIABLE: &str = "BOTTLEWORKS_TEST_AGENTS";

/// The key that must never be found inside.
const REAL_KEY: &str = "canary-real-key-of-the-host";

/// One agent under test.
pub(crate) struct Agent {
    name: &'static str,
    /// Flags that it needs beside the common ones.
    flags: &'static [&'static str],
    /// The variable that holds its key.
    key: &'static str,
    /// What it needs beside itself.
    part: Option<Part>,
}

pub(crate) const CODEX: Agent =
    Agent { name: "codex", flags: &["--model", "gpt-5.5"], key: "OPENAI_API_KEY", part: None };
const CLAUDE: Agent = Agent {
    name: "claude",
    flags: &["--model", "claude-sonnet-4-5"],
    key: "ANTHROPIC_API_KEY",
    part: None,
};
pub(crate) const OPENCODE: Agent =
    Agent { name: "opencode", flags: &[], key: "OPENCODE_API_KEY", part: None };
const PI: Agent = Agent {
    name: "pi",
    flags: &["--model", "scripted"],
    key: "MODEL_API_KEY",
    part: Some(Part::Node),
};

/// A person with the agent installed and a model server.
pub(crate) struct Scene {
    pub(crate) person: Person,
    server: ModelServer,
    data: PathBuf,
    /// Where the box comes from, and whatever that needs.
    pub(crate) backend: Vec<String>,
    /// A token for the forge, if there is one.
    pub(crate) token: Option<&'static str>,
}

impl Scene {
    pub(crate) fn new(agent: &Agent, turns: Vec<Turn>) -> Option<Self> {
        if let Some(part) = agent.part {
            require(part)?;
        }
        let data = require_folder("agents", AGENTS_VARIABLE, "run scripts/test-real")?;
        let person = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge())?;
        let server = ModelServer::start([("run", ModelScript::new(turns))]);
        let backend = ["--backend", "bwrap"].map(str::to_owned).to_vec();
        Some(Self { person, server, data, backend, token: None })
    }

    pub(crate) fn run(&self, agent: &Agent, more: &[&str]) -> Output {
        let mut command = self.person.forklift(&["--provider", agent.name]);
        command.args(&self.backend);
        if let Some(token) = self.token {
            command.env("FORKLIFT_TOKEN", token);
        }
        if let Some(engine) = host::env::var("DOCKER_HOST") {
            command.env("DOCKER_HOST", engine);
        }
        let server = self.server.addr().to_string();
        command
            .args(["--model-url", &self.server.base_url("run"), "--permit-private", &server])
            .args(["--egress", "model-only"])
            .args(agent.flags)
            .args(more)
            .env("XDG_DATA_HOME", &self.data)
            .env("FORKLIFT_OPENCODE_ENV", self.settings())
            .env(agent.key, REAL_KEY);
        self.person.hermetic.run(&mut command)
    }

    /// OpenCode's settings; the others do not look at them.
    fn settings(&self) -> PathBuf {
        let path = self.person.hermetic.root().join("opencode.env");
        let text = format!(
            "OPENCODE_API_KEY={REAL_KEY}\nOPENCODE_MODEL=scripted\nOPENCODE_VARIANT=high\nOPENCODE_AGENT=build\n"
        );
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("set");
        path
    }

    /// Requests that made the model work, titles and the like left out.
    fn asked(&self) -> Vec<RequestLog> {
        self.server.requests().into_iter().filter(|request| request.turn.is_some()).collect()
    }
}

/// Looks for a secret in everything that can be read inside. Each pattern is written so that it does not match
/// itself; that the search can find something is shown with the dummy key, which is there on purpose.
const SEARCH: &str = r#"
look() { cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -q "$1" ||
  grep -rqs "$1" /harness-state /tmp /workspace; }
look 'canary-rea[l]-key' && echo REAL KEY FOUND || echo real key absent
look 'bottle-for[k]_' && echo dummy key found || echo DUMMY KEY ABSENT
"#;

/// What a good agent does with the conflict: look, resolve, commit; and on the way it searches for the key.
pub(crate) fn good_turns() -> Vec<Turn> {
    vec![
        Turn::shell("git merge --no-edit upstream/main || true"),
        Turn::shell(SEARCH),
        Turn::shell("sed -i '/^[<=>]\\{7\\}/d' shared.txt && git add -A && git commit --no-edit"),
        Turn::text("There was one conflict, in shared.txt; I kept both sides."),
    ]
}

fn resolves_a_conflict(agent: &Agent) {
    let Some(scene) = Scene::new(agent, good_turns()) else { return };
    resolves_the_conflict_of(&scene, agent, &[]);
}

/// The whole way, with the search for the key on it.
pub(crate) fn resolves_the_conflict_of(scene: &Scene, agent: &Agent, more: &[&str]) {
    let output = scene.run(agent, more);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(scene.person.published().len(), 1);
    let asked = scene.asked();
    assert!(asked.len() >= 4, "{} requests", asked.len());
    for request in &asked {
        let auth = request.auth.as_deref().unwrap_or_default();
        assert!(auth.contains(REAL_KEY), "the server got {auth:?}");
    }
    let said: Vec<String> =
        asked.iter().filter_map(|request| request.last_tool_result.clone()).collect();
    let search = said.iter().find(|text| text.contains("key absent") || text.contains("KEY FOUND"));
    let search = search.unwrap_or_else(|| panic!("the search was not made: {said:?}"));
    assert!(search.contains("real key absent") && search.contains("dummy key found"), "{search}");
    key_is_nowhere(scene);
    let summary = scene.person.metadata("/agent_result");
    assert_eq!(summary["claim"]["kind"], "finished", "{summary}");
    assert!(summary["tool_calls"].as_u64() >= Some(3), "{summary}");
    assert!(summary["input_tokens"].as_u64() > Some(0), "{summary}");
    let usage = scene.person.metadata("/box/egress/usage");
    assert!(usage["requests"].as_u64() >= Some(4), "{usage}");
}

/// No file of the run holds the key.
fn key_is_nowhere(scene: &Scene) {
    let found = holding(&scene.person.only_run(), REAL_KEY);
    assert!(found.is_empty(), "the key is in {found:?}");
}

/// A failing tool is the agent's business, and it goes on.
fn survives_a_failing_tool(agent: &Agent) {
    let Some(scene) =
        Scene::new(agent, vec![Turn::shell("exit 3"), Turn::shell(MERGE_BOTH), Turn::text("done")])
    else {
        return;
    };
    let output = scene.run(agent, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// A key that the server refuses is the agent's failure, whatever status the program leaves.
fn tells_of_a_refused_key(agent: &Agent) {
    let Some(scene) = Scene::new(agent, vec![Turn::status(401)]) else { return };
    let output = scene.run(agent, &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(output.stdout.contains("401"), "{}", output.stdout);
}

/// A server that stumbles twice is asked again.
fn asks_again_after_errors(agent: &Agent) {
    let merge = Turn::shell(MERGE_BOTH);
    let Some(scene) = Scene::new(agent, vec![Turn::fail_first(2, 500, merge), Turn::text("done")])
    else {
        return;
    };
    let output = scene.run(agent, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// A model that never answers is cut off by the silence limit, and nothing of the agent is left.
fn is_ended_when_nothing_moves(agent: &Agent) {
    let Some(scene) = Scene::new(agent, vec![Turn::Hang { comments: false }]) else { return };
    let output = scene.run(agent, &["--silence", "6"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert_eq!(scene.person.metadata("/box/fell_silent"), true);
}

/// Configuration that the repository brings along does not run.
fn ignores_the_repositorys_configuration(agent: &Agent) {
    let Some(scene) = Scene::new(
        agent,
        vec![
            Turn::shell(MERGE_BOTH),
            Turn::shell(
                "ls /tmp/hostile-* /harness-state/hostile-* 2>/dev/null || echo nothing ran",
            ),
            Turn::text("done"),
        ],
    ) else {
        return;
    };
    plant(&scene);
    let output = scene.run(agent, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let seen = scene.asked().into_iter().filter_map(|request| request.last_tool_result);
    assert!(seen.into_iter().any(|text| text.contains("nothing ran")), "{:?}", scene.asked());
}

/// Hooks, plugins, tool servers and extensions for all four agents, each of which would leave a mark in the box.
fn plant(scene: &Scene) {
    let mark = |name: &str| format!("touch /harness-state/hostile-{name}");
    let checkout = &scene.person.fork.checkout;
    let plugin = format!(
        "export const X = async () => {{ require('child_process').execSync('{}'); return {{}} }}\n",
        mark("opencode")
    );
    checkout.write(".opencode/plugin/x.js", plugin);
    let hook = serde_json::json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": mark("claude")}]}]}});
    checkout.write(".claude/settings.json", hook.to_string());
    let server =
        serde_json::json!({"mcpServers": {"x": {"command": "sh", "args": ["-c", mark("mcp")]}}});
    checkout.write(".mcp.json", server.to_string());
    checkout.write(
        ".codex/config.toml",
        format!("[mcp_servers.x]\ncommand = \"sh\"\nargs = [\"-c\", \"{}\"]\n", mark("codex")),
    );
    checkout.write(
        ".pi/extensions/x.ts",
        format!("require('child_process').execSync('{}')\n", mark("pi")),
    );
    scene.person.fork.fork_commit("bring configuration");
}

macro_rules! agents {
    ($($module:ident: $agent:expr => [$($promise:ident),* $(,)?]),* $(,)?) => {
        $(mod $module {
            $(#[test]
            fn $promise() {
                super::$promise(&$agent);
            })*
        })*
    };
}

agents! {
    codex: super::CODEX => [resolves_a_conflict, survives_a_failing_tool, tells_of_a_refused_key, asks_again_after_errors, is_ended_when_nothing_moves, ignores_the_repositorys_configuration],
    claude: super::CLAUDE => [resolves_a_conflict, survives_a_failing_tool, tells_of_a_refused_key, asks_again_after_errors, is_ended_when_nothing_moves, ignores_the_repositorys_configuration],
    opencode: super::OPENCODE => [resolves_a_conflict, survives_a_failing_tool, tells_of_a_refused_key, asks_again_after_errors, is_ended_when_nothing_moves, ignores_the_repositorys_configuration],
    pi: super::PI => [resolves_a_conflict, survives_a_failing_tool, tells_of_a_refused_key, asks_again_after_errors, is_ended_when_nothing_moves, ignores_the_repositorys_configuration],
}
