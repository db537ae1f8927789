//! An agent whose calls of a model cost something.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use testkit::model_server::{ModelScript, ModelServer, Turn};

use crate::support::Person;

/// An agent that calls its model once, waits for its gate if it has one, and makes a commit.
const AGENT: &str = r#"
body='{"model":"scripted","max_tokens":20,"messages":[{"role":"user","content":"x"}]}'
exec 3<>/dev/tcp/127.0.0.1/3128
printf 'POST /-/model/v1/chat/completions HTTP/1.1\r\nhost: model\r\n%s: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' \
    authorization "$OPENAI_API_KEY" "${#body}" "$body" >&3
cat <&3
while [ -e /opt/kit/gate ]; do sleep 0.05; done
echo work >> work.txt && git add -A && git commit -qm 'do the work'
forge done success done
"#;

/// Tokens that the model server reports for one call.
pub(crate) const CALL: i64 = 120;

/// Folder that the agent's box sees.
pub(crate) fn kit(person: &Person) -> PathBuf {
    person.hermetic.root().join("kit")
}

/// Makes `worker` such an agent, with more lines in its manifest below `[spend]`.
pub(crate) fn install_paid_agent(person: &Person, spend: &str) -> ModelServer {
    let model = ModelServer::start([("run", ModelScript::new(vec![Turn::text("done")]))]);
    let kit = kit(person);
    std::fs::create_dir(&kit).expect("made");
    std::fs::write(kit.join("agent.sh"), AGENT).expect("written");
    let key = person.home().join("model-key");
    std::fs::write(&key, "a-key").expect("written");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("set");
    let bottle = format!("[[mount]]\nhost = {kit:?}\ninside = \"/opt/kit\"\n");
    person.manifest("bottles", "kit", &bottle);
    let agent = format!(
        "provider = \"command\"\nmodel = \"scripted\"\nbottle = \"kit\"\n\
         command = [\"bash\", \"/opt/kit/agent.sh\"]\n\
         [server]\nurl = \"{}/v1\"\nkey_file = {key:?}\n\
         [egress]\nprofile = \"model-only\"\npermit_private = [\"{}\"]\n[spend]\n{spend}",
        model.base_url("run"),
        model.addr(),
    );
    person.manifest("agents", "worker", &agent);
    model
}
