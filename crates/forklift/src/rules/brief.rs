//! What the agent is told about each conflict that is left.

use merge::resolver::habit::Resolution;
use merge::resolver::nearby::EarlierResolution;
use merge::resolver::receipt::{FileAction, Receipt};
use merge::resolver::touch::Touch;
use merge::resolver::{Brief, HunkBrief};

/// Bytes of all briefs together: an agent that has to read more than this reads nothing.
const CAP: usize = 256 * 1024;

/// Renders the briefs as one page, with what the agent may have to run again.
pub(crate) fn render_briefs(briefs: &[Brief], receipts: &[Receipt]) -> String {
    let mut page = format!(
        "# What is left of the merge\n\n{} conflicts are left. Everything that is not named here is resolved: leave it as it is.\n",
        briefs.len()
    );
    page.push_str(&made_anew(receipts));
    for (index, brief) in briefs.iter().enumerate() {
        let text = render_brief(brief);
        if page.len() + text.len() > CAP {
            page.push_str(&format!("\n… and {} more; see `git status`.\n", briefs.len() - index));
            break;
        }
        page.push_str(&text);
    }
    page
}

/// Files that were made from what the agent may still change.
fn made_anew(receipts: &[Receipt]) -> String {
    let regenerated = receipts.iter().filter(|receipt| receipt.action == FileAction::Regenerated);
    let line = |receipt: &Receipt| {
        let command = receipt.steps.iter().find_map(|step| step.program.as_deref());
        format!("- {}: `{}`\n", receipt.path, command.unwrap_or_default())
    };
    let lines: String = regenerated.map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\nMade anew by commands; run them again if you change what they are made from:\n\n{lines}"
    )
}

fn render_brief(brief: &Brief) -> String {
    let mut text = format!("\n## {}\n\n- in conflict: {}\n", brief.path, brief.kind.as_str());
    for path in &brief.also {
        text.push_str(&format!("- the same conflict: {path}\n"));
    }
    text.push_str(&format!("- not resolved because: {}\n", brief.why));
    text.push_str(&commits("the fork's commits that touched it", &brief.ours_commits));
    text.push_str(&commits("upstream's commits that touched it", &brief.theirs_commits));
    text.push_str(&earlier(&brief.nearby));
    for (number, hunk) in brief.hunks.iter().enumerate() {
        text.push_str(&render_hunk(number + 1, hunk));
    }
    if let Some(structure) = &brief.structure {
        text.push_str(&format!(
            "\nA program that knows the language ({}, {:.0} %) proposes:\n\n{}",
            structure.answer_class,
            structure.confidence * 100.0,
            fenced(&structure.text)
        ));
    }
    text
}

fn commits(title: &str, touches: &[Touch]) -> String {
    if touches.is_empty() {
        return String::new();
    }
    let line = |touch: &Touch| format!("  - {} {}\n", touch.sha.short(), touch.subject);
    format!("- {title}:\n{}", touches.iter().map(line).collect::<String>())
}

fn earlier(nearby: &[EarlierResolution]) -> String {
    if nearby.is_empty() {
        return String::new();
    }
    let line = |one: &EarlierResolution| {
        let hunks: Vec<String> = one
            .hunks
            .iter()
            .map(|(choice, count)| format!("{count} {}", hunk_words(*choice)))
            .collect();
        let hunks = if hunks.is_empty() {
            String::new()
        } else {
            format!(" (of its hunks: {})", hunks.join(", "))
        };
        format!(
            "  - {} in merge {}: {}{hunks}\n",
            one.path,
            one.merge.short(),
            file_words(one.choice)
        )
    };
    format!("- what earlier merges did nearby:\n{}", nearby.iter().map(line).collect::<String>())
}

fn file_words(choice: Resolution) -> &'static str {
    match choice {
        Resolution::Ours => "kept the fork's version",
        Resolution::Theirs => "took upstream's version",
        Resolution::Absent => "left it deleted",
        Resolution::Base => "went back to the common ancestor",
        Resolution::OursTheirs
        | Resolution::TheirsOurs
        | Resolution::Apart
        | Resolution::Touching
        | Resolution::BothOurs
        | Resolution::BothTheirs
        | Resolution::Other => "made a version of both",
    }
}

fn hunk_words(choice: Resolution) -> &'static str {
    match choice {
        Resolution::Ours => "as the fork has it",
        Resolution::Theirs => "as upstream has it",
        Resolution::Absent => "left away",
        Resolution::Base => "as before",
        Resolution::OursTheirs | Resolution::BothOurs => "both, the fork's first",
        Resolution::TheirsOurs | Resolution::BothTheirs => "both, upstream's first",
        Resolution::Apart | Resolution::Touching => "both changes in one",
        Resolution::Other => "written anew",
    }
}

fn render_hunk(number: usize, hunk: &HunkBrief) -> String {
    let mut text = format!("\nHunk {number}.\n");
    for (title, side) in
        [("Before", &hunk.base), ("The fork", &hunk.ours), ("Upstream", &hunk.theirs)]
    {
        text.push_str(&format!("\n{title}:\n\n{}", fenced(side)));
    }
    for proposal in &hunk.proposals {
        let from = proposal.learned_from.as_ref();
        let from =
            from.map_or_else(String::new, |merge| format!(", as in merge {}", merge.short()));
        text.push_str(&format!(
            "\nPerhaps ({}{from}, {:.0} %):\n\n{}",
            proposal.answer_class,
            proposal.confidence * 100.0,
            fenced(&proposal.text)
        ));
    }
    text
}

/// A fence that is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use merge::clean::ConflictKind;
    use merge::path::TreePath;
    use merge::resolver::Proposal;

    use super::*;

    const NEARBY: &str =
        "in merge abababababab: made a version of both (of its hunks: 2 as the fork has it)";

    fn brief(path: &str, ours: &str) -> Brief {
        Brief {
            path: TreePath::new(path.as_bytes()),
            kind: ConflictKind::Content,
            also: Vec::new(),
            why: "nobody did this before".to_owned(),
            hunks: vec![HunkBrief {
                base: "b\n".to_owned(),
                ours: ours.to_owned(),
                theirs: "t\n".to_owned(),
                proposals: vec![Proposal {
                    text: "p\n".to_owned(),
                    answer_class: "memory".to_owned(),
                    confidence: 0.5,
                    learned_from: None,
                }],
            }],
            structure: None,
            nearby: vec![EarlierResolution {
                merge: model::id::Sha::parse(&"ab".repeat(20)).expect("a commit"),
                path: TreePath::new(path.as_bytes()),
                choice: Resolution::Other,
                hunks: [(Resolution::Ours, 2)].into(),
            }],
            ours_commits: Vec::new(),
            theirs_commits: Vec::new(),
        }
    }

    #[test]
    fn both_sides_and_what_is_known_are_told() {
        let page = render_briefs(&[brief("src/a.rs", "o\n")], &[]);
        for words in
            ["## src/a.rs", "nobody did this", "The fork:\n\n```\no\n```", "(memory, 50 %)", NEARBY]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
    }

    #[test]
    fn a_fence_in_the_text_does_not_end_the_text() {
        assert_eq!(fenced("a\n````\nb"), "`````\na\n````\nb\n`````\n");
    }

    #[test]
    fn a_page_that_nobody_would_read_is_cut() {
        let many: Vec<Brief> =
            (0..40).map(|n| brief(&format!("f{n}"), &"x".repeat(10_000))).collect();
        let page = render_briefs(&many, &[]);
        assert!(
            page.len() < CAP + 100 && page.contains("more; see `git status`"),
            "{}",
            page.len()
        );
    }
}
