//! The touched-file lists of many workstreams in a few large buffers: one buffer per list would cost more than reading.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::thread;

use super::workstream::{TOUCHED, Workstream};
use super::{DiskError, DiskResult};
use crate::rules::conflict::WorkstreamPaths;

/// Below this, a second thread costs more than it saves.
const WORTH_IT: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct TouchedLists {
    parts: Vec<ListBuffer>,
}

/// Lists read by one thread: their concatenated contents and the range of each.
#[derive(Debug, Default)]
struct ListBuffer {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl TouchedLists {
    /// Reads those of these workstreams; one that has no such file has an empty list.
    pub(crate) fn load(workstreams: &[&Workstream]) -> DiskResult<Self> {
        if workstreams.len() < WORTH_IT {
            return Ok(Self { parts: vec![read_lists(workstreams)?] });
        }
        let (one, other) = workstreams.split_at(workstreams.len() / 2);
        let (one, other) = thread::scope(|scope| {
            let beside = scope.spawn(|| read_lists(other));
            (read_lists(one), beside.join())
        });
        let other = other.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Self { parts: vec![one?, other?] })
    }

    /// The paths of these workstreams, which are those of `load`.
    pub(crate) fn paths<'a>(&'a self, workstreams: &[&'a Workstream]) -> Vec<WorkstreamPaths<'a>> {
        let lists = workstreams.iter().zip(self.iter());
        let paths = lists.map(|(workstream, touched)| WorkstreamPaths {
            id: workstream.meta.id.as_str(),
            touched,
            expected: &workstream.meta.expected_paths,
        });
        paths.collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().flat_map(|part| {
            part.places.iter().map(|place| part.bytes.get(place.clone()).unwrap_or_default())
        })
    }
}

fn read_lists(workstreams: &[&Workstream]) -> DiskResult<ListBuffer> {
    let mut part = ListBuffer::default();
    for workstream in workstreams {
        let (path, start) = (workstream.dir.join(TOUCHED), part.bytes.len());
        match File::open(&path) {
            Ok(file) => {
                // Without a limit the size of each file would be asked for first.
                file.take(u64::MAX)
                    .read_to_end(&mut part.bytes)
                    .map_err(DiskError::io("read", &path))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(DiskError::io("read", &path)(error)),
        }
        part.places.push(start..part.bytes.len());
    }
    Ok(part)
}
