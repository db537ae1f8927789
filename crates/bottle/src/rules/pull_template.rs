//! The repository's template for pull requests, with our section in it.

/// Places of a template, in the order in which forges look for one.
pub(crate) const TEMPLATE_PATHS: [&str; 12] = [
    ".gitea/pull_request_template.md",
    ".gitea/PULL_REQUEST_TEMPLATE.md",
    ".forgejo/pull_request_template.md",
    ".forgejo/PULL_REQUEST_TEMPLATE.md",
    ".github/pull_request_template.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
    ".gitlab/merge_request_templates/Default.md",
    ".gitlab/merge_request_templates/default.md",
    "pull_request_template.md",
    "PULL_REQUEST_TEMPLATE.md",
    "docs/pull_request_template.md",
    "docs/PULL_REQUEST_TEMPLATE.md",
];

/// Words of headings below which a summary belongs.
const SUMMARY_WORDS: [&str; 5] = ["description", "summary", "what", "changes", "proposed"];

/// Puts our section into a template: below its first heading about the change, or else before all of it. Checkboxes and
/// questions stay for people.
pub(crate) fn fill_template(template: &str, section: &str) -> String {
    let is_heading = |line: &str| {
        let lower = line.trim_start_matches('#').trim().to_ascii_lowercase();
        line.starts_with('#') && SUMMARY_WORDS.iter().any(|word| lower.contains(word))
    };
    let mut at = 0;
    for line in template.split_inclusive('\n') {
        at += line.len();
        if is_heading(line) {
            let (before, after) = template.split_at(at);
            return format!(
                "{}\n\n{section}\n{}",
                before.trim_end(),
                after.trim_start_matches('\n')
            );
        }
    }
    format!("{section}\n{}", template.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_stands_below_the_heading_about_the_change() {
        let template =
            "## What does this change?\n\n<!-- say it -->\n\n## Checklist\n- [ ] tests\n";
        let filled = fill_template(template, "SECTION\n");
        let expected = "## What does this change?\n\nSECTION\n\n<!-- say it -->\n\n## Checklist\n- [ ] tests\n";
        assert_eq!(filled, expected);
        let other = fill_template("## Checklist\n- [ ] tests\n", "SECTION\n");
        assert_eq!(other, "SECTION\n\n## Checklist\n- [ ] tests\n");
    }
}
