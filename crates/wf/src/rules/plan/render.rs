//! The plan of a new workstream: instructions, and no micro-commit.

/// The letters that the micro-commits of a workstream have in their ids: the first ones of its words, or its only word
/// (`test_framework` and `tf` both give `TF`).
pub(crate) fn commit_prefix(id: &str) -> String {
    let words: Vec<&str> = id.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    let letters: String = match words.as_slice() {
        [only] => (*only).to_owned(),
        several => several.iter().filter_map(|word| word.chars().next()).collect(),
    };
    letters.chars().take(12).collect::<String>().to_ascii_uppercase()
}

/// Renders the plan. The sample is in a comment, which the parser ignores.
pub(crate) fn render_new_plan(id: &str, title: &str) -> String {
    let prefix = commit_prefix(id);
    format!(
        "# Plan: {title}\n\n## Goal\n\n## Micro-commits\n\n<!--\nOne block per micro-commit, in the order in which they are to be made. For example:\n\n### COMMIT-{prefix}-001: What this commit does\n\nWhy, and how it should be done.\n\nAcceptance:\n- what a person sees when it works\n\nDone: [ ]\n\nThen: wf run {id}\n-->\n"
    )
}
