//! Unpacking: an archive of an agent's tree, into a new folder. Whatever it says, nothing is made outside of the folder, nothing
//! in it runs by another right than its owner's, and it takes no more room than its manifest says.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use host::file::{EntryAttributes, FileError, TreeBuilder};
use tar::{Archive, Entry, EntryType};

use super::sparse::{DataRange, read_map};
use super::{Owners, parse_pax_time};
use crate::error::BottleStoreError;
use crate::rules::entry_path::{EntryPart, parse_entry_path};
use crate::rules::manifest::ArchiveTotals;

const BUFFER: usize = 256 << 10;

/// Users and bounds by which an archive is unpacked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacking {
    /// Users of the host that packed it.
    pub(crate) from: Owners,
    /// Users of this host.
    pub(crate) to: Owners,
    /// True if this process may give files to other users.
    pub(crate) gives_files: bool,
    pub(crate) totals: ArchiveTotals,
}

/// Unpacks an archive into a folder that is empty.
pub(crate) fn unpack_archive(
    source: &mut dyn Read,
    folder: &Path,
    unpacking: Unpacking,
    note: &mut dyn FnMut(u64),
) -> Result<(), BottleStoreError> {
    let tree = TreeBuilder::new(folder)?;
    let used = ArchiveTotals::default();
    let mut unpacker =
        Unpacker { tree, unpacking, used, later: Vec::new(), buffer: vec![0; BUFFER] };
    let mut archive = Archive::new(source);
    for entry in archive.entries().map_err(broken)? {
        unpacker.entry(entry.map_err(broken)?)?;
        note(unpacker.used.entries);
    }
    unpacker.finish()
}

/// The stream ends or fails in the middle, or is no archive.
fn broken(source: io::Error) -> BottleStoreError {
    // A damaged chunk comes through the reader, with its own error.
    match source.kind() {
        io::ErrorKind::Other => match source.downcast::<BottleStoreError>() {
            Ok(error) => error,
            Err(source) => BottleStoreError::Archive { why: source.to_string() },
        },
        _ => BottleStoreError::Archive { why: source.to_string() },
    }
}

struct Unpacker {
    tree: TreeBuilder,
    unpacking: Unpacking,
    used: ArchiveTotals,
    /// Folders, which get their modes and times once everything is in them.
    later: Vec<(PathBuf, EntryAttributes)>,
    buffer: Vec<u8>,
}

/// Properties of an entry that stand in its extended header.
#[derive(Default)]
struct ExtendedHeader {
    modified: Option<(i64, u32)>,
    real_size: Option<u64>,
}

impl Unpacker {
    fn entry(&mut self, mut entry: Entry<'_, &mut dyn Read>) -> Result<(), BottleStoreError> {
        let name = entry.path_bytes().into_owned();
        let hostile = |why: &'static str| BottleStoreError::Hostile {
            path: String::from_utf8_lossy(&name).into_owned(),
            why,
        };
        let (path, part) = parse_entry_path(&name).map_err(hostile)?;
        self.count_entry()?;
        let extended = read_extended(&mut entry).map_err(hostile)?;
        let attributes = self.attributes(&entry, &extended, part).map_err(hostile)?;
        let link = entry.link_name_bytes().map(std::borrow::Cow::into_owned);
        match entry.header().entry_type() {
            EntryType::Directory => {
                self.tree.create_dir(&path)?;
                self.later.push((path, attributes));
                return Ok(());
            }
            EntryType::Regular => {
                let mut file = self.tree.create_file(&path)?;
                self.content(&mut entry, &mut file, extended.real_size)?;
            }
            EntryType::Symlink => {
                if matches!(part, EntryPart::Host(_)) {
                    return Err(hostile("it is a link among the files of the host"));
                }
                let target = link.filter(|it| !it.is_empty() && !it.contains(&0));
                let target = target.ok_or_else(|| hostile("it is a link to nothing"))?;
                self.tree.create_symlink(&path, OsStr::from_bytes(&target))?;
            }
            EntryType::Link => {
                let target = link.ok_or_else(|| hostile("it is a link to nothing"))?;
                match parse_entry_path(&target) {
                    Ok((target, its_part)) if its_part == part => {
                        // The file keeps the properties that it got under its first name.
                        return Ok(self.tree.create_hard_link(&path, &target)?);
                    }
                    Ok(_) => return Err(hostile("it is a link to another part of the bottle")),
                    Err(_) => return Err(hostile("it is a link that leads out of the folder")),
                }
            }
            EntryType::Fifo | EntryType::Char | EntryType::Block => {
                return Err(hostile("it is a device or a FIFO"));
            }
            _ => return Err(hostile("it is of a kind that is not written")),
        }
        Ok(self.tree.set_attributes(&path, &attributes)?)
    }

    fn count_entry(&mut self) -> Result<(), BottleStoreError> {
        self.used.entries += 1;
        match self.used.entries > self.unpacking.totals.entries {
            true => Err(BottleStoreError::Archive { why: "it has more entries".to_owned() }),
            false => Ok(()),
        }
    }

    fn attributes(
        &self,
        entry: &Entry<'_, &mut dyn Read>,
        extended: &ExtendedHeader,
        part: EntryPart,
    ) -> Result<EntryAttributes, &'static str> {
        let header = entry.header();
        let number = |value: io::Result<u64>| {
            value.ok().and_then(|it| u32::try_from(it).ok()).ok_or("its header is wrong")
        };
        let mode = header.mode().ok().ok_or("its header is wrong")?;
        if mode & 0o7000 != 0 {
            return Err("it has set-user-id, set-group-id or the sticky bit");
        }
        let uid = number(header.uid())?;
        number(header.gid())?;
        let Unpacking { from, to, gives_files, .. } = self.unpacking;
        // A user of the other host is nobody in particular here: what is not the host's own is the agent's.
        let is_own =
            uid == from.host.0 && (uid != from.agent.0 || matches!(part, EntryPart::Host(_)));
        let owner = gives_files.then_some(if is_own { to.host } else { to.agent });
        let seconds = header.mtime().ok().and_then(|it| i64::try_from(it).ok());
        let modified = extended.modified.or(seconds.map(|seconds| (seconds, 0)));
        Ok(EntryAttributes { mode, owner, modified: modified.ok_or("its time is wrong")? })
    }

    fn content(
        &mut self,
        entry: &mut Entry<'_, &mut dyn Read>,
        file: &mut File,
        real_size: Option<u64>,
    ) -> Result<(), BottleStoreError> {
        let failed = |error: io::Error| BottleStoreError::Archive { why: error.to_string() };
        let (ranges, size) = match real_size {
            Some(size) => (read_map(entry, size).map_err(broken)?, size),
            None => {
                let size = entry.size();
                (vec![DataRange { start: 0, bytes: size }], size)
            }
        };
        let data: u64 = ranges.iter().map(|range| range.bytes).sum();
        self.used.file_bytes = self.used.file_bytes.saturating_add(data);
        if self.used.file_bytes > self.unpacking.totals.file_bytes {
            return Err(BottleStoreError::Archive { why: "it has more bytes".to_owned() });
        }
        for range in &ranges {
            file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
            let mut left = range.bytes;
            while left > 0 {
                let wanted = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
                entry.read_exact(&mut self.buffer[..wanted]).map_err(broken)?;
                file.write_all(&self.buffer[..wanted]).map_err(unwritten)?;
                left -= wanted as u64;
            }
        }
        if real_size.is_some() {
            file.set_len(size).map_err(unwritten)?;
        }
        Ok(())
    }

    /// Gives the folders their properties, inner ones first, and brings everything to disk.
    fn finish(mut self) -> Result<(), BottleStoreError> {
        for (path, attributes) in std::mem::take(&mut self.later).iter().rev() {
            self.tree.set_attributes(path, attributes)?;
        }
        let (used, totals) = (self.used, self.unpacking.totals);
        if (used.entries, used.file_bytes) != (totals.entries, totals.file_bytes) {
            return Err(BottleStoreError::Archive { why: "it ends before its end".to_owned() });
        }
        Ok(self.tree.sync()?)
    }
}

/// The disk of this host refuses the content.
fn unwritten(source: io::Error) -> BottleStoreError {
    BottleStoreError::File(FileError::io("write to", Path::new("the bottle's new folder"))(source))
}

fn read_extended(entry: &mut Entry<'_, &mut dyn Read>) -> Result<ExtendedHeader, &'static str> {
    const WRONG: &str = "its extended header is wrong";
    let mut found = ExtendedHeader::default();
    let Some(records) = entry.pax_extensions().ok().ok_or(WRONG)? else { return Ok(found) };
    for record in records {
        let record = record.ok().ok_or(WRONG)?;
        match record.key_bytes() {
            b"mtime" => {
                let text = record.value().ok().ok_or(WRONG)?;
                found.modified = Some(parse_pax_time(text).ok_or("its time is wrong")?);
            }
            b"GNU.sparse.realsize" => {
                let text = record.value().ok().ok_or(WRONG)?;
                found.real_size = Some(text.parse().ok().ok_or(WRONG)?);
            }
            _ => {}
        }
    }
    Ok(found)
}
