//! Resolutions of earlier hunks, looked up by the same or a similar hunk.

use std::collections::BTreeMap;

use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::conflict::{FileConflict, FileVersion};
use super::habit::Resolution;
use super::hunk::Hunk;
use crate::three::text::{bare, bare_lines};

/// Longest text that is kept for a hunk.
const TEXT_CAP: usize = 64 << 10;

/// Resolutions of hunks in one fork.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HunkMemory {
    texts: BTreeMap<HunkKey, KnownText>,
    choices: BTreeMap<HunkKey, KnownChoice>,
    #[serde(default)]
    files: BTreeMap<HunkKey, KnownFile>,
}

/// Truncated SHA-256 (16 bytes), long enough to rule out forged matches.
type HunkKey = String;

/// Text that replaced a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownText {
    #[serde(with = "lossless")]
    pub text: Vec<u8>,
    /// Times in a row.
    pub times: u32,
    /// Latest merge with it.
    pub merge: Sha,
}

/// Resolution of a file whose three versions were in conflict before, as on a sibling branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    pub choice: Resolution,
    /// Latest merge with it.
    pub merge: Sha,
}

/// Resolution of similar hunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChoice {
    pub choice: Resolution,
    /// Times in a row.
    pub times: u32,
    /// Latest merge with it.
    pub merge: Sha,
}

/// Similarity of a hunk to a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// All versions are the same except for numbers.
    Numbers,
    /// The fork's version and the ancestor's are the same.
    Patch,
    /// The fork's version is the same, in the same file.
    Ours,
    /// Upstream's version is the same.
    Theirs,
}

impl Likeness {
    pub const ALL: [Self; 4] = [Self::Numbers, Self::Patch, Self::Ours, Self::Theirs];

    pub fn name(self) -> &'static str {
        match self {
            Self::Numbers => "but-for-numbers",
            Self::Patch => "same-patch",
            Self::Ours => "same-ours",
            Self::Theirs => "same-theirs",
        }
    }
}

impl HunkMemory {
    /// Text that replaced the same hunk, in any file.
    pub fn text(&self, hunk: &Hunk) -> Option<&KnownText> {
        self.texts.get(&key_of_all(hunk))
    }

    pub fn choice(&self, hunk: &Hunk, path: &str, likeness: Likeness) -> Option<&KnownChoice> {
        self.choices.get(&key_of(hunk, path, likeness))
    }

    /// Resolution of the same three versions, at any path.
    pub fn file(&self, conflict: &FileConflict) -> Option<&KnownFile> {
        self.files.get(&key_of_file(conflict))
    }

    /// Stores people's resolution of a file.
    pub fn learn_file(&mut self, conflict: &FileConflict, choice: Resolution, merge: &Sha) {
        self.files.insert(key_of_file(conflict), KnownFile { choice, merge: merge.clone() });
    }

    /// Returns whether people wrote a new text for the latest similar hunk, which makes answers from the two sides alone
    /// doubtful.
    pub fn was_rewritten(&self, hunk: &Hunk, path: &str) -> bool {
        [Likeness::Numbers, Likeness::Patch, Likeness::Ours].into_iter().any(|likeness| {
            let known = self.choice(hunk, path, likeness);
            known.is_some_and(|known| matches!(known.choice, Resolution::Other | Resolution::Base))
        })
    }

    /// Stores people's resolution of a hunk.
    pub fn learn(
        &mut self,
        hunk: &Hunk,
        path: &str,
        answer: &[u8],
        choice: Resolution,
        merge: &Sha,
    ) {
        if answer.len() <= TEXT_CAP {
            let key = key_of_all(hunk);
            let times = match self.texts.get(&key) {
                Some(known) if bare(&known.text) == bare(answer) => known.times + 1,
                Some(_) | None => 1,
            };
            let known = KnownText { text: answer.to_vec(), times, merge: merge.clone() };
            self.texts.insert(key, known);
        }
        for likeness in Likeness::ALL {
            let key = key_of(hunk, path, likeness);
            let times = match self.choices.get(&key) {
                Some(known) if known.choice == choice => known.times + 1,
                Some(_) | None => 1,
            };
            self.choices.insert(key, KnownChoice { choice, times, merge: merge.clone() });
        }
    }
}

fn key_of_file(conflict: &FileConflict) -> HunkKey {
    let id = |side: &Option<FileVersion>| {
        side.as_ref().map(|side| side.id.as_str().as_bytes().to_vec()).unwrap_or_default()
    };
    hash("file", &[&conflict.base, &conflict.ours, &conflict.theirs].map(id))
}

fn key_of_all(hunk: &Hunk) -> HunkKey {
    hash("all", &[&hunk.ours, &hunk.base, &hunk.theirs].map(|side| bare_lines(side)))
}

fn key_of(hunk: &Hunk, path: &str, likeness: Likeness) -> HunkKey {
    let name = likeness.name();
    match likeness {
        Likeness::Numbers => {
            let sides = [&hunk.ours, &hunk.base, &hunk.theirs];
            hash(name, &sides.map(|side| without_numbers(&bare_lines(side))))
        }
        Likeness::Patch => hash(name, &[&hunk.ours, &hunk.base].map(|side| bare_lines(side))),
        Likeness::Ours => hash(name, &[path.as_bytes().to_vec(), bare_lines(&hunk.ours)]),
        Likeness::Theirs => hash(name, &[bare_lines(&hunk.theirs)]),
    }
}

/// Replaces numbers and versions with `0`.
fn without_numbers(text: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text {
        let goes_on = kept.last() == Some(&b'0');
        match byte {
            b'0'..=b'9' if goes_on => {}
            b'.' if goes_on => {}
            b'0'..=b'9' => kept.push(b'0'),
            _ => kept.push(byte),
        }
    }
    kept
}

fn hash(name: &str, parts: &[Vec<u8>]) -> HunkKey {
    let mut bytes = name.as_bytes().to_vec();
    for part in parts {
        bytes.extend(part.len().to_le_bytes());
        bytes.extend(part);
    }
    model::digest::short_sha256(&bytes, 16)
}

/// Bytes as text, one character for each byte, so that bytes that are not UTF-8 survive.
mod lossless {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&bytes.iter().copied().map(char::from).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)));
        bytes.collect::<Result<_, _>>().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(base: &str, ours: &str, theirs: &str) -> Hunk {
        Hunk { base: base.into(), ours: ours.into(), theirs: theirs.into() }
    }

    fn merge() -> Sha {
        Sha::parse(&"a".repeat(40)).unwrap()
    }

    #[test]
    fn the_same_hunk_is_known_whatever_its_indentation() {
        let mut memory = HunkMemory::default();
        memory.learn(&hunk("a\n", "b\n", "c\n"), "f", b"d\xff\n", Resolution::Other, &merge());
        let known = memory.text(&hunk("  a\n", "b\n", "\tc\n")).unwrap();
        assert_eq!((known.text.as_slice(), known.times), (&b"d\xff\n"[..], 1));
        assert_eq!(memory.text(&hunk("a\n", "b\n", "x\n")), None);
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<HunkMemory>(&text).unwrap(), memory);
    }

    #[test]
    fn hunks_are_alike_in_several_ways() {
        let mut memory = HunkMemory::default();
        let known = hunk("v1.2\n", "v1.2-fork\n", "v1.3\n");
        memory.learn(&known, "f", b"v1.3-fork\n", Resolution::Apart, &merge());
        memory.learn(&known, "f", b"v1.3-fork\n", Resolution::Apart, &merge());
        let next = hunk("v1.3\n", "v1.3-fork\n", "v1.40\n");
        let times = |path, likeness| memory.choice(&next, path, likeness).map(|one| one.times);
        assert_eq!(times("f", Likeness::Numbers), Some(2));
        assert_eq!(times("f", Likeness::Patch), None);
        assert!(!memory.was_rewritten(&next, "f"));
        memory.learn(&known, "f", b"something else\n", Resolution::Other, &merge());
        assert!(memory.was_rewritten(&next, "f"));
        let other = hunk("w\n", "v1.2-fork\n", "x\n");
        assert!(memory.choice(&other, "f", Likeness::Ours).is_some());
        assert!(memory.choice(&other, "g", Likeness::Ours).is_none());
    }
}
