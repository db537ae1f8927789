//! Merges that were made again, kept in a file for each fork: git takes far longer than the resolver.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use merge::clean::ConflictKind;
use merge::path::TreePath;
use merge::resolver::conflict::{FileConflict, FileVersion};
use merge::resolver::habit::Resolution;
use merge::resolver::human::HumanResolution;
use merge::resolver::replay::MergeFacts;
use model::id::Sha;

use crate::load::Past;

/// File of a fork in the folder.
pub(crate) fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(name.replace('/', "+"))
}

pub(crate) fn write(file: &Path, merges: &[Past]) {
    let mut bytes = Vec::new();
    for Past { sha, facts, score_time } in merges {
        put(&mut bytes, sha.as_str().as_bytes());
        put_number(&mut bytes, facts.conflict_count as u64);
        put_number(&mut bytes, u64::from(facts.is_one_sided));
        for time in [facts.merge_time, facts.read_time, *score_time] {
            put_number(&mut bytes, u64::try_from(time.as_micros()).unwrap());
        }
        put_number(&mut bytes, facts.conflicts.len() as u64);
        for (conflict, human) in &facts.conflicts {
            put_conflict(&mut bytes, conflict, human);
        }
    }
    let part = file.with_extension("part");
    fs::write(&part, bytes).unwrap();
    fs::rename(part, file).unwrap();
}

fn put_conflict(bytes: &mut Vec<u8>, conflict: &FileConflict, human: &HumanResolution) {
    put(bytes, conflict.path.as_bytes());
    put(bytes, conflict.kind.as_str().as_bytes());
    put(bytes, serde_json::to_string(&human.choice).unwrap().as_bytes());
    put_option(bytes, human.bytes.as_deref());
    for side in [&conflict.base, &conflict.ours, &conflict.theirs] {
        put_number(bytes, side.as_ref().map_or(0, |side| u64::from(side.mode)));
        if let Some(side) = side {
            put(bytes, side.id.as_str().as_bytes());
            put_option(bytes, side.bytes.as_deref());
        }
    }
}

pub(crate) fn read(file: &Path) -> Option<Vec<Past>> {
    let bytes = fs::read(file).ok()?;
    let mut rest = Reader { rest: &bytes };
    let mut merges = Vec::new();
    while !rest.rest.is_empty() {
        let sha = rest.sha();
        let conflict_count = usize::try_from(rest.number()).unwrap();
        let is_one_sided = rest.number() == 1;
        let [merge_time, read_time, score_time] =
            [(); 3].map(|()| Duration::from_micros(rest.number()));
        let count = rest.number();
        let conflicts = (0..count).map(|_| rest.conflict()).collect();
        let facts = MergeFacts { conflicts, conflict_count, is_one_sided, merge_time, read_time };
        merges.push(Past { sha, facts, score_time });
    }
    Some(merges)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> u64 {
        let (number, rest) = self.rest.split_first_chunk().unwrap();
        self.rest = rest;
        u64::from_le_bytes(*number)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let count = usize::try_from(self.number()).unwrap();
        let (bytes, rest) = self.rest.split_at(count);
        self.rest = rest;
        bytes
    }

    fn option(&mut self) -> Option<Vec<u8>> {
        (self.number() == 1).then(|| self.bytes().to_vec())
    }

    fn text(&mut self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap()
    }

    fn sha(&mut self) -> Sha {
        Sha::parse(self.text()).unwrap()
    }

    fn version(&mut self) -> Option<FileVersion> {
        let mode = u32::try_from(self.number()).unwrap();
        (mode > 0).then(|| FileVersion { mode, id: self.sha(), bytes: self.option() })
    }

    fn conflict(&mut self) -> (FileConflict, HumanResolution) {
        let path = TreePath::new(self.bytes());
        let kind = self.text();
        let kind = ConflictKind::ALL.into_iter().find(|one| one.as_str() == kind).unwrap();
        let choice: Resolution = serde_json::from_str(self.text()).unwrap();
        let committed = self.option();
        let [base, ours, theirs] = [(); 3].map(|()| self.version());
        let mut conflict = FileConflict { path, kind, base, ours, theirs, pieces: Vec::new() };
        conflict.cut();
        let human = HumanResolution::again(&conflict, choice, committed);
        (conflict, human)
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    put_number(bytes, part.len() as u64);
    bytes.extend(part);
}

fn put_option(bytes: &mut Vec<u8>, part: Option<&[u8]>) {
    put_number(bytes, u64::from(part.is_some()));
    if let Some(part) = part {
        put(bytes, part);
    }
}
