//! Host folders that a box may see: none with a secret, a socket or a device.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    Socket,
    Other,
}

/// Folders of the system, which are never mounted whole.
const NEVER: [&str; 11] =
    ["/", "/etc", "/home", "/root", "/run", "/var", "/var/run", "/proc", "/sys", "/dev", "/boot"];

/// Usual names of files and folders with secrets.
const SECRET_NAMES: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".env",
    "credentials",
    "credentials.json",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "shadow",
    "forge-token",
    "opencode.env",
];

const SECRET_ENDINGS: [&str; 5] = [".pem", ".key", ".p12", ".pfx", ".kdbx"];

/// Reason against mounting a folder, by its path alone; `home` is the user's.
pub(crate) fn judge_place(path: &Path, home: Option<&Path>) -> Option<String> {
    if NEVER.iter().any(|never| path == Path::new(never)) {
        return Some("it is one of the system's own folders".to_owned());
    }
    if home.is_some_and(|home| home.starts_with(path)) {
        return Some("it holds your home".to_owned());
    }
    let of_system = ["/proc", "/sys", "/dev", "/run"];
    of_system
        .iter()
        .any(|folder| path.starts_with(folder))
        .then(|| "it is the system's, not a folder of files".to_owned())
}

/// Reason against mounting one entry below it.
pub(crate) fn judge_entry(path: &Path, kind: EntryKind) -> Option<&'static str> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    match kind {
        EntryKind::Socket => Some("is a socket"),
        EntryKind::Other => Some("is a device or a pipe"),
        // In the box a link resolves to the box's files, not to the host's.
        EntryKind::Link => None,
        EntryKind::File | EntryKind::Folder => {
            let is_secret = SECRET_NAMES.contains(&name.as_str())
                || name.starts_with(".env.")
                || (kind == EntryKind::File && SECRET_ENDINGS.iter().any(|it| name.ends_with(it)));
            is_secret.then_some("is where people keep secrets")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_system_folders_are_not_lent() {
        let home = Some(Path::new("/home/ann"));
        for path in ["/", "/etc", "/home", "/home/ann", "/run/user", "/proc/self"] {
            assert!(judge_place(Path::new(path), home).is_some(), "{path}");
        }
        for path in ["/srv/data", "/home/ann/data", "/usr/share/dict"] {
            assert!(judge_place(Path::new(path), home).is_none(), "{path}");
        }
    }

    #[test]
    fn secrets_and_sockets_are_known_by_name_and_kind() {
        let check = |path: &str, kind, refused: bool| {
            assert_eq!(judge_entry(Path::new(path), kind).is_some(), refused, "{path}");
        };
        check("/d/.ssh", EntryKind::Folder, true);
        check("/d/.env.local", EntryKind::File, true);
        check("/d/server.KEY", EntryKind::File, true);
        check("/d/docker.sock", EntryKind::Socket, true);
        check("/d/pipe", EntryKind::Other, true);
        check("/d/out", EntryKind::Link, false);
        check("/d/words.txt", EntryKind::File, false);
        check("/d/monkey", EntryKind::File, false);
    }
}
