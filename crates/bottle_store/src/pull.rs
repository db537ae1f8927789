//! Pulling: the head is raised to the new claim, and its manifest unpacked into a new folder. If it has damage, the manifest
//! before it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::archive::{Owners, Unpacking, unpack_archive};
use crate::chunk::CHUNK_MAX;
use crate::error::BottleStoreError;
use crate::known::{FolderMark, store_manifest};
use crate::rules::garbage::ChunkRef;
use crate::rules::head::{BottleClaim, BottleId, HeadMover, HeadState, judge_move};
use crate::rules::manifest::{ArchiveTotals, Manifest};
use crate::store::{BottleStore, Transfer, allow};

/// Chunks that are fetched at once, and ahead of the one that is unpacked.
const FETCHERS: usize = 4;
const AHEAD: usize = 8;
/// Room that stays free beside a bottle.
const SPARE_BYTES: u64 = 64 << 20;

/// A bottle that is wanted on this host.
#[derive(Debug, Clone, Copy)]
pub struct PullOptions<'a> {
    pub id: &'a BottleId,
    /// Its name on this host.
    pub slug: &'a str,
    /// The claim under which it is worked on; `None` for a person who works by hand.
    pub claim: Option<BottleClaim>,
    /// The folder that appears, which is not there yet.
    pub folder: &'a Path,
    pub owners: Owners,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledBottle {
    /// The manifest that was unpacked.
    pub manifest: String,
    pub generation: u64,
    pub saved_at: jiff::Timestamp,
    /// Why the newest one was not.
    pub damage: Option<String>,
}

impl BottleStore {
    /// Pulls a bottle into a new folder, which appears whole. `finish` may change the folder before it does.
    pub fn pull<E: From<BottleStoreError>>(
        &self,
        request: PullOptions<'_>,
        note: &(dyn Fn(Transfer) + Sync),
        finish: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PulledBottle, E> {
        self.prove_key()?;
        let PullOptions { id, folder, .. } = request;
        let place = id.folder();
        let head = self.raise(&place, request.slug, request.claim, None)?;
        let draft = draft_of(folder)?;
        let unpacked = self.unpack_newest(&place, &head, &draft, request.owners, note);
        let done = unpacked.map_err(E::from).and_then(|(name, manifest, damage)| {
            let generation = manifest.generation;
            if damage.is_some() {
                // The next freeze follows what was unpacked, and trusts nothing that is there.
                let to = Some((name.as_str(), generation));
                self.raise(&place, request.slug, request.claim, to)?;
            }
            let rewrites = damage.is_some();
            let manifest_name = Some(name.clone());
            let mark = FolderMark {
                manifest: manifest_name,
                generation,
                rewrites,
                ..FolderMark::default()
            };
            mark.store(&draft)?;
            store_manifest(&draft, &name, &manifest)?;
            finish(&draft)?;
            let renamed = std::fs::rename(&draft, folder);
            let failed = host::file::FileError::io("move a bottle to", folder);
            renamed.map_err(failed).map_err(BottleStoreError::from)?;
            Ok(PulledBottle { manifest: name, generation, saved_at: manifest.saved_at, damage })
        });
        if done.is_err() {
            // The reason of the failure matters more than what is left of it.
            drop(host::file::remove_tree_safely(&draft));
        }
        done
    }

    /// Raises the head of a bottle to a claim, so that an older one does not move it any more.
    pub fn raise_head(
        &self,
        id: &BottleId,
        slug: &str,
        claim: Option<BottleClaim>,
    ) -> Result<HeadState, BottleStoreError> {
        self.prove_key()?;
        self.raise(&id.folder(), slug, claim, None)
    }

    /// Raises the head to a claim; with a manifest, moves it there.
    fn raise(
        &self,
        place: &str,
        slug: &str,
        claim: Option<BottleClaim>,
        to: Option<(&str, u64)>,
    ) -> Result<HeadState, BottleStoreError> {
        loop {
            let (head, version) =
                self.load_head(place)?.ok_or_else(|| self.missing(&format!("{place}head")))?;
            let mover = HeadMover { claim, bases: &[&head.manifest] };
            let claim = allow(slug, judge_move(Some(&head), mover))?;
            let (manifest, generation) = match to {
                Some((name, generation)) => (name.to_owned(), generation),
                None => (head.manifest.clone(), head.generation),
            };
            let raised = HeadState { manifest, generation, claim, ..head.clone() };
            if raised == head || self.replace_head(place, &raised, Some(&version))? {
                return Ok(raised);
            }
        }
    }

    /// Unpacks the newest manifest that is whole.
    fn unpack_newest(
        &self,
        place: &str,
        head: &HeadState,
        draft: &Path,
        owners: Owners,
        note: &(dyn Fn(Transfer) + Sync),
    ) -> Result<(String, Manifest, Option<String>), BottleStoreError> {
        let (mut name, mut first) = (head.manifest.clone(), None);
        loop {
            let loaded = self.load_manifest(place, &name);
            let previous = loaded.as_ref().ok().and_then(|it| it.previous.clone());
            let unpacked = loaded.and_then(|manifest| {
                host::file::remove_tree_safely(draft)?;
                host::file::create_dir_exclusive(draft)?;
                self.unpack(&manifest, draft, owners, note)?;
                Ok(manifest)
            });
            let error = match unpacked {
                Ok(manifest) => return Ok((name, manifest, first)),
                Err(error) if error.is_damage() => error,
                Err(error) => return Err(error),
            };
            first.get_or_insert_with(|| model::error_chain(&error));
            let previous = previous.or_else(|| self.name_before(place, &name));
            name = previous.ok_or(error)?;
        }
    }

    /// The manifest before one that cannot be read, by its number.
    fn name_before(&self, place: &str, name: &str) -> Option<String> {
        let names = self.backend.list(place).ok()?;
        let names = names.iter().filter_map(|it| it.name.strip_prefix(place));
        names.filter(|other| *other != "head" && *other < name).max().map(str::to_owned)
    }

    fn unpack(
        &self,
        manifest: &Manifest,
        draft: &Path,
        to: Owners,
        note: &(dyn Fn(Transfer) + Sync),
    ) -> Result<(), BottleStoreError> {
        let totals = manifest.totals;
        let free = host::file::free_space(draft)?;
        let needed = totals.file_bytes.saturating_add(SPARE_BYTES);
        if free < needed {
            return Err(BottleStoreError::NoRoom { path: draft.to_path_buf(), free, needed });
        }
        let gives_files = host::env::uid() == 0;
        let unpacking = Unpacking { from: manifest.owners, to, gives_files, totals };
        let in_all = manifest.chunks.len() as u64;
        let fetch =
            Fetch { store: self, manifest, state: Mutex::default(), changed: Condvar::new() };
        thread::scope(|scope| {
            for _ in 0..FETCHERS {
                scope.spawn(|| fetch.fetch_all());
            }
            let mut reader = ChunkReader { fetch: &fetch, index: 0, chunk: Vec::new(), at: 0 };
            let unpacked = unpack_archive(&mut reader, draft, unpacking, &mut |entries| {
                if entries.is_multiple_of(256) {
                    let (chunks, chunks_in_all) = (fetch.state().taken as u64, Some(in_all));
                    note(Transfer { entries, chunks, chunks_in_all, ..Transfer::default() });
                }
            });
            // What follows the end of an archive has to be there too, or the chunks were not those of the manifest.
            let rest = unpacked.and_then(|()| reader.drain(totals));
            fetch.state().is_over = true;
            fetch.changed.notify_all();
            rest
        })
    }

    fn fetch_chunk(&self, chunk: &ChunkRef) -> Result<Vec<u8>, BottleStoreError> {
        let object = chunk.object();
        let (sealed, _) = self.backend.get(&object)?.ok_or_else(|| self.missing(&object))?;
        let most = usize::try_from(chunk.bytes).unwrap_or(CHUNK_MAX).min(CHUNK_MAX);
        let content = self.open_sealed(&object, &sealed, most)?;
        match content.len() == most && self.key.name(&content) == chunk.hash {
            true => Ok(content),
            false => Err(self.damaged(&object, "its content has another hash".to_owned())),
        }
    }
}

/// A name beside the folder, which is none of a bottle.
fn draft_of(folder: &Path) -> Result<PathBuf, BottleStoreError> {
    let suffix = model::digest::hex(&host::random::bytes::<4>()?);
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(folder.with_file_name(format!(".pull-{name}-{suffix}")))
}

/// Chunks on their way, in order.
struct Fetch<'a> {
    store: &'a BottleStore,
    manifest: &'a Manifest,
    state: Mutex<FetchState>,
    changed: Condvar,
}

#[derive(Default)]
struct FetchState {
    /// The next chunk to ask for.
    next: usize,
    /// Chunks that were unpacked.
    taken: usize,
    ready: BTreeMap<usize, Result<Vec<u8>, BottleStoreError>>,
    is_over: bool,
}

impl Fetch<'_> {
    fn fetch_all(&self) {
        loop {
            let mut state = self.state();
            while !state.is_over && state.next >= state.taken + AHEAD {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let index = state.next;
            let Some(chunk) = self.manifest.chunks.get(index).filter(|_| !state.is_over) else {
                return;
            };
            state.next += 1;
            drop(state);
            let fetched = self.store.fetch_chunk(chunk);
            self.state().ready.insert(index, fetched);
            self.changed.notify_all();
        }
    }

    /// Waits for a chunk; `None` after the last one.
    fn take(&self, index: usize) -> Option<Result<Vec<u8>, BottleStoreError>> {
        if index >= self.manifest.chunks.len() {
            return None;
        }
        let mut state = self.state();
        loop {
            if let Some(found) = state.ready.remove(&index) {
                state.taken = index + 1;
                self.changed.notify_all();
                return Some(found);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, FetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of a manifest.
struct ChunkReader<'a> {
    fetch: &'a Fetch<'a>,
    index: usize,
    chunk: Vec<u8>,
    at: usize,
}

impl ChunkReader<'_> {
    /// Reads what is left, and compares the length of the whole.
    fn drain(&mut self, totals: ArchiveTotals) -> Result<(), BottleStoreError> {
        let copied = io::copy(self, &mut io::sink());
        copied.map_err(|error| match error.downcast::<BottleStoreError>() {
            Ok(error) => error,
            Err(error) => BottleStoreError::Archive { why: error.to_string() },
        })?;
        let bytes: u64 = self.fetch.manifest.chunks.iter().map(|it| u64::from(it.bytes)).sum();
        match bytes == totals.stream_bytes {
            true => Ok(()),
            false => {
                Err(BottleStoreError::Archive { why: "its chunks have another length".to_owned() })
            }
        }
    }
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            match self.fetch.take(self.index) {
                None => return Ok(0),
                Some(fetched) => {
                    self.chunk = fetched.map_err(io::Error::other)?;
                    (self.index, self.at) = (self.index + 1, 0);
                }
            }
        }
        let bytes = into.len().min(self.chunk.len() - self.at);
        into[..bytes].copy_from_slice(&self.chunk[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}
