//! The `structure` strategy: mergiraf, if it is installed, in a box. It is a third-party program that reads untrusted files,
//! so it sees itself, three versions of each file, and nothing else.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::agent_run::copy_program;
use engine::box_command::BoxCommand;
use engine::workspace::{give, make_harness_state};
use host::git::{LineageRange, SealedRepo};
use merge::resolver::structure::{
    Answers, RatedMerger, StructuralMerger, StructureRecord, ThreeVersions, learn_structure,
};
use model::exit::ForkliftExit;
use sandbox::spec::{BoxLimits, BoxUser, MIB, ProgramMount};

use super::observe::fork_key;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};

/// Name on the host's search path.
const PROGRAM: &str = "mergiraf";
const VERSION_LIMIT: Duration = Duration::from_secs(5);
/// Its folder in the box.
const INSIDE: &str = "/opt/structure";

/// Time limit for all files; a file that is not done by then has no answer.
const DEADLINE_SECS: u64 = 120;
const MEMORY_BYTES: u64 = 1024 * MIB;
/// Largest answer that is read.
const ANSWER_CAP: usize = 4 << 20;

/// Merges one file after the other, each with a time limit. A file has an answer if no conflict is left.
const SCRIPT: &str = r#"
for question in [0-9]*; do
    timeout 6 /opt/structure/mergiraf merge --timeout 4000 --path-name="$(cat "$question/name")" --output="$question/made" \
        "$question/base" "$question/ours" "$question/theirs" >/dev/null 2>&1 && mv "$question/made" "$question/answer"
done
exit 0
"#;

pub(super) struct Mergiraf<'a> {
    run: &'a ForkRun<'a>,
    program: PathBuf,
    version: String,
    /// True if the box failed. Then a missing answer does not count against the program.
    is_broken: Cell<bool>,
}

impl<'a> Mergiraf<'a> {
    pub(super) async fn find(run: &'a ForkRun<'a>) -> Option<Self> {
        let program = host::tool::which(PROGRAM)?;
        let version = host::tool::tool_version(PROGRAM, &["--version"], VERSION_LIMIT).await?;
        Some(Self { run, program, version, is_broken: Cell::new(false) })
    }

    /// Measures the precision of its answers on the fork's newest merges, starting from the saved record.
    pub(super) async fn record(&self, repo: &SealedRepo) -> Result<StructureRecord, Failure> {
        let pins = &self.run.run.record.pins;
        let range = LineageRange { tip: &pins.base, siblings: &[], upstream: &pins.upstream };
        let file = record_file(&self.run.cache, &fork_key(&self.run.repo));
        let kept = load_record(&file);
        let learned = learn_structure(repo, range, kept.clone(), self).await.or_machine()?;
        if kept.as_ref() != Some(&learned) && !self.is_broken.get() {
            let text = serde_json::to_vec(&learned).or_exit(ForkliftExit::Internal)?;
            host::file::write_atomic(&file, &text, 0o600).or_machine()?;
        }
        Ok(learned)
    }

    pub(super) fn with<'b>(&'b self, record: &'b StructureRecord) -> RatedMerger<'b> {
        RatedMerger { program: self, record }
    }

    async fn ask(&self, questions: &[ThreeVersions]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let run = self.run;
        run.refuse_if_stopped()?;
        let scratch = run.scratch("structure");
        scratch.remove().or_machine()?;
        let (workspace, program) = (scratch.folder("workspace"), scratch.folder("program"));
        lay_out(&workspace, questions).or_machine()?;
        give(&workspace, BoxUser::of_caller()).or_machine()?;
        make_harness_state(&scratch.folder("state"), BoxUser::of_caller()).or_machine()?;
        copy_program(&self.program, &program).or_machine()?;
        let name = format!("structure-{}", run.run.dir.next_box("structure"));
        let mut layout = scratch.layout(&name, DEADLINE_SECS).or_machine()?;
        layout.limits = BoxLimits { memory_bytes: MEMORY_BYTES, ..layout.limits };
        let mut command = BoxCommand::shell(layout, SCRIPT);
        command.programs = vec![ProgramMount { host: program, inside: INSIDE.to_owned() }];
        let ended = command.run(&run.run.launcher().or_machine()?, &run.run.cancel).await;
        let ended = ended.or_machine()?;
        if !ended.passed() {
            self.is_broken.set(true);
            let how = &ended.record.ended;
            run.ui.note(&format!("{} did not finish: {how:?}", self.version));
        }
        let answers = (0..questions.len()).map(|at| read_answer(&workspace, at)).collect();
        scratch.remove().or_machine()?;
        Ok(answers)
    }
}

impl StructuralMerger for Mergiraf<'_> {
    fn program(&self) -> &str {
        &self.version
    }

    fn merge_files<'a>(&'a self, questions: &'a [ThreeVersions]) -> Answers<'a> {
        Box::pin(async move {
            match self.ask(questions).await {
                Ok(answers) => answers,
                // The other strategies do not depend on this one.
                Err(failure) => {
                    self.is_broken.set(true);
                    self.run.ui.note(&format!("{} could not be used: {failure}", self.version));
                    vec![None; questions.len()]
                }
            }
        })
    }
}

pub(crate) fn record_file(cache: &Path, fork: &str) -> PathBuf {
    cache.join("forks").join(format!("{fork}.structure.json"))
}

/// Loads the record of a fork; `None` if it cannot be read, and it is measured again.
pub(crate) fn load_record(file: &Path) -> Option<StructureRecord> {
    fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok())
}

/// Writes a folder with the three versions of each file.
fn lay_out(workspace: &Path, questions: &[ThreeVersions]) -> std::io::Result<()> {
    for (at, question) in questions.iter().enumerate() {
        let folder = workspace.join(at.to_string());
        fs::create_dir_all(&folder)?;
        let name = plain_name(question.path.as_bytes());
        fs::write(folder.join("base"), &question.base)?;
        fs::write(folder.join("ours"), &question.ours)?;
        fs::write(folder.join("theirs"), &question.theirs)?;
        fs::write(folder.join("name"), name)?;
    }
    Ok(())
}

/// File name for the program, which recognises the language by its ending. A name with unusual characters is replaced.
fn plain_name(path: &[u8]) -> String {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
    match std::str::from_utf8(name) {
        Ok(name) if name.len() <= 200 && name.as_bytes().iter().all(is_plain) => name.to_owned(),
        Ok(_) | Err(_) => "file".to_owned(),
    }
}

fn read_answer(workspace: &Path, at: usize) -> Option<Vec<u8>> {
    let read = host::safe_read::read_beneath(workspace, &format!("{at}/answer"), ANSWER_CAP);
    read.ok().flatten().filter(|file| !file.truncated).map(|file| file.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_odd_tells_no_language() {
        assert_eq!(plain_name(b"src/a b/main.rs"), "main.rs");
        for odd in [&b"x\n.rs"[..], b"$(id).rs", b"\xff.rs", "a\u{202e}.rs".as_bytes()] {
            assert_eq!(plain_name(odd), "file");
        }
    }
}
