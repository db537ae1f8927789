//! The script of the model, turn by turn.

use serde_json::Value;

/// Text of the model after the end of its script.
pub const LAST_TEXT: &str = "done";

/// Turns of the model in one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelScript {
    /// Its turns; past the last one it says [`LAST_TEXT`].
    pub turns: Vec<Turn>,
    /// Usage that it reports in every turn.
    pub usage: Usage,
    /// Answer to requests that offer no tools.
    pub side_call_text: String,
}

impl ModelScript {
    /// A script of these turns, with the usual rest.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            turns: turns.into_iter().collect(),
            usage: Usage::default(),
            side_call_text: "A scripted side call".into(),
        }
    }

    /// The same script with another usage.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }
}

/// Tokens of one turn. The parts do not overlap; where an API counts all input as one, the answer adds them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Input that no cache had.
    pub input: u64,
    /// Input that came from the cache.
    pub cached: u64,
    /// Input that was written to the cache, which only Messages reports.
    pub cache_written: u64,
    /// Output.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, cached: 0, cache_written: 0, output: 20 }
    }
}

impl Usage {
    /// All input, as the APIs of the OpenAI kind count it.
    pub(crate) fn whole_input(self) -> u64 {
        self.input + self.cached + self.cache_written
    }
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Runs a command with whatever shell tool the agent offers.
    Shell(String),
    /// Calls the tool of this name, or else the first whose name ends in it: prefixes differ between agents.
    Tool {
        /// The name, or how it ends.
        name_suffix: String,
        /// The arguments; a plain string for tools whose input is text.
        input: Value,
    },
    /// Says something and leaves it at that.
    Text(String),
    /// Answers with an HTTP status, every time.
    Status {
        /// The status.
        code: u16,
        /// The body; if empty, the error that the API asked would give.
        body: String,
        /// Headers besides those of the body.
        headers: Vec<(String, String)>,
    },
    /// Answers with a status that says when to come back, every time.
    Quota {
        /// The status, usually 429.
        status: u16,
        /// The `retry-after` header.
        retry_after_secs: u64,
        /// The body; if empty, the error that the API asked would give.
        body: String,
    },
    /// Plays one turn for the first requests and another for the rest. Counts requests for this turn of this script,
    /// whichever conversation they belong to.
    FailFirst {
        /// Number of requests that get `with`.
        n: usize,
        /// Turn of the first requests.
        with: Box<Self>,
        /// Turn of the others.
        then: Box<Self>,
    },
    /// Answers after a while.
    Delay {
        /// Delay before the response.
        ms: u64,
        /// Turn after the delay.
        then: Box<Self>,
    },
    /// Never answers. A stream opens and then stays without an event; another request gets nothing at all.
    Hang {
        /// True if the stream has comments meanwhile, which keep alive a client that counts bytes.
        comments: bool,
    },
    /// Starts to say [`LAST_TEXT`] and ends the connection meanwhile.
    Drop {
        /// True if it ends with a reset, not with an orderly end.
        rst: bool,
        /// Bytes of the response that the client gets, head included. With 0 it gets nothing; 300 is amid the events
        /// of a stream, whichever the API.
        after_bytes: usize,
    },
}

impl Turn {
    /// Runs a command.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell(command.into())
    }

    /// Says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Calls the tool whose name ends like this.
    pub fn tool(name_suffix: impl Into<String>, input: Value) -> Self {
        Self::Tool { name_suffix: name_suffix.into(), input }
    }

    /// Answers with a status and the usual body.
    pub fn status(code: u16) -> Self {
        Self::Status { code, body: String::new(), headers: Vec::new() }
    }

    /// Answers 429, to come back after so many seconds.
    pub fn quota(retry_after_secs: u64) -> Self {
        Self::Quota { status: 429, retry_after_secs, body: String::new() }
    }

    /// Answers `n` requests with a status and the rest with a turn.
    pub fn fail_first(n: usize, status: u16, then: Self) -> Self {
        Self::status(status).first(n, then)
    }

    /// This turn for the first `n` requests, then another.
    #[must_use]
    pub fn first(self, n: usize, then: Self) -> Self {
        Self::FailFirst { n, with: Box::new(self), then: Box::new(then) }
    }

    /// This turn, after a while.
    #[must_use]
    pub fn delayed(self, ms: u64) -> Self {
        Self::Delay { ms, then: Box::new(self) }
    }
}
