//! Protocol between an attached terminal and the one in the box: keys and sizes in, plain bytes out.
//!
//! Only the input has frames, because sizes are mixed with keys. A frame is one byte for its kind, two for
//! the length of the payload, and the payload.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    pub rows: u16,
    pub cols: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// Bytes from the keyboard.
    Keys(Vec<u8>),
    Size(TerminalSize),
}

/// Limit on keys in one frame.
const KEYS_MAX: usize = 4096;

const KEYS: u8 = 0;
const SIZE: u8 = 1;
const HEADER: usize = 3;

impl TerminalInput {
    pub fn render(&self) -> Vec<u8> {
        match self {
            Self::Keys(keys) => {
                keys.chunks(KEYS_MAX).flat_map(|chunk| render_frame(KEYS, chunk)).collect()
            }
            Self::Size(TerminalSize { rows, cols }) => {
                render_frame(SIZE, &[rows.to_be_bytes(), cols.to_be_bytes()].concat())
            }
        }
    }
}

fn render_frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
    let mut frame = vec![kind];
    frame.extend(length.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Reassembles frames, however they were split.
#[derive(Debug, Default)]
pub struct InputReader {
    rest: Vec<u8>,
}

impl InputReader {
    /// Takes the next bytes and returns the complete inputs. Host and guest come from the same build, so an
    /// unknown kind is noise and skipped.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        self.rest.extend_from_slice(bytes);
        let mut whole = Vec::new();
        while let Some(frame) = self.next_frame() {
            whole.extend(parse_frame(frame[0], &frame[HEADER..]));
        }
        whole
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let [_, high, low, ..] = *self.rest.as_slice() else { return None };
        let end = HEADER + usize::from(u16::from_be_bytes([high, low]));
        (self.rest.len() >= end).then(|| self.rest.drain(..end).collect())
    }
}

fn parse_frame(kind: u8, payload: &[u8]) -> Option<TerminalInput> {
    match (kind, payload) {
        (KEYS, keys) => Some(TerminalInput::Keys(keys.to_vec())),
        (SIZE, &[a, b, c, d]) => Some(TerminalInput::Size(TerminalSize {
            rows: u16::from_be_bytes([a, b]),
            cols: u16::from_be_bytes([c, d]),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sizes_come_back_in_their_order_however_they_are_cut() {
        let size = TerminalInput::Size(TerminalSize { rows: 40, cols: 300 });
        let sent = [TerminalInput::Keys(b"ls\r".to_vec()), size, TerminalInput::Keys(vec![3])];
        let bytes: Vec<u8> = sent.iter().flat_map(TerminalInput::render).collect();
        for step in 1..=bytes.len() {
            let mut reader = InputReader::default();
            let read: Vec<TerminalInput> =
                bytes.chunks(step).flat_map(|chunk| reader.push(chunk)).collect();
            assert_eq!(read, sent, "{step}");
        }
    }

    #[test]
    fn what_was_pasted_is_whole_in_the_end() {
        let pasted: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let read = InputReader::default().push(&TerminalInput::Keys(pasted.clone()).render());
        assert_eq!(read.len(), pasted.len().div_ceil(KEYS_MAX));
        let keys = |input| match input {
            TerminalInput::Keys(keys) => keys,
            TerminalInput::Size(_) => Vec::new(),
        };
        assert_eq!(read.into_iter().flat_map(keys).collect::<Vec<u8>>(), pasted);
    }

    #[test]
    fn noise_is_left_out() {
        let mut noise = render_frame(7, b"x");
        noise.extend(render_frame(SIZE, b"abc"));
        noise.extend(TerminalInput::Keys(b"k".to_vec()).render());
        assert_eq!(InputReader::default().push(&noise), [TerminalInput::Keys(b"k".to_vec())]);
    }
}
