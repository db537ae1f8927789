//! Stories: Markdown files of the product that say what is wanted, the requirements that they name, and their states.

use std::collections::BTreeSet;

use serde::Serialize;

use super::status::WorkstreamStatus;

const PREFIX: &str = "STORY-";
const DIGITS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Story {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Ids in its line `Requirements: REQ-1, REQ-2`.
    pub(crate) requirements: Vec<String>,
    /// Its file, below the top of the product.
    pub(crate) path: String,
    #[serde(skip)]
    pub(crate) text: String,
}

/// Reads a story. Other files of the folder, such as a README, are none.
pub(crate) fn parse_story(path: &str, text: &str) -> Option<Story> {
    let name = path.rsplit('/').next().unwrap_or(path).strip_suffix(".md")?;
    let digits: String =
        name.strip_prefix(PREFIX)?.chars().take_while(char::is_ascii_digit).collect();
    let rest = &name[PREFIX.len() + digits.len()..];
    if digits.is_empty() || !(rest.is_empty() || rest.starts_with('-')) {
        return None;
    }
    let id = format!("{PREFIX}{digits}");
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let words = heading.map(|heading| heading.strip_prefix(&format!("{id}:")).unwrap_or(heading));
    let title = words.map(str::trim).filter(|title| !title.is_empty());
    let title = title.map_or_else(|| rest.replace('-', " ").trim().to_owned(), str::to_owned);
    let requirements = outside_code(text)
        .filter_map(|line| line.strip_prefix("Requirements:"))
        .flat_map(find_named)
        .collect();
    Some(Story { id, title, requirements, path: path.to_owned(), text: text.to_owned() })
}

/// Lines that are not in a fenced block of code.
fn outside_code(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let line = line.trim_start();
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The ids that a list names: each item begins with its id. "All but REQ-2" names none.
fn find_named(list: &str) -> Vec<String> {
    let items = list.split([',', ';']).flat_map(|part| part.split(" and "));
    let ids = items.filter_map(|item| {
        let item = item.trim_start_matches(|c: char| !c.is_alphanumeric());
        let found = find_requirements(item).into_iter().next()?;
        item.starts_with(&found).then_some(found)
    });
    let mut seen = BTreeSet::new();
    ids.filter(|id| seen.insert(id.clone())).collect()
}

/// Finds the ids of requirements, such as `REQ-12-1`, in the order of the text and each once.
pub(crate) fn find_requirements(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    let words = text.split(|c: char| !is_part(c) && !c.is_ascii_lowercase() && c != '_');
    words
        .filter_map(|word| {
            let rest = word.strip_prefix("REQ-")?.trim_end_matches('-');
            (!rest.is_empty() && rest.chars().all(is_part)).then(|| format!("REQ-{rest}"))
        })
        .filter(|id| seen.insert(id.clone()))
        .collect()
}

/// State of a story, taken from the workstream that was made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoryState {
    /// Nobody works on it.
    Open,
    In(WorkstreamStatus),
    /// Its workstream was merged, and the commits are not in the base branch any more.
    Lost,
}

impl StoryState {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::In(status) => status.word(),
            Self::Lost => "lost",
        }
    }
}

/// A workstream as a story sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoryWork {
    pub(crate) workstream: String,
    pub(crate) story: String,
    /// Digest of the story when the workstream was made.
    pub(crate) digest: Option<String>,
    pub(crate) status: WorkstreamStatus,
    pub(crate) is_closed: bool,
    /// Its commits are not where they were merged into.
    pub(crate) is_lost: bool,
}

/// Chooses the workstream that a story's state is taken from: one that is open, else one that was merged. A workstream that
/// was closed without a merge leaves the story open.
pub(crate) fn work_of<'a>(story: &str, all: &'a [StoryWork]) -> Option<&'a StoryWork> {
    let mine = || all.iter().filter(|work| work.story == story);
    let is_merged = |work: &&StoryWork| work.status == WorkstreamStatus::Done;
    mine().find(|work| !work.is_closed && !is_merged(work)).or_else(|| mine().find(is_merged))
}

/// The id after the highest one.
pub(crate) fn next_id(stories: &[Story]) -> String {
    let numbers = stories.iter().filter_map(|story| story.id[PREFIX.len()..].parse::<u64>().ok());
    format!("{PREFIX}{:0DIGITS$}", numbers.max().unwrap_or(0) + 1)
}

/// Renders the file of a new story.
pub(crate) fn render_story(id: &str, title: &str, text: &str, requirements: &[String]) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let needs = match requirements.is_empty() {
        true => String::new(),
        false => format!("\nRequirements: {}\n", requirements.join(", ")),
    };
    let text = match text.trim() {
        "" => String::new(),
        text => format!("\n{text}\n"),
    };
    format!("# {id}: {title}\n{needs}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_has_its_id_from_its_name_and_its_title_from_its_heading() {
        let read = |path: &str, text: &str| {
            parse_story(path, text).map(|story| (story.id, story.title, story.requirements))
        };
        let of = |id: &str, title: &str, requirements: &[&str]| {
            let requirements = requirements.iter().map(|id| (*id).to_owned()).collect();
            Some((id.to_owned(), title.to_owned(), requirements))
        };
        let text = "# STORY-0012: Log in\n\nRequirements: REQ-1, REQ-2-b and REQ-A-3.\n\nREQ-9\n";
        assert_eq!(
            read("stories/STORY-0012.md", text),
            of("STORY-0012", "Log in", &["REQ-1", "REQ-A-3"])
        );
        assert_eq!(read("STORY-7-log-out.md", "words\n"), of("STORY-7", "log out", &[]));
        assert_eq!(read("STORY-7-x.md", "# Another\n"), of("STORY-7", "Another", &[]));
        for name in ["README.md", "STORY-.md", "STORY-1x.md", "STORY-1.txt", "story-1.md"] {
            assert_eq!(read(name, "# x\n"), None, "{name}");
        }
    }

    #[test]
    fn a_list_names_what_its_items_begin_with() {
        let named = |list: &str| {
            let text = format!("Requirements: {list}\n```\nRequirements: REQ-9\n```\n");
            parse_story("STORY-1.md", &text).expect("a story").requirements
        };
        assert_eq!(named("REQ-1, REQ-2 (log out) and **REQ-3**."), ["REQ-1", "REQ-2", "REQ-3"]);
        assert_eq!(named("all but REQ-2 (REQ-2 was dropped)"), [""; 0]);
        assert_eq!(named("REQ-1, not REQ-2"), ["REQ-1"]);
    }

    #[test]
    fn requirements_are_whole_words() {
        let found =
            find_requirements("REQ-1 (REQ-012-2), xREQ-3, REQ-, REQ-1; **REQ-AB-4**: REQ-5-");
        assert_eq!(found, ["REQ-1", "REQ-012-2", "REQ-AB-4", "REQ-5"]);
    }

    #[test]
    fn the_state_is_that_of_its_workstream() {
        let work = |workstream: &str, status, is_closed| StoryWork {
            workstream: workstream.to_owned(),
            story: "STORY-1".to_owned(),
            digest: None,
            status,
            is_closed,
            is_lost: false,
        };
        let (dropped, merged) =
            (work("a", WorkstreamStatus::Planning, true), work("b", WorkstreamStatus::Done, true));
        let open = work("c", WorkstreamStatus::MergeReady, false);
        let chosen = |all: &[StoryWork]| {
            work_of("STORY-1", all).map(|work| work.workstream.clone()).unwrap_or_default()
        };
        assert_eq!(chosen(std::slice::from_ref(&dropped)), "");
        assert_eq!(chosen(&[dropped.clone(), merged.clone()]), "b");
        assert_eq!(chosen(&[dropped, merged, open]), "c");
    }

    #[test]
    fn a_new_story_has_the_next_number_and_is_read_back() {
        let story = parse_story("s/STORY-0009-x.md", "# x\n").expect("a story");
        let id = next_id(&[story]);
        assert_eq!((id.as_str(), next_id(&[]).as_str()), ("STORY-0010", "STORY-0001"));
        let text = render_story(&id, " Log\n out ", "People leave.\n", &["REQ-1".to_owned()]);
        assert_eq!(text, "# STORY-0010: Log out\n\nRequirements: REQ-1\n\nPeople leave.\n");
        let read = parse_story("STORY-0010.md", &text).expect("a story");
        assert_eq!((read.title.as_str(), read.requirements.len()), ("Log out", 1));
    }
}
