//! Saving: the chunks that the store lacks, then a manifest, then the head.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use host::file::FileError;
use jiff::Timestamp;

use crate::archive::{HOST_PARTS, Owners, write_archive};
use crate::chunk::ChunkWriter;
use crate::error::BottleStoreError;
use crate::known::{FolderMark, UploadLog, load_manifest, store_manifest};
use crate::object::ConditionalPut;
use crate::rules::garbage::ChunkRef;
use crate::rules::head::{BottleClaim, BottleId, HEAD_VERSION, HeadMover, HeadState, judge_move};
use crate::rules::manifest::{ArchiveTotals, MANIFEST_VERSION, Manifest, manifest_name};
use crate::store::{BottleStore, LoadedHead, Transfer, allow, compress};

/// Chunks that are sent at once.
const SENDERS: usize = 4;

/// A frozen bottle that is to be saved. Nothing else may use its folder meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct SaveRequest<'a> {
    pub id: &'a BottleId,
    /// Its name on this host.
    pub slug: &'a str,
    pub folder: &'a Path,
    /// The claim under which it was worked on; `None` for a person who works by hand.
    pub claim: Option<BottleClaim>,
    pub host: &'a str,
    pub owners: Owners,
    pub now: Timestamp,
}

/// A bottle that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedBottle {
    /// The manifest that its head names.
    pub manifest: String,
    pub generation: u64,
    /// Chunks that were sent for it, and their bytes.
    pub sent: u64,
    pub sent_bytes: u64,
    /// Sockets, FIFOs and devices, which stay behind.
    pub left_out: u64,
}

impl BottleStore {
    /// Saves a bottle's folder. An upload that was interrupted goes on after what it has put.
    pub fn save(
        &self,
        request: SaveRequest<'_>,
        note: &(dyn Fn(Transfer) + Sync),
    ) -> Result<SavedBottle, BottleStoreError> {
        self.prove_key()?;
        loop {
            // The head of an own folder moves under an upload only when somebody saves the same folder.
            if let Some(saved) = self.save_once(request, note)? {
                return Ok(saved);
            }
        }
    }

    /// Saves once; `None` if the head moved meanwhile, and with it what the upload counted on.
    fn save_once(
        &self,
        request: SaveRequest<'_>,
        note: &(dyn Fn(Transfer) + Sync),
    ) -> Result<Option<SavedBottle>, BottleStoreError> {
        let SaveRequest { id, folder, .. } = request;
        let began = host::clock::boottime();
        let mark = FolderMark::load_or_new(folder)?;
        let head = self.load_head(&id.folder())?;
        judge(&request, head.as_ref(), &mark)?;
        let previous = self.previous(&id.folder(), head.as_ref(), &mark, folder)?;
        let epoch = self.epoch()?;
        let (log, put) = UploadLog::open(folder, epoch)?;
        let known = known_chunks(previous.as_ref());
        let upload = ChunkUpload {
            store: self,
            epoch,
            rewrites: mark.rewrites,
            state: Mutex::new(UploadState { log: Some(log), put, ..UploadState::default() }),
            note,
        };
        let (chunks, totals) = upload.run(folder, &known)?;
        let state = upload.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let content = SavedContent { chunks, totals, sent: state.transfer };
        let moved = self.publish(&request, head, previous, content, began)?;
        if let (Some(_), Some(log)) = (&moved, state.log) {
            log.remove()?;
        }
        Ok(moved)
    }

    /// The manifest that the new one follows. Its chunks are there as long as the head names it.
    fn previous(
        &self,
        place: &str,
        head: Option<&LoadedHead>,
        mark: &FolderMark,
        folder: &Path,
    ) -> Result<Option<Manifest>, BottleStoreError> {
        let Some((head, _)) = head else { return Ok(None) };
        if mark.rewrites {
            return Ok(None);
        }
        if let Some(known) = load_manifest(folder, &head.manifest) {
            return Ok(Some(known));
        }
        match self.load_manifest(place, &head.manifest) {
            // Everything is put again then, which is dear and safe.
            Err(error) if error.is_damage() => Ok(None),
            loaded => loaded.map(Some),
        }
    }

    /// Writes the manifest and moves the head to it; `None` if the head names another manifest by now.
    fn publish(
        &self,
        request: &SaveRequest<'_>,
        mut head: Option<LoadedHead>,
        previous: Option<Manifest>,
        content: SavedContent,
        began: Duration,
    ) -> Result<Option<SavedBottle>, BottleStoreError> {
        let SaveRequest { id, folder, .. } = *request;
        let SavedContent { chunks, totals, sent } = content;
        let mark = FolderMark::load_or_new(folder)?;
        let known = previous.filter(|it| it.chunks == chunks && it.totals == totals);
        loop {
            let claim = judge(request, head.as_ref(), &mark)?;
            let before = head.as_ref().map(|(head, _)| head);
            let (manifest, generation) = match (before, &known) {
                (Some(head), Some(_)) => (head.manifest.clone(), head.generation),
                _ => self.put_manifest(request, before, claim, (&chunks, totals))?,
            };
            let limit = self.freeze_limit();
            if host::clock::boottime().saturating_sub(began) > limit {
                return Err(BottleStoreError::TooSlow { hours: limit.as_secs() / 3600 });
            }
            // A process that is killed once the head has moved finds by it that the head is its own.
            FolderMark { pending: Some(manifest.clone()), ..mark.clone() }.store(folder)?;
            host::failpoint::hit("uploaded");
            let next = HeadState {
                version: HEAD_VERSION,
                manifest: manifest.clone(),
                generation,
                claim,
                is_destroyed: false,
            };
            let version = head.as_ref().map(|(_, version)| version);
            if before == Some(&next) || self.replace_head(&id.folder(), &next, version)? {
                host::failpoint::hit("head-moved");
                let is_of = Some(manifest.clone());
                FolderMark { manifest: is_of, generation, ..FolderMark::default() }
                    .store(folder)?;
                return Ok(Some(SavedBottle {
                    manifest,
                    generation,
                    sent: sent.chunks,
                    sent_bytes: sent.chunk_bytes,
                    left_out: totals.left_out,
                }));
            }
            let now = self.load_head(&id.folder())?;
            let names =
                |head: &Option<LoadedHead>| head.as_ref().map(|(it, _)| it.manifest.clone());
            if names(&now) != names(&head) {
                return Ok(None);
            }
            head = now;
        }
    }

    /// Puts a manifest, and returns its name and number.
    fn put_manifest(
        &self,
        request: &SaveRequest<'_>,
        before: Option<&HeadState>,
        claim: BottleClaim,
        (chunks, totals): (&[ChunkRef], ArchiveTotals),
    ) -> Result<(String, u64), BottleStoreError> {
        let SaveRequest { id, slug, folder, host, owners, now, .. } = *request;
        let generation = before.map_or(1, |head| head.generation + 1);
        let manifest = Manifest {
            version: MANIFEST_VERSION,
            slug: slug.to_owned(),
            generation,
            claim,
            record: read_record(folder)?,
            previous: before.map(|head| head.manifest.clone()),
            saved_at: now,
            host: host.to_owned(),
            owners,
            totals,
            chunks: chunks.to_vec(),
        };
        let json = serde_json::to_vec(&manifest)
            .map_err(|error| BottleStoreError::Archive { why: error.to_string() })?;
        let name = manifest_name(generation, &self.key.name(&json));
        let object = format!("{}{name}", id.folder());
        let sealed = self.seal_json(&object, &manifest)?;
        // The name is of its content, so whatever is there is the same.
        self.backend.put_if_absent(&object, sealed)?;
        store_manifest(folder, &name, &manifest)?;
        Ok((name, generation))
    }
}

/// The record of a bottle.
fn read_record(folder: &Path) -> Result<serde_json::Value, BottleStoreError> {
    let path = folder.join(HOST_PARTS[0]);
    let bytes = std::fs::read(&path).map_err(FileError::io("read", &path))?;
    let parsed = serde_json::from_slice(&bytes).map_err(io::Error::other);
    Ok(parsed.map_err(FileError::io("understand", &path))?)
}

fn judge(
    request: &SaveRequest<'_>,
    head: Option<&LoadedHead>,
    mark: &FolderMark,
) -> Result<BottleClaim, BottleStoreError> {
    let mover = HeadMover { claim: request.claim, bases: &mark.bases() };
    allow(request.slug, judge_move(head.map(|(head, _)| head), mover))
}

fn known_chunks(manifest: Option<&Manifest>) -> HashMap<String, u64> {
    let chunks = manifest.iter().flat_map(|manifest| &manifest.chunks);
    chunks.map(|chunk| (chunk.hash.clone(), chunk.epoch)).collect()
}

/// Content that an upload has found and sent.
struct SavedContent {
    chunks: Vec<ChunkRef>,
    totals: ArchiveTotals,
    sent: Transfer,
}

/// An upload that is on its way.
struct ChunkUpload<'a> {
    store: &'a BottleStore,
    epoch: u64,
    /// True if what is in the store may be damaged: it is written over.
    rewrites: bool,
    state: Mutex<UploadState>,
    note: &'a (dyn Fn(Transfer) + Sync),
}

#[derive(Default)]
struct UploadState {
    log: Option<UploadLog>,
    /// Objects that were put in this epoch by an earlier try or by this one.
    put: HashSet<String>,
    transfer: Transfer,
    failed: Option<BottleStoreError>,
}

struct NewChunk {
    chunk: ChunkRef,
    content: Vec<u8>,
}

impl ChunkUpload<'_> {
    /// Reads the folder and sends what is new.
    fn run(
        &self,
        folder: &Path,
        known: &HashMap<String, u64>,
    ) -> Result<(Vec<ChunkRef>, ArchiveTotals), BottleStoreError> {
        let (sender, receiver) = sync_channel(SENDERS);
        let receiver = Mutex::new(receiver);
        let read = thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| self.send_all(&receiver));
            }
            self.read(folder, known, sender)
        });
        // What stopped the senders is the cause of what the reader met.
        match self.state().failed.take() {
            Some(error) => Err(error),
            None => read,
        }
    }

    fn read(
        &self,
        folder: &Path,
        known: &HashMap<String, u64>,
        sender: SyncSender<NewChunk>,
    ) -> Result<(Vec<ChunkRef>, ArchiveTotals), BottleStoreError> {
        let (mut chunks, mut stream_bytes) = (Vec::new(), 0);
        let mut writer = ChunkWriter::new(|content: &[u8]| {
            let hash = self.store.key.name(content);
            let bytes = u32::try_from(content.len()).map_err(io::Error::other)?;
            stream_bytes += u64::from(bytes);
            let epoch = known.get(&hash).copied();
            let chunk = ChunkRef { hash, epoch: epoch.unwrap_or(self.epoch), bytes };
            if epoch.is_none() && self.is_new(&chunk)? {
                let new = NewChunk { chunk: chunk.clone(), content: content.to_vec() };
                sender.send(new).map_err(io::Error::other)?;
            }
            chunks.push(chunk);
            Ok(())
        });
        let mut last = 0;
        let written = write_archive(folder, &mut writer, &mut |totals| {
            // Once for some hundred entries: the lock is for the counts alone.
            if totals.entries >= last + 256 {
                last = totals.entries;
                let mut state = self.state();
                state.transfer.entries = totals.entries;
                state.transfer.bytes = totals.file_bytes;
                (self.note)(state.transfer);
            }
        })?;
        writer.finish().map_err(|error| BottleStoreError::Archive { why: error.to_string() })?;
        drop(sender);
        Ok((chunks, ArchiveTotals { stream_bytes, ..written }))
    }

    /// True if the chunk was not sent yet. An error once one could not be: reading on would be in vain.
    fn is_new(&self, chunk: &ChunkRef) -> io::Result<bool> {
        let mut state = self.state();
        match state.failed.is_some() {
            true => Err(io::Error::other("the upload has failed")),
            false => Ok(state.put.insert(chunk.object())),
        }
    }

    /// Sends chunks until there are none, or one fails.
    fn send_all(&self, receiver: &Mutex<Receiver<NewChunk>>) {
        loop {
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(new) = next else { return };
            // What comes after a failure is taken and dropped, so that the reader is not left waiting.
            if self.state().failed.is_some() {
                continue;
            }
            if let Err(error) = self.send(&new) {
                self.state().failed.get_or_insert(error);
            }
        }
    }

    fn send(&self, new: &NewChunk) -> Result<(), BottleStoreError> {
        let object = new.chunk.object();
        let sealed = self.store.key.seal(&object, &compress(&new.content)?);
        let bytes = sealed.len() as u64;
        let put = match self.rewrites {
            true => self.store.backend.put(&object, sealed).map(|()| ConditionalPut::Written)?,
            false => self.store.backend.put_if_absent(&object, sealed)?,
        };
        host::failpoint::hit("chunk-sent");
        let mut state = self.state();
        if let Some(log) = &mut state.log {
            log.add(&object)?;
        }
        if put == ConditionalPut::Written {
            state.transfer.chunks += 1;
            state.transfer.chunk_bytes += bytes;
        }
        (self.note)(state.transfer);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
