//! Messages of the init to the host, on a socket that only the two of them hold: its standard input, or on a container
//! engine the first connection to a socket in the folder of the box.
//!
//! The host writes a byte to ask for the memory that the kernel holds for the box, and the init answers with a line.
//! The last line says that the init ended by itself: a box that ends without it was killed from outside.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Place where the init finds its link to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkPlace {
    Stdin,
    /// Path of the socket in the box. The init connects before any code of the agent runs, so the first connection is its own.
    Socket(PathBuf),
}

/// Line from the init to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMessage {
    /// Bytes that the kernel holds for the box and that no process has mapped: System V objects and socket buffers.
    KernelMemory(u64),
    Ended,
}

impl LinkMessage {
    /// Parses a line without its line break.
    pub fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("kernel-memory", bytes)) => bytes.parse().ok().map(Self::KernelMemory),
            _ => (line == "ended").then_some(Self::Ended),
        }
    }

    /// Renders the line with its line break.
    pub fn render(self) -> String {
        match self {
            Self::KernelMemory(bytes) => format!("kernel-memory {bytes}\n"),
            Self::Ended => "ended\n".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_init_writes_the_host_reads() {
        for message in [LinkMessage::KernelMemory(0), LinkMessage::KernelMemory(u64::MAX)] {
            assert_eq!(LinkMessage::parse(message.render().trim_end()), Some(message));
        }
        assert_eq!(
            LinkMessage::parse(LinkMessage::Ended.render().trim_end()),
            Some(LinkMessage::Ended)
        );
        for other in ["", "ended 3", "kernel-memory", "kernel-memory -1"] {
            assert_eq!(LinkMessage::parse(other), None, "{other:?}");
        }
    }
}
