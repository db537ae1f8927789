//! Pieces that many of git's answers have in common: fields that end with NUL, ids and quoted paths.

use model::id::Sha;

/// Splits an answer into its fields, each of which ends with NUL; `None` for an answer that was cut off.
pub(super) fn nul_fields(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    match bytes.strip_suffix(b"\0") {
        Some(body) => Some(body.split(|&byte| byte == 0).collect()),
        None => bytes.is_empty().then(Vec::new),
    }
}

/// Splits an answer at NUL and skips empty fields.
pub(super) fn filled_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == 0).filter(|field| !field.is_empty())
}

/// Splits a field `header`, tab, path, and the header at its blanks.
pub(super) fn header_and_path(field: &[u8]) -> Option<(Vec<&str>, &[u8])> {
    let tab = field.iter().position(|&byte| byte == b'\t')?;
    let header = std::str::from_utf8(&field[..tab]).ok()?;
    Some((header.split(' ').collect(), &field[tab + 1..]))
}

pub(super) fn parse_id(bytes: &[u8]) -> Option<Sha> {
    Sha::parse(std::str::from_utf8(bytes).ok()?).ok()
}

/// Drops an id of zeros, which means no object.
pub(super) fn some_object(id: Sha) -> Option<Sha> {
    let is_zero = id.as_str().bytes().all(|byte| byte == b'0');
    (!is_zero).then_some(id)
}

pub(super) fn parse_mode(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok()
}

/// Renders ids for a command that reads them from its input, one per line.
pub(super) fn lines_of(ids: &[Sha]) -> String {
    ids.iter().map(|id| format!("{id}\n")).collect()
}

/// Renders commits to leave out, in the syntax of revision lists.
pub(super) fn excluded(commits: &[Sha]) -> impl Iterator<Item = String> {
    commits.iter().map(|sha| format!("^{sha}"))
}

/// Quotes a path in C syntax, which can hold any byte.
pub(super) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            b' '..=b'~' => text.push(byte),
            _ => text.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    text.push(b'"');
    text
}
