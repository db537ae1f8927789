//! An agent that was talked into things: everything it tries beyond its assignment is refused and written down, the
//! sidecar stays up, and the run goes on.

use crate::support::{COMMIT, DONE, Scene};

/// Speaks HTTP by hand: the `forge` command would be too polite.
const POST: &str = r#"
post() { exec 3<>/dev/tcp/127.0.0.1/3129; printf 'POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: %s\r\n\r\n%s' "${#1}" "$1" >&3; cat <&3; exec 3>&-; }
"#;

fn bash(lines: &str) -> String {
    let text = format!("{POST}{lines}");
    format!("[[step]]\nrun = [\"bash\", \"-c\", '''{text}''']\n")
}

#[test]
fn a_prompt_injected_agent_is_refused_logged_and_goes_on() {
    let Some(scene) = Scene::new() else { return };
    let other = scene.forge.add_issue("Other", "", &[], &[]);
    let pull = scene.forge.add_pull("Not yours", "topic", "main");
    let script = [
        format!("[[step]]\nrun = \"forge comment {other} gotcha\"\nexpect = 3\n"),
        format!("[[step]]\nrun = \"forge describe {pull} gotcha\"\nexpect = 3\n"),
        bash(r#"post '{"jsonrpc":"2.0","id":1,"method":"post_comment","params":{"number":1,"repo":"other","body":"x"}}' | grep 'unknown field'"#),
        bash(r#"post '{"jsonrpc":"2.0","id":1,"method":"merge_pr","params":{"number":1}}' | grep 'no such method'"#),
        bash("exec 3<>/dev/tcp/127.0.0.1/3129; { printf 'POST / HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 52428800\\r\\n\\r\\n'; head -c 52428800 /dev/zero; } >&3 2>/dev/null || true"),
        "[[step]]\nrun = \"forge comment 1 'still here'\"\n".to_owned(),
        COMMIT.to_owned(),
        DONE.to_owned(),
    ]
    .concat();
    scene.start_ok(&script);
    let comments = scene.forge.comments();
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert_eq!(comments[0].body, "still here");
    assert_eq!(scene.forge.pulls()[0].body, "");
    let said = scene.sentences();
    for words in [
        format!("refused comment to #{other}: out of scope"),
        format!("refused description of #{pull}: out of scope"),
        "refused merge_pr: no such method".to_owned(),
        "refused request: more than 262144 bytes".to_owned(),
        "posted comment to #1".to_owned(),
    ] {
        assert!(said.contains(&words), "{words} is not in {said:?}");
    }
    let named = said.iter().find(|words| words.starts_with("refused post_comment to #1:"));
    assert!(named.is_some_and(|words| words.contains("repo=\"other\"")), "{said:?}");
    assert_eq!(scene.provenance()["sidecar"]["kind"], "stopped");
    assert!(scene.published().is_some());
}

#[test]
fn a_flood_of_ten_thousand_calls_reaches_the_record_and_not_the_forge() {
    let Some(scene) = Scene::new() else { return };
    let flood = bash(
        r#"one='{"jsonrpc":"2.0","id":1,"method":"post_comment","params":{"number":999,"body":"x"}}'
batch="[$one"; for _ in {2..16}; do batch="$batch,$one"; done; batch="$batch]"
for _ in {1..625}; do post "$batch" > /dev/null; done"#,
    );
    scene.start_ok(&format!("{flood}[[step]]\nrun = \"forge read-issue 1\"\n{DONE}"));
    let said = scene.sentences();
    let refused = said.iter().filter(|line| line.starts_with("refused ")).count();
    assert_eq!(refused, 10_000);
    assert!(said.contains(&"read issue #1".to_owned()));
    assert_eq!(scene.forge.comments().len(), 0);
    assert!(scene.forge.requests().len() < 100, "{}", scene.forge.requests().len());
    assert_eq!(scene.provenance()["operations_chain"]["status"], "whole");
}
