//! Files with holes, in the form 1.0 of GNU tar: a list of the ranges that have data comes before the data.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Block of a tar.
pub(super) const BLOCK: u64 = 512;
/// Ranges of one file that are kept apart at most; the rest is one range.
const RANGES_MAX: usize = 100_000;

/// A range of a file that has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataRange {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// Finds the ranges of a file that have data.
pub(super) fn data_ranges(file: &File, size: u64) -> io::Result<Vec<DataRange>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno.into()),
        };
        let end = match ranges.len() + 1 < RANGES_MAX {
            true => seek(file, SeekFrom::Hole(start))?.min(size),
            false => size,
        };
        if start >= size {
            break;
        }
        ranges.push(DataRange { start, bytes: end - start });
        at = end;
    }
    Ok(ranges)
}

/// The list before the data, filled up to whole blocks.
pub(super) fn render_map(ranges: &[DataRange]) -> Vec<u8> {
    let mut text = format!("{}\n", ranges.len());
    for range in ranges {
        // Writing to a string cannot fail.
        let _written = writeln!(text, "{}\n{}", range.start, range.bytes);
    }
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    bytes
}

/// Reads the list before the data, with the blocks that it fills.
pub(super) fn read_map(source: &mut impl Read, size: u64) -> io::Result<Vec<DataRange>> {
    let mut numbers = NumberReader { source, block: [0; BLOCK as usize], at: BLOCK as usize };
    let count = numbers.next()?;
    if count > RANGES_MAX as u64 {
        return Err(wrong());
    }
    let mut ranges = Vec::new();
    let mut end = 0;
    for _ in 0..count {
        let (start, bytes) = (numbers.next()?, numbers.next()?);
        if start < end || start.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(wrong());
        }
        end = start + bytes;
        ranges.push(DataRange { start, bytes });
    }
    Ok(ranges)
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the list of a file's ranges is wrong")
}

struct NumberReader<'a, R> {
    source: &'a mut R,
    block: [u8; BLOCK as usize],
    at: usize,
}

impl<R: Read> NumberReader<'_, R> {
    fn next(&mut self) -> io::Result<u64> {
        let (mut number, mut digits) = (0_u64, 0);
        loop {
            if self.at == self.block.len() {
                self.source.read_exact(&mut self.block)?;
                self.at = 0;
            }
            let byte = self.block[self.at];
            self.at += 1;
            match byte {
                b'0'..=b'9' if digits < 20 => {
                    let more = number
                        .checked_mul(10)
                        .and_then(|it| it.checked_add(u64::from(byte - b'0')));
                    number = more.ok_or_else(wrong)?;
                    digits += 1;
                }
                b'\n' if digits > 0 => return Ok(number),
                _ => return Err(wrong()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_comes_back_and_takes_its_blocks_alone(parts in prop::collection::vec((0..5000_u64, 1..5000_u64), 0..120)) {
            let mut end = 0;
            let ranges: Vec<DataRange> = parts.iter().map(|(gap, bytes)| {
                let start = end + gap;
                end = start + bytes;
                DataRange { start, bytes: *bytes }
            }).collect();
            let mut stream = render_map(&ranges);
            stream.extend_from_slice(b"data");
            let mut source = stream.as_slice();
            prop_assert_eq!(read_map(&mut source, end).unwrap(), ranges);
            prop_assert_eq!(source, b"data");
        }

        #[test]
        fn a_wrong_list_is_an_error_and_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
            drop(read_map(&mut bytes.as_slice(), 1000));
            for byte in &mut bytes {
                *byte = b"0123456789\n"[usize::from(*byte) % 11];
            }
            drop(read_map(&mut bytes.as_slice(), 1000));
        }
    }

    #[test]
    fn ranges_stay_in_order_and_inside_the_file() {
        for wrong in [
            "1\n0\n11\n",
            "2\n5\n2\n4\n1\n",
            "1\n18446744073709551615\n1\n",
            "200000\n",
            "-1\n",
            "\n",
        ] {
            let mut bytes = wrong.as_bytes().to_vec();
            bytes.resize(512, 0);
            assert!(read_map(&mut bytes.as_slice(), 10).is_err(), "{wrong:?}");
        }
    }
}
