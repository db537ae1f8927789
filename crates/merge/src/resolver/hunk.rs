//! Cuts a file that both sides changed into merged pieces and conflicting hunks.

use serde::{Deserialize, Serialize};

use crate::three::text::lines;
use crate::three::{Change, Touching, three_way};

/// One of the two sides of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The fork's.
    Ours,
    Theirs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePiece {
    Merged(Vec<u8>),
    Hunk(Hunk),
}

/// Lines that both sides changed, differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    pub base: Vec<u8>,
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
}

impl Hunk {
    /// The common ancestor's version, the fork's and upstream's.
    pub fn versions(&self) -> [&[u8]; 3] {
        [&self.base, &self.ours, &self.theirs]
    }
}

/// Cuts a file. The first and the last piece are merged ones, and merged pieces and hunks alternate.
pub fn cut(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<FilePiece> {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut pieces = Vec::new();
    let mut merged = Vec::new();
    for region in three_way(&base, &ours, &theirs, Touching::Joins) {
        match region.change {
            Change::None => merged.extend(base[region.base].concat()),
            Change::Ours | Change::Same => merged.extend(ours[region.ours].concat()),
            Change::Theirs => merged.extend(theirs[region.theirs].concat()),
            Change::Conflict => {
                pieces.push(FilePiece::Merged(std::mem::take(&mut merged)));
                pieces.push(FilePiece::Hunk(Hunk {
                    base: base[region.base].concat(),
                    ours: ours[region.ours].concat(),
                    theirs: theirs[region.theirs].concat(),
                }));
            }
        }
    }
    pieces.push(FilePiece::Merged(merged));
    pieces
}

pub fn hunks(pieces: &[FilePiece]) -> impl Iterator<Item = &Hunk> {
    pieces.iter().filter_map(|piece| match piece {
        FilePiece::Hunk(hunk) => Some(hunk),
        FilePiece::Merged(_) => None,
    })
}

/// Joins the pieces, with `answers` in place of the hunks.
pub fn join<'a>(pieces: &[FilePiece], answers: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut answers = answers.into_iter();
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            FilePiece::Merged(bytes) => text.extend_from_slice(bytes),
            FilePiece::Hunk(_) => text.extend_from_slice(answers.next().unwrap_or_default()),
        }
    }
    text
}
