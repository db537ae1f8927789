//! Archives that try to get out of their folder, or to take more than they say.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use crate::archive::{Owners, Unpacking, unpack_archive};
use crate::error::BottleStoreError;
use crate::rules::manifest::ArchiveTotals;

/// An entry of an archive that is written by hand.
struct Raw {
    kind: EntryType,
    name: &'static [u8],
    link: &'static [u8],
    mode: u32,
    content: &'static [u8],
    pax: Vec<(&'static str, &'static [u8])>,
}

fn raw(kind: EntryType, name: &'static [u8]) -> Raw {
    Raw { kind, name, link: b"", mode: 0o644, content: b"", pax: Vec::new() }
}

fn archive(entries: &[Raw]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for Raw { kind, name, link, mode, content, pax } in entries {
        if !pax.is_empty() {
            tar.append_pax_extensions(pax.iter().copied()).unwrap();
        }
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

fn unpack(stream: &[u8], folder: &Path, totals: ArchiveTotals) -> Result<(), BottleStoreError> {
    let own = (host::env::uid(), host::env::gid());
    let owners = Owners { host: own, agent: own };
    let unpacking = Unpacking { from: owners, to: owners, gives_files: false, totals };
    unpack_archive(&mut &*stream, folder, unpacking, &mut |_| {})
}

const ROOM: ArchiveTotals =
    ArchiveTotals { stream_bytes: u64::MAX, entries: 100, file_bytes: 1000, left_out: 0 };

/// Unpacks entries after a workspace, and returns the error; nothing may be outside of the folder.
#[track_caller]
fn refused(entries: Vec<Raw>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (folder, outside) = (dir.path().join("new"), dir.path().join("outside"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "mine").unwrap();
    let mut all = vec![raw(EntryType::Directory, b"workspace/")];
    all.extend(entries);
    let error = unpack(&archive(&all), &folder, ROOM).unwrap_err();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "mine");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    error.to_string()
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in [
        b"/etc/x".as_slice(),
        b"../outside/x",
        b"workspace/../../outside/x",
        b"workspace/..",
        b"other/x",
        b"lock",
        b"saved/mark.json",
        b"./workspace/x",
    ] {
        for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
            let error = refused(vec![Raw { link: b"x", ..raw(kind, name) }]);
            assert!(error.contains("not unpacked"), "{error}");
        }
    }
    let by_pax =
        Raw { pax: vec![("path", b"../outside/x")], ..raw(EntryType::Regular, b"workspace/x") };
    assert!(refused(vec![by_pax]).contains("leads out"));
}

#[test]
fn nothing_is_written_through_a_link() {
    let link = || Raw { link: b"../../outside", ..raw(EntryType::Symlink, b"workspace/out") };
    for name in [b"workspace/out/x".as_slice(), b"workspace/out"] {
        for kind in [EntryType::Regular, EntryType::Directory] {
            refused(vec![link(), raw(kind, name)]);
        }
    }
    let hard = Raw { link: b"workspace/out/secret", ..raw(EntryType::Link, b"workspace/h") };
    refused(vec![link(), hard]);
    let hard = Raw { link: b"workspace/out", ..raw(EntryType::Link, b"workspace/h") };
    refused(vec![link(), hard]);
}

#[test]
fn hard_links_stay_in_their_part() {
    let file = || Raw { content: b"x", ..raw(EntryType::Regular, b"runs") };
    let across = Raw { link: b"runs", ..raw(EntryType::Link, b"workspace/h") };
    assert!(refused(vec![file(), across]).contains("another part"));
    for link in [b"../outside/secret".as_slice(), b"/etc/passwd", b""] {
        refused(vec![Raw { link, ..raw(EntryType::Link, b"workspace/h") }]);
    }
}

#[test]
fn files_of_the_host_are_no_links() {
    let link = Raw { link: b"/etc/shadow", ..raw(EntryType::Symlink, b"record.json") };
    assert!(refused(vec![link]).contains("among the files of the host"));
    let inner = Raw { link: b"../x", ..raw(EntryType::Symlink, b"runs/x") };
    assert!(refused(vec![raw(EntryType::Directory, b"runs"), inner]).contains("of the host"));
}

#[test]
fn devices_and_kinds_that_are_not_written_are_refused() {
    for kind in [
        EntryType::Fifo,
        EntryType::Char,
        EntryType::Block,
        EntryType::Continuous,
        EntryType::GNUSparse,
        EntryType::new(b'V'),
    ] {
        refused(vec![raw(kind, b"workspace/x")]);
    }
}

#[test]
fn rights_of_others_are_refused() {
    for mode in [0o4755, 0o2755, 0o1755, 0o7777] {
        let file = Raw { mode, ..raw(EntryType::Regular, b"workspace/x") };
        assert!(refused(vec![file]).contains("set-user-id"));
    }
}

#[test]
fn what_is_there_is_not_replaced() {
    let file = || Raw { content: b"x", ..raw(EntryType::Regular, b"workspace/x") };
    refused(vec![file(), file()]);
    refused(vec![file(), raw(EntryType::Directory, b"workspace/x")]);
    refused(vec![file(), Raw { link: b"y", ..raw(EntryType::Symlink, b"workspace/x") }]);
    refused(vec![raw(EntryType::Regular, b"workspace/none/x")]);
}

#[test]
fn an_archive_takes_no_more_than_its_manifest_says() {
    let dir = tempfile::tempdir().unwrap();
    let file = |content| Raw { content, ..raw(EntryType::Regular, b"workspace/x") };
    let stream = archive(&[raw(EntryType::Directory, b"workspace"), file(b"0123456789")]);
    let exact = ArchiveTotals { entries: 2, file_bytes: 10, ..ROOM };
    for (number, (entries, file_bytes, is_good)) in
        [(2, 10, true), (1, 10, false), (2, 9, false), (3, 10, false), (2, 11, false)]
            .into_iter()
            .enumerate()
    {
        let folder = dir.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        let done = unpack(&stream, &folder, ArchiveTotals { entries, file_bytes, ..exact });
        assert_eq!(done.is_ok(), is_good, "{entries} {file_bytes} {done:?}");
    }
    // A hole costs nothing, and its list cannot claim more data than the file has.
    let sparse = |map: &'static [u8], size: &'static [u8]| Raw {
        content: map,
        pax: vec![("GNU.sparse.realsize", size)],
        ..raw(EntryType::Regular, b"workspace/x")
    };
    refused(vec![sparse(b"1\n0\n99999999\n", b"99999999")]);
    refused(vec![sparse(b"1\n5\n", b"3")]);
    refused(vec![sparse(b"", b"x")]);
}

#[test]
fn a_folder_that_is_a_link_is_not_unpacked_into() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let stream = archive(&[raw(EntryType::Directory, b"workspace")]);
    unpack(&stream, &link, ArchiveTotals { entries: 1, file_bytes: 0, ..ROOM }).unwrap_err();
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn bytes_that_are_no_archive_are_an_error_and_nothing_outside(
        cut in 0..3000_usize,
        flips in prop::collection::vec((0..3000_usize, any::<u8>()), 0..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        fs::create_dir(&folder).unwrap();
        let mut stream = archive(&[
            raw(EntryType::Directory, b"workspace"),
            Raw { content: b"content", pax: vec![("mtime", b"5.25")], ..raw(EntryType::Regular, b"workspace/x") },
            Raw { link: b"workspace/x", ..raw(EntryType::Link, b"workspace/y") },
            Raw { link: b"x", ..raw(EntryType::Symlink, b"workspace/z") },
        ]);
        for (at, byte) in flips {
            let length = stream.len();
            stream[at % length] ^= byte;
        }
        stream.truncate(cut.max(100));
        stream.flush().unwrap();
        drop(unpack(&stream, &folder, ROOM));
        prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
