//! Cutting of a stream where its content says so: what is inserted or removed changes the chunks around it alone.

use std::io::{self, Write};

use fastcdc::v2020::FastCDC;

/// Sizes of a chunk: least, average and most.
const LEAST: usize = 512 << 10;
const AVERAGE: usize = 1 << 20;
pub(crate) const CHUNK_MAX: usize = 4 << 20;
const BUFFER: usize = 2 * CHUNK_MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    Ahead,
    Reached,
}

/// A sink that hands on a stream in chunks.
pub(crate) struct ChunkWriter<F> {
    buffer: Vec<u8>,
    sink: F,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> ChunkWriter<F> {
    pub(crate) fn new(sink: F) -> Self {
        Self { buffer: Vec::with_capacity(BUFFER), sink }
    }

    /// Hands on what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.cut(StreamEnd::Reached)
    }

    /// Cuts what is there. Where a chunk ends that reaches to the end of the buffer, only the bytes after it can tell.
    fn cut(&mut self, end: StreamEnd) -> io::Result<()> {
        let cutter = FastCDC::new(&self.buffer, LEAST, AVERAGE, CHUNK_MAX);
        let mut at = 0;
        while at < self.buffer.len() {
            let (_, to) = cutter.cut(at, self.buffer.len() - at);
            if to == self.buffer.len() && end == StreamEnd::Ahead {
                break;
            }
            (self.sink)(&self.buffer[at..to])?;
            at = to;
        }
        self.buffer.drain(..at);
        Ok(())
    }
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for ChunkWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BUFFER - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == BUFFER {
            self.cut(StreamEnd::Ahead)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..bytes / 8).flat_map(|_| next().to_le_bytes()).collect()
    }

    fn chunks(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut writer = ChunkWriter::new(|chunk: &[u8]| {
            found.push(chunk.to_vec());
            Ok(())
        });
        for part in stream.chunks(piece) {
            writer.write_all(part).unwrap();
        }
        writer.finish().unwrap();
        found
    }

    #[test]
    fn chunks_are_the_stream_and_the_same_however_it_comes() {
        let stream = noise(40 << 20, 7);
        let found = chunks(&stream, 1 << 20);
        assert_eq!(found.concat(), stream);
        assert_eq!(chunks(&stream, 777_777), found);
        assert!(found.iter().all(|chunk| chunk.len() <= CHUNK_MAX));
        assert_eq!(chunks(&[], 1), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn an_insertion_changes_few_chunks() {
        let stream = noise(40 << 20, 9);
        let mut longer = stream.clone();
        longer.splice(20_000_000..20_000_000, noise(1000, 3));
        let (before, after) = (chunks(&stream, 1 << 20), chunks(&longer, 1 << 20));
        let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!(new <= 3, "{new} of {}", after.len());
    }
}
