//! Checks that every merged text must pass, whichever strategy made it.

use std::collections::BTreeMap;

use super::conflict::FileConflict;
use crate::three::text::{bare, lines};

/// Reason why a result is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateRefusal {
    #[error("conflict markers are left")]
    Markers,
    #[error("it was valid {format} on both sides and is not any more: {problem}")]
    Broken { format: &'static str, problem: String },
}

/// Checks a text that is to resolve a conflict.
pub fn judge(conflict: &FileConflict, result: &[u8]) -> Result<(), GateRefusal> {
    let sides = [&conflict.ours, &conflict.theirs];
    let bytes = || sides.iter().filter_map(|side| side.as_ref()?.bytes.as_deref());
    if markers(result) > bytes().map(markers).max().unwrap_or_default() {
        return Err(GateRefusal::Markers);
    }
    let Some((format, parse)) = parser_for(conflict.path.as_bytes()) else { return Ok(()) };
    if bytes().count() == 2 && bytes().all(|side| parse(side).is_ok()) {
        parse(result).map_err(|problem| GateRefusal::Broken { format, problem })?;
    }
    Ok(())
}

/// Counts lines that look like git's conflict markers.
pub fn markers(text: &[u8]) -> usize {
    let is_marker = |line: &&[u8]| {
        let Some(&first) = line.first() else { return false };
        let rest = line.iter().find(|&&byte| byte != first);
        b"<>=|".contains(&first)
            && line.iter().take_while(|&&byte| byte == first).count() == 7
            && matches!(rest, None | Some(b' ' | b'\n' | b'\r'))
    };
    lines(text).iter().filter(|line| is_marker(line)).count()
}

type Parse = fn(&[u8]) -> Result<(), String>;

/// Parser for a format that is checked in this process.
fn parser_for(path: &[u8]) -> Option<(&'static str, Parse)> {
    if path.ends_with(b".json") {
        return Some(("JSON", |bytes| {
            serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
                .map(drop)
                .map_err(|error| error.to_string())
        }));
    }
    if path.ends_with(b".toml") || path.ends_with(b"Cargo.lock") {
        return Some(("TOML", |bytes| {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            toml::from_str::<toml::Table>(text)
                .map(drop)
                .map_err(|error| error.message().to_owned())
        }));
    }
    None
}

/// Counts of lines that only one side added and the result lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dropped {
    pub of_ours: usize,
    pub of_theirs: usize,
}

/// Counts lines that one side added and the result lacks, ignoring whitespace.
pub fn dropped(base: &[u8], ours: &[u8], theirs: &[u8], result: &[u8]) -> Dropped {
    let [base, ours, theirs, result] = [base, ours, theirs, result].map(counted);
    let lost = |side: &BTreeMap<Vec<u8>, usize>| {
        let lacks = |(line, count): (&Vec<u8>, &usize)| {
            let of = |bag: &BTreeMap<Vec<u8>, usize>| bag.get(line).copied().unwrap_or_default();
            let added = count.saturating_sub(of(&base));
            let kept = of(&result).saturating_sub(of(&base));
            added.saturating_sub(kept)
        };
        side.iter().map(lacks).sum()
    };
    Dropped { of_ours: lost(&ours), of_theirs: lost(&theirs) }
}

fn counted(text: &[u8]) -> BTreeMap<Vec<u8>, usize> {
    let mut bag = BTreeMap::new();
    for line in lines(text).into_iter().map(bare).filter(|line| !line.is_empty()) {
        *bag.entry(line).or_default() += 1;
    }
    bag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_seven_and_alone() {
        assert_eq!(markers(b"<<<<<<< a\n=======\n>>>>>>> b\n||||||| c\n"), 4);
        assert_eq!(markers(b"======== x\n<<<<<<\n=======x\n a <<<<<<< b\n"), 0);
        assert_eq!(markers(b"=======\r\n======="), 2);
    }

    #[test]
    fn lines_that_vanish_are_counted_by_side() {
        let found = dropped(b"a\n", b"a\nours\n", b"a\ntheirs\nmore\n", b"a\n  theirs\n");
        assert_eq!(found, Dropped { of_ours: 1, of_theirs: 1 });
        assert_eq!(dropped(b"", b"x\n", b"x\n", b"x\n"), Dropped::default());
    }
}
