//! A file that both sides changed, cut into what is merged and what is not.

use crate::three::text::lines;
use crate::three::{Change, Touching, three_way};

/// A piece of a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What git merges by itself.
    Merged(Vec<u8>),
    /// What it does not.
    Hunk(Hunk),
}

/// Lines that both sides changed, differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// In the common ancestor.
    pub base: Vec<u8>,
    /// In the fork.
    pub ours: Vec<u8>,
    /// In upstream.
    pub theirs: Vec<u8>,
}

/// Cuts a file. The first and the last piece are merged ones, and no two of a kind are neighbours.
#[must_use]
pub fn cut(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<Piece> {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut pieces = Vec::new();
    let mut merged = Vec::new();
    for region in three_way(&base, &ours, &theirs, Touching::Joins) {
        match region.change {
            Change::None => merged.extend(base[region.base].concat()),
            Change::Ours | Change::Same => merged.extend(ours[region.ours].concat()),
            Change::Theirs => merged.extend(theirs[region.theirs].concat()),
            Change::Conflict => {
                pieces.push(Piece::Merged(std::mem::take(&mut merged)));
                pieces.push(Piece::Hunk(Hunk {
                    base: base[region.base].concat(),
                    ours: ours[region.ours].concat(),
                    theirs: theirs[region.theirs].concat(),
                }));
            }
        }
    }
    pieces.push(Piece::Merged(merged));
    pieces
}

/// The hunks of a file.
pub fn hunks(pieces: &[Piece]) -> impl Iterator<Item = &Hunk> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Hunk(hunk) => Some(hunk),
        Piece::Merged(_) => None,
    })
}

/// The file with these answers in place of its hunks.
#[must_use]
pub fn join<'a>(pieces: &[Piece], answers: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut answers = answers.into_iter();
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Merged(bytes) => text.extend_from_slice(bytes),
            Piece::Hunk(_) => text.extend_from_slice(answers.next().unwrap_or_default()),
        }
    }
    text
}
