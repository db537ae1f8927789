//! Copying of bytes between a child and this process, within limits.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CHUNK: usize = 64 * 1024;

/// The first bytes of a stream, and the number of dropped ones.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) bytes: Vec<u8>,
    pub(super) dropped: u64,
    cap: usize,
}

impl Capture {
    pub(super) fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), dropped: 0, cap }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        let room = self.cap.saturating_sub(self.bytes.len());
        let (kept, rest) = chunk.split_at(room.min(chunk.len()));
        self.bytes.extend_from_slice(kept);
        self.dropped = self.dropped.saturating_add(rest.len() as u64);
    }
}

/// Reads a stream to its end, passing each chunk to `sink`. The rest beyond the limit is read and dropped, so
/// that a full pipe never blocks the child.
pub(super) async fn pump(
    stream: Option<impl AsyncRead + Unpin>,
    mut sink: impl FnMut(&[u8]),
) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        sink(&chunk[..count]);
    }
}

/// Writes `input` and closes the stream. A child may exit without reading all of it.
pub(super) async fn feed(stream: Option<impl AsyncWrite + Unpin>, input: &[u8]) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let written = async {
        stream.write_all(input).await?;
        stream.shutdown().await
    };
    match written.await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_keeps_the_start_and_counts_the_rest() {
        let mut capture = Capture::new(5);
        for chunk in ["abc", "def", "ghi"] {
            capture.push(chunk.as_bytes());
        }
        assert_eq!((capture.bytes.as_slice(), capture.dropped), (b"abcde".as_slice(), 4));
    }
}
