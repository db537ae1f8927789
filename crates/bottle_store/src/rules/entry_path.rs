//! Names and modes that an archive may have. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::archive::{AGENT_PARTS, HOST_PARTS};

/// The folder of a bottle to which an entry belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPart {
    /// Files of the host: they are read as they are, so no link is among them.
    Host(&'static str),
    /// Trees of the agent: nothing follows a link in them.
    Agent(&'static str),
}

/// Checks a path of an archive.
pub(crate) fn parse_entry_path(bytes: &[u8]) -> Result<(PathBuf, EntryPart), &'static str> {
    if bytes.contains(&0) {
        return Err("its name has a NUL");
    }
    let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
    let path = Path::new(OsStr::from_bytes(bytes));
    let mut parts = path.components();
    let Some(Component::Normal(first)) = parts.next() else {
        return Err("its name leads out of the folder");
    };
    if !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err("its name leads out of the folder");
    }
    // Components pass over "." and double slashes, and a name with them is not one that we write.
    if path.as_os_str().as_bytes() != bytes || has_empty_part(bytes) {
        return Err("its name is not in its plain form");
    }
    let known = |list: &[&'static str]| list.iter().copied().find(|part| first == OsStr::new(part));
    let part = match (known(&HOST_PARTS), known(&AGENT_PARTS)) {
        (Some(part), _) => EntryPart::Host(part),
        (None, Some(part)) => EntryPart::Agent(part),
        (None, None) => return Err("it is no part of a bottle"),
    };
    Ok((path.to_path_buf(), part))
}

fn has_empty_part(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'/').any(|part| part.is_empty() || part == b".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_lead_out_are_refused() {
        let bad: [&[u8]; 13] = [
            b"",
            b"/",
            b"/etc/passwd",
            b"..",
            b"../x",
            b"workspace/../../x",
            b"workspace/..",
            b"./workspace",
            b"workspace/./x",
            b"workspace//x",
            b"other",
            b"lock",
            b"workspace/a\0b",
        ];
        for name in bad {
            assert!(parse_entry_path(name).is_err(), "{:?}", String::from_utf8_lossy(name));
        }
        let part = |name: &[u8]| parse_entry_path(name).map(|(_, part)| part);
        assert_eq!(part(b"workspace/"), Ok(EntryPart::Agent("workspace")));
        assert_eq!(part(b"workspace/caf\xe9/..."), Ok(EntryPart::Agent("workspace")));
        assert_eq!(part(b"harness-state/home/.x"), Ok(EntryPart::Agent("harness-state")));
        assert_eq!(part(b"record.json"), Ok(EntryPart::Host("record.json")));
        assert_eq!(part(b"runs/r1/metadata.json"), Ok(EntryPart::Host("runs")));
    }

    proptest! {
        #[test]
        fn what_is_accepted_stays_inside(bytes in prop::collection::vec(any::<u8>(), 0..40), prefix in 0..3) {
            let bytes = match prefix {
                0 => bytes,
                1 => [b"workspace/".as_slice(), &bytes].concat(),
                _ => [b"runs/".as_slice(), &bytes].concat(),
            };
            if let Ok((path, _)) = parse_entry_path(&bytes) {
                prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
