//! Folders and entries that may not be lent, each with its reason.

use std::path::Path;

use super::super::mount::{EntryKind, judge_entry, judge_place};

fn place(path: &str) -> String {
    let why = judge_place(Path::new(path), Some(Path::new("/home/ann")));
    format!("{path}: {}", why.unwrap_or_else(|| "lent".to_owned()))
}

#[test]
fn places() {
    let paths = [
        "/",
        "/etc",
        "/etc/ssl/certs",
        "/home",
        "/home/ann",
        "/home/ann/data",
        "/home/bob",
        "/root",
        "/run",
        "/run/user/1000",
        "/var",
        "/var/lib/data",
        "/var/run",
        "/proc/self",
        "/sys/fs",
        "/dev/shm",
        "/boot",
        "/srv/data",
        "/usr/share",
    ];
    insta::assert_snapshot!(paths.map(place).join("\n"), @"
    /: it is one of the system's own folders
    /etc: it is one of the system's own folders
    /etc/ssl/certs: lent
    /home: it is one of the system's own folders
    /home/ann: it holds your home
    /home/ann/data: lent
    /home/bob: lent
    /root: it is one of the system's own folders
    /run: it is one of the system's own folders
    /run/user/1000: it is the system's, not a folder of files
    /var: it is one of the system's own folders
    /var/lib/data: lent
    /var/run: it is one of the system's own folders
    /proc/self: it is the system's, not a folder of files
    /sys/fs: it is the system's, not a folder of files
    /dev/shm: it is the system's, not a folder of files
    /boot: it is one of the system's own folders
    /srv/data: lent
    /usr/share: lent
    ");
}

#[test]
fn without_a_home_only_the_system_counts() {
    assert_eq!(judge_place(Path::new("/home/ann"), None), None);
}

fn entry(path: &str, kind: EntryKind) -> String {
    let why = judge_entry(Path::new(path), kind);
    format!("{path} ({kind:?}): {}", why.unwrap_or("lent"))
}

#[test]
fn files() {
    let names = [
        "notes.txt",
        "id_rsa",
        "id_rsa.pub",
        "id_ed25519",
        "server.pem",
        "SERVER.PEM",
        "key",
        "my.key",
        "keys.txt",
        ".env",
        ".env.production",
        ".envrc",
        "credentials",
        "credentials.json",
        "shadow",
        "forge-token",
        "vault.kdbx",
        ".netrc",
        ".npmrc",
        ".git-credentials",
    ];
    insta::assert_snapshot!(names.map(|name| entry(name, EntryKind::File)).join("\n"), @"
    notes.txt (File): lent
    id_rsa (File): is where people keep secrets
    id_rsa.pub (File): lent
    id_ed25519 (File): is where people keep secrets
    server.pem (File): is where people keep secrets
    SERVER.PEM (File): is where people keep secrets
    key (File): lent
    my.key (File): is where people keep secrets
    keys.txt (File): lent
    .env (File): is where people keep secrets
    .env.production (File): is where people keep secrets
    .envrc (File): lent
    credentials (File): is where people keep secrets
    credentials.json (File): is where people keep secrets
    shadow (File): is where people keep secrets
    forge-token (File): is where people keep secrets
    vault.kdbx (File): is where people keep secrets
    .netrc (File): is where people keep secrets
    .npmrc (File): is where people keep secrets
    .git-credentials (File): is where people keep secrets
    ");
}

#[test]
fn folders() {
    let names = ["src", ".ssh", ".aws", ".kube", ".docker", "certs.pem", "my.key", ".env", ".git"];
    insta::assert_snapshot!(names.map(|name| entry(name, EntryKind::Folder)).join("\n"), @"
    src (Folder): lent
    .ssh (Folder): is where people keep secrets
    .aws (Folder): is where people keep secrets
    .kube (Folder): is where people keep secrets
    .docker (Folder): is where people keep secrets
    certs.pem (Folder): lent
    my.key (Folder): lent
    .env (Folder): is where people keep secrets
    .git (Folder): lent
    ");
}

#[test]
fn other_kinds() {
    let all = [
        entry("docker.sock", EntryKind::Socket),
        entry("pipe", EntryKind::Other),
        entry(".ssh", EntryKind::Link),
        entry("id_rsa", EntryKind::Link),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    docker.sock (Socket): is a socket
    pipe (Other): is a device or a pipe
    .ssh (Link): lent
    id_rsa (Link): lent
    ");
}
