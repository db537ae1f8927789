//! Sections of a page that has a size limit: lists are cut where it hurts least, and say by how much.

/// Length of the line that counts what is left off.
const NOTE_BYTES: usize = 120;

/// A part of a page: a head that always stays, then items that may be left off.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    /// Empty for a part without a heading.
    pub(super) title: &'static str,
    pub(super) head: String,
    /// Each ends with its own line feed.
    pub(super) items: Vec<String>,
    /// Text after the items.
    pub(super) tail: String,
    /// Items that are left off so far.
    pub(super) left_off: usize,
    /// Name of the items, for the line that counts them.
    pub(super) noun: &'static str,
    pub(super) importance: Importance,
}

/// Order in which items are left off, first to last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Importance {
    Hunks,
    Answer,
    ForkChanges,
    Incoming,
    Conflicts,
    /// Points that are folded.
    Folded,
    #[default]
    Review,
}

impl Section {
    /// The same section with the items beyond `most` counted instead of listed.
    pub(super) fn at_most(mut self, most: usize) -> Self {
        self.left_off += self.items.len().saturating_sub(most);
        self.items.truncate(most);
        self
    }

    fn render(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text.push_str(&format!("### {}\n\n", self.title));
        }
        text.push_str(&self.head);
        text.extend(self.items.iter().map(String::as_str));
        if self.left_off > 0 {
            text.push_str(&format!("\n… and {} more {}.\n", self.left_off, self.noun));
        }
        text.push_str(&self.tail);
        text.trim_end().to_owned()
    }

    fn bytes(&self) -> usize {
        let items: usize = self.items.iter().map(String::len).sum();
        self.title.len() + self.head.len() + items + self.tail.len() + NOTE_BYTES
    }
}

/// Renders sections one after the other, in at most `max` bytes as far as leaving off items can do that.
pub(super) fn render_sections(mut sections: Vec<Section>, max: usize) -> String {
    let mut total: usize = sections.iter().map(Section::bytes).sum();
    let mut order: Vec<usize> = (0..sections.len()).collect();
    order.sort_by_key(|at| sections[*at].importance);
    for at in order {
        let section = &mut sections[at];
        while total > max
            && let Some(item) = section.items.pop()
        {
            total -= item.len();
            section.left_off += 1;
        }
    }
    let parts: Vec<String> = sections.iter().map(Section::render).collect();
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(title: &'static str, importance: Importance, items: usize) -> Section {
        let items = (0..items).map(|n| format!("- {title} {n:04}\n")).collect();
        Section { title, items, noun: "lines", importance, ..Section::default() }
    }

    #[test]
    fn the_least_important_goes_first_and_is_counted() {
        let sections = || {
            vec![
                section("Review", Importance::Review, 20),
                section("Hunks", Importance::Hunks, 30),
                section("Incoming", Importance::Incoming, 20),
            ]
        };
        let whole = render_sections(sections(), usize::MAX);
        assert!(!whole.contains("more") && whole.matches('-').count() == 70, "{whole}");
        let cut = render_sections(sections(), 900);
        assert!(cut.len() <= 900, "{}", cut.len());
        assert!(
            cut.contains("- Review 0019") && cut.contains("### Hunks\n\n\n… and 30 more lines."),
            "{cut}"
        );
        assert!(cut.contains("- Incoming 0000") && cut.contains("more lines.\n"), "{cut}");
        assert!(!cut.contains("- Incoming 0019"), "{cut}");
    }

    #[test]
    fn a_list_may_have_a_limit_of_its_own() {
        let text = render_sections(vec![section("Review", Importance::Review, 5).at_most(2)], 9999);
        assert_eq!(text, "### Review\n\n- Review 0000\n- Review 0001\n\n… and 3 more lines.\n");
    }
}
