//! Conflict markers that were left in files of a result.
//!
//! Only lines that neither side has count: documentation of git and tests of merge tools contain markers of their own.

use std::collections::BTreeSet;

use host::git::{ChangedEntry, GitError, SealedRepo};
use model::id::Sha;

use super::{MadeEntry, is_file};

/// Bytes of a file that are searched.
const SCAN_BYTES: usize = 4 << 20;

/// Bytes at the beginning of a file in which a NUL means that it is not text.
const BINARY_BYTES: usize = 8000;

/// Characters of the shortest marker. A marker of a merge inside a merge has more.
const MARKER_CHARS: usize = 7;

/// Lists the files with markers that neither side has. `changed` are the differences from each side: files that were
/// removed may have moved, with their markers. `conflicts` are the paths that git could not merge: a separator alone may have
/// been left there.
pub(crate) async fn find_marked(
    repo: &SealedRepo,
    made: &[MadeEntry],
    changed: &[&[ChangedEntry]],
    conflicts: &BTreeSet<Vec<u8>>,
) -> Result<Vec<String>, GitError> {
    let place = |entry: &MadeEntry| match conflicts.contains(&entry.path) {
        true => MarkerPlace::Conflict,
        false => MarkerPlace::Elsewhere,
    };
    let files: Vec<&MadeEntry> = made.iter().filter(|entry| entry.is_file()).collect();
    let ids: Vec<Sha> = files.iter().map(|entry| entry.id.clone()).collect();
    let mut marked = Vec::new();
    for (entry, text) in files.iter().zip(read_texts(repo, &ids).await?) {
        if is_left(&text, &BTreeSet::new(), place(entry)) {
            marked.push((entry, text));
        }
    }
    if marked.is_empty() {
        return Ok(Vec::new());
    }
    let removed = changed.iter().flat_map(|entries| entries.iter());
    let removed = removed.filter(|entry| entry.new.is_none() && is_file(entry.old_mode));
    let moved: Vec<Sha> = removed.filter_map(|entry| entry.old.clone()).collect();
    let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
    for text in read_texts(repo, &moved).await? {
        known.extend(marker_lines(&text).map(|marker| marker.line.to_vec()));
    }
    let mut found = Vec::new();
    for (entry, text) in marked {
        let sides = entry.sides.iter().filter(|side| is_file(side.mode));
        let sides: Vec<Sha> = sides.map(|side| side.id.clone()).collect();
        let mut known = known.clone();
        for side in read_texts(repo, &sides).await? {
            known.extend(marker_lines(&side).map(|marker| marker.line.to_vec()));
        }
        if is_left(&text, &known, place(entry)) {
            found.push(entry.shown());
        }
    }
    Ok(found)
}

/// Reads the beginnings of files; a file that is not text is empty.
async fn read_texts(repo: &SealedRepo, ids: &[Sha]) -> Result<Vec<Vec<u8>>, GitError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let blobs = repo.read_blobs(ids, SCAN_BYTES).await?;
    let text = |bytes: Vec<u8>| {
        let is_binary = bytes.iter().take(BINARY_BYTES).any(|byte| *byte == 0);
        if is_binary { Vec::new() } else { bytes }
    };
    Ok(blobs
        .into_iter()
        .map(|blob| blob.map(|blob| text(blob.bytes)).unwrap_or_default())
        .collect())
}

/// Place of a text: whether git could not merge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerPlace {
    Conflict,
    Elsewhere,
}

/// Line that has the shape of a conflict marker.
#[derive(Debug, Clone, Copy)]
struct MarkerLine<'a> {
    line: &'a [u8],
    sign: u8,
    count: usize,
    label: &'a [u8],
    /// The line before it looks like words rather than code.
    is_below_words: bool,
    /// The line may underline the one before it, as a heading in some formats.
    may_underline: bool,
}

fn marker_lines(text: &[u8]) -> impl Iterator<Item = MarkerLine<'_>> {
    let mut before: &[u8] = b"";
    text.split(|byte| *byte == b'\n').filter_map(move |line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let marker = parse_marker(line, before);
        before = line;
        marker
    })
}

fn parse_marker<'a>(line: &'a [u8], before: &[u8]) -> Option<MarkerLine<'a>> {
    let sign = *line.first().filter(|sign| b"<|=>".contains(sign))?;
    let count = line.iter().take_while(|byte| **byte == sign).count();
    let rest = &line[count..];
    if count < MARKER_CHARS || !matches!(rest.first(), None | Some(b' ' | b'\t')) {
        return None;
    }
    let label = rest.trim_ascii();
    let title = before.trim_ascii_end();
    let may_underline = label.is_empty() && !title.is_empty() && title.len() <= count;
    let (first, last) = (before.first(), title.last());
    let is_below_words = first.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
        && last.is_some_and(|byte| !b";,{}()[]".contains(byte));
    Some(MarkerLine { line, sign, count, label, is_below_words, may_underline })
}

/// Returns whether markers stand in a text beside the known ones. A row of equals signs alone is a heading, unless it has the
/// length of a separator, stands where a conflict was and underlines nothing. A row of bars alone is part of a table.
fn is_left(text: &[u8], known: &BTreeSet<Vec<u8>>, place: MarkerPlace) -> bool {
    let found: Vec<MarkerLine<'_>> =
        marker_lines(text).filter(|marker| !known.contains(marker.line)).collect();
    let signs: BTreeSet<u8> = found.iter().map(|marker| marker.sign).collect();
    let has_sides = signs.contains(&b'<') || signs.contains(&b'>');
    let alone = |marker: &MarkerLine<'_>| match marker.sign {
        b'<' | b'>' => !marker.may_underline,
        b'|' => !marker.label.is_empty() && !marker.label.contains(&b'|'),
        _ => {
            let is_separator = marker.count == MARKER_CHARS && marker.label.is_empty();
            let is_heading = marker.may_underline && marker.is_below_words;
            is_separator && place == MarkerPlace::Conflict && !is_heading
        }
    };
    (has_sides && signs.len() > 1) || found.iter().any(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let is_left = is_left(text.as_bytes(), &BTreeSet::new(), MarkerPlace::Elsewhere);
        assert_eq!(is_left, expected, "{text:?}");
    }

    #[test]
    fn a_separator_alone_counts_where_a_conflict_was() {
        for text in [
            "    first();\n=======\n    second();\n",
            "{\n}\n=======\nx\n",
            "\n=======\nx\n",
            "a long line of text\n=======\n",
            "=======\r\nx\r\n",
        ] {
            let is_left = |place| is_left(text.as_bytes(), &BTreeSet::new(), place);
            assert!(is_left(MarkerPlace::Conflict), "{text:?}");
            assert!(!is_left(MarkerPlace::Elsewhere), "{text:?}");
        }
        for text in ["text\n========\n\n==========\n", "Title\n=======\ntext\n", "======= a\n"] {
            assert!(!is_left(text.as_bytes(), &BTreeSet::new(), MarkerPlace::Conflict), "{text:?}");
        }
        let known = BTreeSet::from([b"=======".to_vec()]);
        assert!(!is_left(b"x;\n=======\n", &known, MarkerPlace::Conflict), "a side has such a row");
    }

    #[test]
    fn markers_of_any_shape_are_found() {
        for text in [
            "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> upstream/main\nd\n",
            "a\n<<<<<<< HEAD\nb\nc\n>>>>>>> upstream/main\nd\n",
            "a\n<<<<<<<\tHEAD\nb\n=======\nc\n>>>>>>>\tx\n",
            "a\n||||||| 1a2b3c4\nb\n",
            "a\n||||||| merged common ancestors\nb\n",
            "long line before it\n>>>>>>> theirs\n",
            "\n<<<<<<<\n",
            "text\n<<<<<<<\nb\n=======\n",
            "a\r\n<<<<<<< HEAD\r\nb\r\n",
            "<<<<<<<<< Temporary merge branch 1\n",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn headings_tables_and_code_are_no_markers() {
        for text in [
            "Title\n=======\ntext\n",
            "Title\n>>>>>>>\ntext\n",
            "Name\n<<<<<<<\n",
            "|||||||\n",
            "||||||| a | b |\n",
            "  <<<<<<< a\n=======\n  >>>>>>> b\n",
            "cat <<<<<<<x\n>>>>>>>y\n",
            "<<<<<< HEAD\n",
            ">>> doctest\n",
            "",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn markers_that_a_side_has_do_not_count() {
        let docs = b"how a conflict looks:\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n";
        let known: BTreeSet<Vec<u8>> =
            marker_lines(docs).map(|marker| marker.line.to_vec()).collect();
        assert!(!is_left(docs, &known, MarkerPlace::Conflict));
        let more = [docs.as_slice(), b"<<<<<<< mine\n"].concat();
        assert!(is_left(&more, &known, MarkerPlace::Elsewhere));
    }
}
