//! Gates that every result must pass, whoever made it.

use std::collections::BTreeMap;

use super::dispute::Dispute;
use crate::three::text::{bare, lines};

/// Why a result was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has conflict markers that neither side has.
    #[error("conflict markers are left in it")]
    Markers,
    /// It could be parsed on both sides and cannot be any more.
    #[error("it was valid {format} on both sides and is not any more: {problem}")]
    Broken {
        /// The format.
        format: &'static str,
        /// What the parser says.
        problem: String,
    },
}

/// Judges a text that shall be the result of a dispute.
pub fn judge(dispute: &Dispute, result: &[u8]) -> Result<(), Refusal> {
    let sides = [&dispute.ours, &dispute.theirs];
    let bytes = || sides.iter().filter_map(|side| side.as_ref()?.bytes.as_deref());
    if markers(result) > bytes().map(markers).max().unwrap_or_default() {
        return Err(Refusal::Markers);
    }
    let Some((format, parse)) = parser_for(dispute.path.as_bytes()) else { return Ok(()) };
    if bytes().count() == 2 && bytes().all(|side| parse(side).is_ok()) {
        parse(result).map_err(|problem| Refusal::Broken { format, problem })?;
    }
    Ok(())
}

/// How many lines look like git's conflict markers.
#[must_use]
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

/// Formats that can be parsed without running anything.
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

/// Lines that only one side added and that a result does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dropped {
    /// Lines that the fork had added.
    pub of_ours: usize,
    /// Lines that upstream had added.
    pub of_theirs: usize,
}

/// Counts what one side added and the result lacks, whitespace aside.
#[must_use]
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
