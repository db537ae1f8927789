//! The root of a box without an image: parts of the host, or of an unpacked root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::argv::RootEntry;
use crate::spec::{BoxSpec, Root};

/// Folders of the host that hold programs and libraries, and no user's files.
const HOST_FOLDERS: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Entries of an unpacked root that the box replaces by its own.
const REPLACED: [&str; 10] =
    ["proc", "dev", "tmp", "run", "var", "sys", "workspace", "harness-state", "home", "root"];

/// Files that are written for every box, so that no account, host or search domain of this host is disclosed.
pub(crate) const MADE_UP_ETC: [&str; 5] =
    ["passwd", "group", "hosts", "nsswitch.conf", "resolv.conf"];

/// Parts of the host's `/etc` that programs need and that hold no secret.
const SHARED_ETC: [&str; 9] = [
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
];

/// The host's own program folders.
pub(crate) fn observe_host_root() -> io::Result<Vec<RootEntry>> {
    let mut entries = Vec::new();
    for name in HOST_FOLDERS {
        entries.extend(observe_entry(Path::new("/"), name)?);
    }
    Ok(entries)
}

/// The entries of an unpacked root file system, `/etc` included.
pub(crate) fn observe_folder_root(root: &Path) -> io::Result<Vec<RootEntry>> {
    let mut names: Vec<String> = fs::read_dir(root)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    let mut entries = Vec::new();
    for name in names.iter().filter(|name| !REPLACED.contains(&name.as_str()) && *name != "etc") {
        entries.extend(observe_entry(root, name)?);
    }
    Ok(entries)
}

fn observe_entry(root: &Path, name: &str) -> io::Result<Option<RootEntry>> {
    let source = root.join(name);
    let dest = Path::new("/").join(name);
    match fs::symlink_metadata(&source) {
        Ok(meta) if meta.is_symlink() => {
            Ok(Some(RootEntry::Link { target: fs::read_link(&source)?, dest }))
        }
        Ok(_) => Ok(Some(RootEntry::Bind { source, dest })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Existing shared parts of `/etc`, as pairs of host path and path in the box. An unpacked root has its own.
pub(crate) fn observe_etc(root: &Root) -> Vec<(PathBuf, PathBuf)> {
    let below = |path: &str| match root {
        Root::Folder(folder) => folder.join(path.trim_start_matches('/')),
        Root::HostUsr | Root::Image(_) => PathBuf::from(path),
    };
    SHARED_ETC
        .iter()
        .map(|path| (below(path), PathBuf::from(path)))
        .filter(|(source, _)| source.exists())
        .collect()
}

pub(crate) fn write_etc(spec: &BoxSpec) -> io::Result<()> {
    let etc = spec.etc_dir();
    fs::create_dir_all(&etc)?;
    for name in MADE_UP_ETC {
        fs::write(etc.join(name), etc_text(name))?;
    }
    Ok(())
}

/// Text of a made-up file: only the box's own user, and name resolution from files alone.
fn etc_text(name: &str) -> &'static str {
    match name {
        "passwd" => {
            "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n\
             forklift:x:1000:1000:agent:/harness-state/home:/bin/bash\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        }
        "group" => "root:x:0:\nforklift:x:1000:\nnogroup:x:65534:\n",
        "hosts" => "127.0.0.1 localhost bottle\n::1 localhost\n",
        "nsswitch.conf" => "passwd: files\ngroup: files\nhosts: files\n",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unpacked_root_lends_its_programs_but_not_its_state() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["usr", "opt", "var", "root", "proc", "etc"] {
            fs::create_dir(root.path().join(name)).expect("made");
        }
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).expect("linked");
        let entries = observe_folder_root(root.path()).expect("read");
        assert_eq!(
            entries,
            [
                RootEntry::Link { target: "usr/bin".into(), dest: "/bin".into() },
                RootEntry::Bind { source: root.path().join("opt"), dest: "/opt".into() },
                RootEntry::Bind { source: root.path().join("usr"), dest: "/usr".into() },
            ]
        );
    }

    #[test]
    fn an_unpacked_root_brings_its_own_certificates() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("etc/ssl/certs")).expect("made");
        fs::write(root.path().join("etc/shadow"), "root:secret").expect("written");
        let etc = observe_etc(&Root::Folder(root.path().to_path_buf()));
        let certs = (root.path().join("etc/ssl/certs"), PathBuf::from("/etc/ssl/certs"));
        assert_eq!(etc, [certs]);
    }

    #[test]
    fn the_made_up_etc_is_written_whole_and_resolves_no_names() {
        let root = tempfile::tempdir().expect("a folder");
        let mut spec = crate::spec::tests::spec();
        spec.box_dir = root.path().to_path_buf();
        write_etc(&spec).expect("written");
        let read = |name: &str| fs::read_to_string(spec.etc_dir().join(name)).expect("a file");
        assert_eq!(read("resolv.conf"), "");
        assert!(read("nsswitch.conf").contains("hosts: files\n"));
        assert_eq!(fs::read_dir(spec.etc_dir()).expect("a folder").count(), MADE_UP_ETC.len());
    }

    #[test]
    fn only_the_boxs_own_user_is_told() {
        assert!(etc_text("passwd").lines().all(|line| {
            ["root:", "forklift:", "nobody:"].iter().any(|user| line.starts_with(user))
        }));
    }
}
