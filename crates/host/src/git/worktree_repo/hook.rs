//! Location of the hooks of the user's repository. Nothing here runs one.

use super::WorktreeRepo;
use crate::git::GitError;
use crate::git::call::{GitOutput, argv};

impl WorktreeRepo {
    /// Returns the user's `core.hooksPath`, if set. Our own calls disable hooks by the same setting; that
    /// value is ignored.
    pub async fn hooks_path(&self) -> Result<Option<String>, GitError> {
        let argv = argv("config -z --show-scope --get-all core.hooksPath");
        read_own(&self.git().call(argv).await?)
    }
}

/// Reads alternating scopes and values; the last value counts. Status 1 means that there is none.
fn read_own(answer: &GitOutput) -> Result<Option<String>, GitError> {
    answer.found()?;
    let mut fields = answer.stdout.split(|&byte| byte == 0);
    let mut own = None;
    while let (Some(scope), Some(value)) = (fields.next(), fields.next()) {
        if scope != b"command" {
            own = Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::call::tests::answer;

    #[test]
    fn our_own_setting_is_not_the_persons() {
        let ours = answer(0, b"command\0/dev/null\0");
        assert_eq!(read_own(&ours).unwrap(), None);
        let theirs = answer(0, b"global\0/hooks\0local\0.husky\0command\0/dev/null\0");
        assert_eq!(read_own(&theirs).unwrap().as_deref(), Some(".husky"));
        assert_eq!(read_own(&answer(1, b"")).unwrap(), None);
    }
}
