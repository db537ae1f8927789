//! Writing: the parts of a bottle in an order that is the same for the same tree, so that unchanged parts give the same stream.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use host::file::{FileError, FoundEntry, TreeEntryKind, read_tree};
use tar::{Builder, EntryType, Header};

use super::sparse::{BLOCK, DataRange, data_ranges, render_map};
use super::{AGENT_PARTS, HOST_PARTS, pax_time};
use crate::error::BottleStoreError;
use crate::rules::manifest::ArchiveTotals;

/// Bytes of a name that fit into the header.
const SHORT_NAME: usize = 99;
/// Smallest file whose holes are looked for.
const SPARSE_MIN: u64 = 64 << 10;
const BUFFER: usize = 256 << 10;

/// Writes the parts of a bottle. A failure of `out` comes as its own error.
pub(crate) fn write_archive<W: Write>(
    folder: &Path,
    out: W,
    note: &mut dyn FnMut(&ArchiveTotals),
) -> Result<ArchiveTotals, BottleStoreError> {
    let mut packer = Packer {
        tar: Builder::new(out),
        totals: ArchiveTotals::default(),
        buffer: vec![0; BUFFER],
    };
    for part in HOST_PARTS.iter().chain(&AGENT_PARTS) {
        let root = folder.join(part);
        if root.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            continue;
        }
        // The names of one file in different parts would link what is apart on the other host.
        let mut names = HashMap::new();
        read_tree(&root, |entry| {
            let name = match entry.path.as_os_str().is_empty() {
                true => PathBuf::from(part),
                false => Path::new(part).join(entry.path),
            };
            packer.entry(&name, entry, &mut names, &root)?;
            note(&packer.totals);
            Ok::<_, BottleStoreError>(())
        })?;
    }
    packer.tar.finish().map_err(lost_sink)?;
    Ok(packer.totals)
}

struct Packer<W: Write> {
    tar: Builder<W>,
    totals: ArchiveTotals,
    buffer: Vec<u8>,
}

/// A failure of the sink, whose own error is told by whoever gave it.
fn lost_sink(source: io::Error) -> BottleStoreError {
    BottleStoreError::Archive { why: source.to_string() }
}

impl<W: Write> Packer<W> {
    fn entry(
        &mut self,
        name: &Path,
        entry: FoundEntry<'_>,
        names: &mut HashMap<(u64, u64), PathBuf>,
        root: &Path,
    ) -> Result<(), BottleStoreError> {
        let FoundEntry { kind, mode, uid, gid, modified, links, identity, path } = entry;
        let mut header = Header::new_gnu();
        header.set_mode(mode & 0o777);
        header.set_uid(u64::from(uid));
        header.set_gid(u64::from(gid));
        header.set_mtime(u64::try_from(modified.0).unwrap_or_default());
        header.set_size(0);
        let pax = vec![("mtime", pax_time(modified))];
        if links > 1 && matches!(kind, TreeEntryKind::File { .. }) {
            if let Some(first) = names.get(&identity) {
                header.set_entry_type(EntryType::Link);
                self.set_link(&mut header, first.as_os_str().as_bytes())?;
                return self.head(header, name, &pax);
            }
            names.insert(identity, name.to_path_buf());
        }
        match kind {
            TreeEntryKind::Dir => {
                header.set_entry_type(EntryType::Directory);
                self.head(header, name, &pax)
            }
            TreeEntryKind::Symlink { target } => {
                header.set_entry_type(EntryType::Symlink);
                self.set_link(&mut header, target.as_bytes())?;
                self.head(header, name, &pax)
            }
            TreeEntryKind::Special => {
                self.totals.left_out += 1;
                Ok(())
            }
            TreeEntryKind::File { file, size, taken } => {
                header.set_entry_type(EntryType::Regular);
                let full =
                    if path.as_os_str().is_empty() { root.to_path_buf() } else { root.join(path) };
                let unread = FileError::io("read", &full);
                let ranges = match size >= SPARSE_MIN && taken < size {
                    true => data_ranges(&file, size).map_err(unread)?,
                    false => vec![DataRange { start: 0, bytes: size }],
                };
                self.file(header, name, pax, (file, size, &full), &ranges)
            }
        }
    }

    fn file(
        &mut self,
        mut header: Header,
        name: &Path,
        mut pax: Vec<(&'static str, String)>,
        (file, size, full): (File, u64, &Path),
        ranges: &[DataRange],
    ) -> Result<(), BottleStoreError> {
        let data: u64 = ranges.iter().map(|range| range.bytes).sum();
        self.totals.file_bytes += data;
        let mut map = Vec::new();
        if data < size {
            for (key, value) in [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0")] {
                pax.push((key, value.to_owned()));
            }
            pax.push(("GNU.sparse.realsize", size.to_string()));
            map = render_map(ranges);
        }
        header.set_size(map.len() as u64 + data);
        self.head(header, name, &pax)?;
        let out = self.tar.get_mut();
        out.write_all(&map).map_err(lost_sink)?;
        let mut file = file;
        for range in ranges {
            if range.start > 0 {
                let at = file.seek(SeekFrom::Start(range.start));
                at.map_err(FileError::io("read", full))?;
            }
            copy(&mut file, out, range.bytes, &mut self.buffer, full)?;
        }
        let padding = (map.len() as u64 + data).next_multiple_of(BLOCK) - (map.len() as u64 + data);
        out.write_all(&[0; BLOCK as usize][..padding as usize]).map_err(lost_sink)
    }

    fn head(
        &mut self,
        mut header: Header,
        name: &Path,
        pax: &[(&'static str, String)],
    ) -> Result<(), BottleStoreError> {
        let bytes = name.as_os_str().as_bytes();
        match bytes.len() <= SHORT_NAME {
            true => header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes),
            false => self.long(EntryType::GNULongName, bytes)?,
        }
        let records = pax.iter().map(|(key, value)| (*key, value.as_bytes()));
        self.tar.append_pax_extensions(records).map_err(lost_sink)?;
        header.set_cksum();
        self.tar.get_mut().write_all(header.as_bytes()).map_err(lost_sink)?;
        self.totals.entries += 1;
        Ok(())
    }

    fn set_link(&mut self, header: &mut Header, target: &[u8]) -> Result<(), BottleStoreError> {
        match target.len() <= SHORT_NAME {
            true => header.as_old_mut().linkname[..target.len()].copy_from_slice(target),
            false => self.long(EntryType::GNULongLink, target)?,
        }
        Ok(())
    }

    /// A name that does not fit into a header. Not in an extended header, whose records end with line breaks.
    fn long(&mut self, kind: EntryType, bytes: &[u8]) -> Result<(), BottleStoreError> {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64 + 1);
        header.set_cksum();
        self.tar.append(&header, [bytes, b"\0"].concat().as_slice()).map_err(lost_sink)
    }
}

/// Copies so many bytes of a file. One that has become shorter is an error.
fn copy(
    file: &mut File,
    out: &mut impl Write,
    mut left: u64,
    buffer: &mut [u8],
    full: &Path,
) -> Result<(), BottleStoreError> {
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(buffer.len()).min(buffer.len());
        let read = file.read(&mut buffer[..wanted]).map_err(FileError::io("read", full))?;
        if read == 0 {
            return Err(BottleStoreError::Changed { path: full.to_path_buf() });
        }
        out.write_all(&buffer[..read]).map_err(lost_sink)?;
        left -= read as u64;
    }
    Ok(())
}
