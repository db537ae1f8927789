//! The id of a conversation at a terminal. Its agent prints no id, so the host chooses one where the agent allows it.

use model::digest::{hex, sha256_bytes};
use model::id::RunId;

/// A version 4 UUID that is derived from the run's id.
pub(crate) fn session_of(run: &RunId) -> String {
    let mut bytes = sha256_bytes(run.as_str().as_bytes());
    bytes[6] = 0x40 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    let hex = hex(&bytes[..16]);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::ProjectName;

    #[test]
    fn every_run_has_its_own_and_always_the_same() {
        let run = |attempt| {
            let project = ProjectName::from_folder("worker");
            RunId::new(&project, "20261115_080000", attempt).expect("an id")
        };
        let session = session_of(&run(1));
        assert_eq!(session, session_of(&run(1)));
        assert_ne!(session, session_of(&run(2)));
        assert_eq!((session.len(), &session[14..15]), (36, "4"));
        assert!("89ab".contains(&session[19..20]), "{session}");
    }
}
