//! Errors of env files, with a remedy in each message.
//!
//! No message shows a value, which may be a secret. A key is shown only if it is valid: the text before the first `=` of a
//! broken line may be the tail of a token.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct EnvFileError {
    /// Counted from 1.
    pub line: usize,
    pub reason: EnvFault,
}

/// A way to break the grammar, on reading or on setting a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvFault {
    #[error("the line is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    #[error("the file starts with a byte order mark; save it without one")]
    ByteOrderMark,
    #[error("expected KEY=value; if this is a comment, start it with #")]
    NoEquals,
    #[error("the key must be capital letters, digits and _, starting with a letter")]
    BadKey,
    #[error("{key} was already set on line {first_line}; keep one of the two")]
    Duplicate { key: String, first_line: usize },
    #[error("the value of {key} has a blank; put the value in double quotes")]
    Blank { key: String },
    #[error("the value of {key} has a quote inside; put the whole value in quotes")]
    QuoteInside { key: String },
    #[error("the value of {key} has a single '&'; put the value in double quotes")]
    BareAmpersand { key: String },
    #[error("the value of {key} lacks its closing {quote}")]
    Unclosed { key: String, quote: char },
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
    pub keys: Vec<String>,
}
