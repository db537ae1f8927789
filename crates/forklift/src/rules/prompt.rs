//! What the agent is told.

use model::id::BranchName;

/// The fork's own words about itself, from this file of its main branch or the other.
pub(crate) const FORK_FILES: [&str; 2] = ["FORK.md", ".agents/FORK.md"];

/// Renders the instructions.
pub(crate) fn render_prompt(
    branch: &BranchName,
    timeout_secs: u64,
    context: Option<&str>,
) -> String {
    let minutes = timeout_secs.div_ceil(60);
    let mut text = format!(
        "You are in a git repository, a fork, in the current directory. Bring its branch `{branch}` up to date with \
         the project it was forked from:\n\
         \n\
         1. Merge `upstream/{branch}` into `{branch}` (it is there as a remote-tracking branch; there are no remotes and \
         no network to fetch from). Keep what the fork added; where upstream now does the same, take upstream's way.\n\
         2. Run the tests that you can find, if they can be run here.\n\
         3. Commit everything with meaningful messages, on `{branch}`. Do not rewrite history and do not switch to \
         another branch.\n\
         4. If you cannot go on without a decision by a person, write `STUCK.md` in the root of the repository: what \
         you tried, what stands in the way, and your questions. Do not commit it.\n\
         \n\
         You have {minutes} minutes. When you are done, say in a few sentences which conflicts there were and how you \
         resolved each.\n"
    );
    if let Some(context) = context.filter(|context| !context.trim().is_empty()) {
        text.push_str("\nThe fork's maintainers say about it:\n\n");
        text.push_str(context);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_names_the_branch_the_time_and_the_forks_own_words() {
        let branch = BranchName::parse("trunk").expect("legal");
        let prompt = render_prompt(&branch, 61, Some("Keep /vendor."));
        for words in ["`upstream/trunk`", "2 minutes", "STUCK.md", "Keep /vendor."] {
            assert!(prompt.contains(words), "{words}");
        }
        assert!(!render_prompt(&branch, 60, Some("\n")).contains("maintainers"));
    }
}
