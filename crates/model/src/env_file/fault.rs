//! What can be wrong with an env file, in words that say what to do.
//!
//! No message shows a value, for it may be a secret. A key is shown only once it is known to be one:
//! the text before the first `=` of a broken line may be the tail of a token.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct EnvFileError {
    /// The line, counted from 1.
    pub line: usize,
    pub reason: EnvFault,
}

/// A way to break the grammar, on reading or on setting a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvFault {
    /// The file is not UTF-8.
    #[error("the line is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    #[error("the file starts with a byte order mark; save it without one")]
    ByteOrderMark,
    #[error("expected KEY=value; if this is a comment, start it with #")]
    NoEquals,
    /// The part before `=` is not a key.
    #[error("the key must be capital letters, digits and _, starting with a letter")]
    BadKey,
    #[error("{key} was already set on line {first_line}; keep one of the two")]
    Duplicate {
        key: String,
        /// Where it was set first, counted from 1.
        first_line: usize,
    },
    #[error("the value of {key} has a blank; put the value in double quotes")]
    Blank { key: String },
    #[error("the value of {key} has a quote inside; put the whole value in quotes")]
    QuoteInside { key: String },
    /// An `&` within a bare value.
    #[error("the value of {key} has a single '&'; put the value in double quotes")]
    BareAmpersand { key: String },
    #[error("the value of {key} lacks its closing {quote}")]
    Unclosed {
        key: String,
        /// The quote that was opened.
        quote: char,
    },
    #[error("the value of {key} goes on after its closing quote; remove what follows")]
    AfterQuote { key: String },
    #[error("the value of {key} has '{what}', which is not allowed; remove it")]
    Forbidden { key: String, what: &'static str },
    /// A control character; line ends and tabs are such.
    #[error("the value of {key} has a control character; remove it")]
    Control { key: String },
    /// A value to be written that holds a double quote, for which the grammar has no escape.
    #[error("the value of {key} has a double quote, which cannot be written; remove it")]
    DoubleQuote { key: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("missing or empty: {}", keys.join(", "))]
pub struct MissingKeys {
    /// The keys, in the order they were asked for.
    pub keys: Vec<String>,
}
