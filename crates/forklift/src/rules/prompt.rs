//! Prompt of the agent.

use model::id::BranchName;

use super::agent_note::NOTE_REQUEST;
use super::security::fix::FixRequest;
use super::strategy::Strategy;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Briefing<'a> {
    pub(crate) branch: &'a BranchName,
    /// Upstream's branch.
    pub(crate) upstream: &'a BranchName,
    pub(crate) strategy: Strategy,
    /// The fix of upstream that is to be landed alone.
    pub(crate) fix: Option<&'a FixRequest>,
    /// Display name of upstream's commit, such as `v1.4.0`.
    pub(crate) target: &'a str,
    pub(crate) timeout_secs: u64,
    pub(crate) context: Option<&'a str>,
    /// The user's text for this run alone.
    pub(crate) instruction: Option<&'a str>,
    /// The command that the result has to pass.
    pub(crate) check: Option<&'a str>,
    /// Paths whose version in the fork must survive.
    pub(crate) protect: &'a [String],
    pub(crate) earlier: Option<EarlierAttempt<'a>>,
    /// Text about the only commit of upstream that is merged, for a step of a train.
    pub(crate) commit: Option<&'a str>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierAttempt<'a> {
    pub(crate) ended: &'a str,
    pub(crate) note: Option<&'a str>,
    pub(crate) answer: Option<&'a str>,
}

pub(crate) fn render_prompt(briefing: &Briefing<'_>) -> String {
    let Briefing { branch, upstream, target, .. } = briefing;
    let minutes = briefing.timeout_secs.div_ceil(60);
    let how = match (briefing.strategy, briefing.fix) {
        (_, Some(fix)) => format!(
            "Bring one security fix of upstream into `{branch}`, and nothing else: {id}. Merge `upstream/{upstream}` (it is there \
             as a remote-tracking branch; there are no remotes and no network to fetch from): it stands for the fix alone, \
             because `{branch}` has been given the state before the fix as an ancestor, so the merge has only the change of the \
             fix. See that change with `git diff upstream/{upstream}~ upstream/{upstream}`. Do not bring other changes of \
             upstream, keep what the fork added, and adapt the fix where the fork's code differs, so that it has the same \
             effect. Do not rewrite history and do not switch to another branch. If `/harness-state/conflicts.md` is there, \
             read it first: it lists the conflicts that are left, with both sides. If `git status` shows a merge in progress, \
             resolve only what that file lists and conclude the merge with `git commit --no-edit`.",
            id = fix.id,
        ),
        (Strategy::Merge, None) => format!(
            "Merge `upstream/{upstream}` into `{branch}` (it is there as a remote-tracking branch and stands for upstream's \
             {target}; there are no remotes and no network to fetch from). Keep what the fork added; where upstream now \
             does the same, take upstream's way. Do not rewrite history and do not switch to another branch. If \
             `/harness-state/conflicts.md` is there, read it first: it lists the conflicts that are left, with both sides and what \
             is known about them. If `git status` shows a merge in progress, everything else has been resolved and staged: \
             resolve only what that file lists and conclude the merge with `git commit --no-edit`."
        ),
        (Strategy::Rebase, None) => format!(
            "Rebase `{branch}` onto `upstream/{upstream}` (it is there as a remote-tracking branch and stands for upstream's \
             {target}; there are no remotes and no network to fetch from). Keep every commit of the fork with its \
             message; drop one only if upstream now has all of it. The result must stand on `{branch}` with no merge \
             commit on top."
        ),
    };
    let task = match briefing.fix {
        Some(_) => {
            format!("Bring a fix of the project it was forked from into its branch `{branch}`")
        }
        None => {
            format!("Bring its branch `{branch}` up to date with the project it was forked from")
        }
    };
    let mut text = format!(
        "You are in a git repository, a fork, in the current directory. {task}:\n\
         \n\
         1. {how}\n\
         2. Run the tests that you can find, if they can be run here.\n\
         3. Commit everything with meaningful messages, on `{branch}`.\n\
         4. If you cannot go on without a decision by a person, write `STUCK.md` in the root of the repository: what \
         you tried, what stands in the way, and your questions. Do not commit it.\n\
         \n\
         You have {minutes} minutes. {NOTE_REQUEST}\n"
    );
    if let Some(check) = briefing.check {
        text.push_str(&format!(
            "\nThe result will be checked with this command, with the files that define it as the fork and upstream have \
             them:\n\n{check}\n\nIf `/harness-state/check.md` is there, read it first: git could merge alone, but the \
             check fails on that merge.\n"
        ));
    }
    if !briefing.protect.is_empty() {
        let paths = briefing.protect.join(", ");
        text.push_str(&format!("\nThe fork's version of these paths must survive: {paths}\n"));
    }
    add(&mut text, "This is a single step:", briefing.commit);
    add(&mut text, "The fork's maintainers say about it:", briefing.context);
    add(&mut text, "For this run they say:", briefing.instruction);
    if let Some(earlier) = &briefing.earlier {
        text.push_str(&format!(
            "\nAn earlier attempt left the workspace as you find it ({}). Look at `git status` and go on from there.\n",
            earlier.ended
        ));
        add(&mut text, "It left this note:", earlier.note);
        add(&mut text, "The maintainer answers:", earlier.answer);
    }
    text
}

/// Renders the prompt of a resumed conversation: the agent knows the rest.
pub(crate) fn render_follow_up(earlier: &EarlierAttempt<'_>, timeout_secs: u64) -> String {
    let mut text = format!(
        "Go on with your task from where you stopped ({}). The workspace is as you left it; STUCK.md, if you wrote it, has \
         been taken away and should be written again only if you need another decision.\n",
        earlier.ended
    );
    add(&mut text, "The maintainer answers:", earlier.answer);
    text.push_str(&format!("\nYou have {} minutes.\n", timeout_secs.div_ceil(60)));
    text
}

fn add(text: &mut String, title: &str, words: Option<&str>) {
    if let Some(words) = words.map(str::trim).filter(|words| !words.is_empty()) {
        text.push_str(&format!("\n{title}\n\n{words}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn briefing(branch: &BranchName) -> Briefing<'_> {
        Briefing {
            branch,
            upstream: branch,
            strategy: Strategy::Merge,
            fix: None,
            target: "v1.4.0",
            timeout_secs: 61,
            context: Some("Keep /vendor."),
            instruction: None,
            check: None,
            protect: &[],
            earlier: None,
            commit: None,
        }
    }

    #[test]
    fn the_prompt_names_the_branch_the_time_and_the_forks_own_words() {
        let branch = BranchName::parse("trunk").expect("legal");
        let prompt = render_prompt(&briefing(&branch));
        for words in ["`upstream/trunk`", "v1.4.0", "2 minutes", "STUCK.md", "Keep /vendor."] {
            assert!(prompt.contains(words), "{words}");
        }
        let master = BranchName::parse("master").expect("legal");
        let other = render_prompt(&Briefing { upstream: &master, ..briefing(&branch) });
        assert!(other.contains("Merge `upstream/master` into `trunk`"), "{other}");
        let empty = Briefing { context: Some("\n"), ..briefing(&branch) };
        assert!(!render_prompt(&empty).contains("maintainers"));
    }

    #[test]
    fn a_rebase_is_asked_for_as_one() {
        let branch = BranchName::parse("main").expect("legal");
        let rebase = Briefing { strategy: Strategy::Rebase, ..briefing(&branch) };
        let prompt = render_prompt(&rebase);
        assert!(prompt.contains("Rebase `main` onto") && !prompt.contains("Do not rewrite"));
    }

    #[test]
    fn everything_that_binds_the_agent_is_told() {
        let branch = BranchName::parse("main").expect("legal");
        let protect = ["vendor/".to_owned()];
        let earlier =
            EarlierAttempt { ended: "stuck", note: Some("which?"), answer: Some("the left") };
        let prompt = render_prompt(&Briefing {
            instruction: Some("Take theirs in docs."),
            check: Some("make test"),
            protect: &protect,
            earlier: Some(earlier),
            commit: None,
            ..briefing(&branch)
        });
        for words in ["Take theirs", "make test", "check.md", "vendor/", "which?", "the left"] {
            assert!(prompt.contains(words), "{words}");
        }
        assert!(render_follow_up(&earlier, 60).contains("the left"));
    }
}
