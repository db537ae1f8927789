//! Forks made on the spot, for a place without clones: small files in three languages, with tests, that both sides changed.

use std::fmt::Write as _;
use std::path::Path;

use host::git::{ObjectFormat, SealedRepo};
use merge::contract::ContractEnds;

use super::dishonest::Random;

const FILES: usize = 9;
const FUNCTIONS: usize = 6;

/// Makes a repository with a fork, its upstream and an honest merge of both.
pub(crate) async fn generate_fork(path: &Path, random: &mut Random) -> (SealedRepo, ContractEnds) {
    let repo = SealedRepo::init_bare(path, ObjectFormat::Sha1).await.unwrap();
    let files: Vec<GeneratedFile> = (0..FILES).map(|at| generate_file(at, random)).collect();
    repo.fast_import(&render_stream(&files)).await.unwrap();
    let tip = async |name: &str| {
        repo.resolve_commit(&format!("refs/heads/{name}")).await.unwrap().unwrap()
    };
    let ends = ContractEnds {
        merge_base: tip("first").await,
        base: tip("fork").await,
        upstream: tip("upstream").await,
        tip: tip("result").await,
    };
    (repo, ends)
}

/// A file in its four versions: first, fork, upstream, result.
struct GeneratedFile {
    name: String,
    texts: [String; 4],
}

const BRANCHES: [&str; 4] = ["first", "fork", "upstream", "result"];

fn generate_file(at: usize, random: &mut Random) -> GeneratedFile {
    let render = [render_python, render_rust, render_go][at % 3];
    let name = ["module{}.py", "part{}.rs", "pack{}.go"][at % 3].replace("{}", &at.to_string());
    let mut texts = [const { String::new() }; 4];
    for number in 0..FUNCTIONS {
        let who = random.below(4);
        let amount = random.below(1000);
        for (version, text) in texts.iter_mut().enumerate() {
            let has_fork = who % 2 == 1 && matches!(version, 1 | 3);
            let has_upstream = who >= 2 && matches!(version, 2 | 3);
            let mut steps =
                vec![format!("begin{number}({at})"), format!("prepare{number}({amount})")];
            steps.extend(has_fork.then(|| format!("fork_step{number}({amount})")));
            steps.extend(has_upstream.then(|| format!("upstream_step{number}({amount})")));
            steps.push(format!("finish{number}({at})"));
            text.push_str(&render(number, &steps, amount));
        }
    }
    GeneratedFile { name, texts }
}

fn render_python(number: usize, steps: &[String], amount: usize) -> String {
    let body: String = steps.iter().map(|step| format!("    {step}\n")).collect();
    format!(
        "def work{number}():\n{body}    return {amount}\n\n\ndef test_work{number}():\n    found = work{number}()\n    assert found == {amount}\n\n\n"
    )
}

fn render_rust(number: usize, steps: &[String], amount: usize) -> String {
    let body: String = steps.iter().map(|step| format!("    {step};\n")).collect();
    format!(
        "fn work{number}() -> usize {{\n{body}    {amount}\n}}\n\n#[test]\nfn work{number}_is_done() {{\n    let found = work{number}();\n    assert_eq!(found, {amount});\n}}\n\n"
    )
}

fn render_go(number: usize, steps: &[String], amount: usize) -> String {
    let body: String = steps.iter().map(|step| format!("\t{step}\n")).collect();
    format!(
        "func work{number}() int {{\n{body}\treturn {amount}\n}}\n\nfunc TestWork{number}(t *testing.T) {{\n\tfound := work{number}()\n\trequire.Equal(t, {amount}, found)\n}}\n\n"
    )
}

/// The merge commit has both sides as parents.
fn render_stream(files: &[GeneratedFile]) -> String {
    let mut stream = String::new();
    for (version, branch) in BRANCHES.iter().enumerate() {
        writeln!(stream, "commit refs/heads/{branch}").unwrap();
        stream.push_str("committer A <a@example.com> 1735689600 +0000\ndata 2\nx\n");
        stream.push_str(match version {
            0 => "",
            1 | 2 => "from refs/heads/first\n",
            _ => "from refs/heads/fork\nmerge refs/heads/upstream\n",
        });
        for GeneratedFile { name, texts } in files {
            let text = &texts[version];
            write!(stream, "M 100644 inline {name}\ndata {}\n{text}\n", text.len()).unwrap();
        }
    }
    stream
}
