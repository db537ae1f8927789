//! Where the story of a plan comes from: an issue, standard input, a file, or the words themselves.

use super::page_url::strip_scheme;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorySource<'a> {
    /// An issue of the project's forge.
    Issue(u64),
    /// A page that is no issue of the project's forge.
    Page(&'a str),
    Stdin,
    /// A file, as its name shows.
    File(&'a str),
    /// A file of that name, or the words themselves.
    Words(&'a str),
}

/// Ends of names of files, by which a name is told from words where there is no such file.
const FILE_ENDS: [&str; 8] =
    [".md", ".markdown", ".txt", ".rst", ".adoc", ".html", ".json", ".yaml"];

/// Reads what was typed. `host` is the host of the project's forge.
pub(crate) fn parse_story_source<'a>(from: &'a str, host: Option<&str>) -> StorySource<'a> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    if from == "-" {
        return StorySource::Stdin;
    }
    if let Some(number) = from.strip_prefix('#').and_then(number) {
        return StorySource::Issue(number);
    }
    if from.contains(char::is_whitespace) {
        return StorySource::Words(from);
    }
    let Some((_, url)) = strip_scheme(from) else {
        let is_file = from.contains('/') || FILE_ENDS.iter().any(|end| from.ends_with(end));
        return if is_file { StorySource::File(from) } else { StorySource::Words(from) };
    };
    let (authority, path) = url.split_once('/').unwrap_or((url, ""));
    let name = authority.rsplit_once(':').map_or(authority, |(name, _)| name);
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let issue = path.rsplit_once("/issues/").and_then(|(_, last)| number(last));
    match issue {
        Some(issue) if host.is_some_and(|host| host.eq_ignore_ascii_case(name)) => {
            StorySource::Issue(issue)
        }
        _ => StorySource::Page(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, expected: &StorySource<'_>) {
        assert_eq!(parse_story_source(from, Some("forge.example")), *expected, "{from}");
    }

    #[test]
    fn an_issue_is_a_number_or_a_page_of_our_forge() {
        check("#12", &StorySource::Issue(12));
        check("https://forge.example/a/b/issues/12", &StorySource::Issue(12));
        check("http://Forge.example:3000/a/b/-/issues/7/?x=1#c", &StorySource::Issue(7));
        let other = "https://elsewhere.example/a/b/issues/12";
        check(other, &StorySource::Page(other));
        check("HTTPS://forge.example/x", &StorySource::Page("HTTPS://forge.example/x"));
        check(
            "https://forge.example/a/b/wiki",
            &StorySource::Page("https://forge.example/a/b/wiki"),
        );
    }

    #[test]
    fn everything_else_is_words_or_a_file() {
        check("-", &StorySource::Stdin);
        for words in [
            "#",
            "#x",
            "#0",
            "story",
            "see https://forge.example/a/b/issues/1",
            "http://x y",
            "a/b c",
        ] {
            check(words, &StorySource::Words(words));
        }
        for file in ["story.md", "docs/story", "./x", "ftp://forge.example/x", "file:///etc/x"] {
            check(file, &StorySource::File(file));
        }
    }
}
