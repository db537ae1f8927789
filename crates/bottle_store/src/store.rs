//! The store of a fleet: its proof of the key, its clock, heads and manifests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BottleStoreError;
use crate::object::{ConditionalPut, ObjectBackend, ObjectVersion, StoreOptions, open_backend};
use crate::rules::garbage::epoch_at;
use crate::rules::head::{
    BottleClaim, BottleId, BottleKey, HEAD_VERSION, HeadMove, HeadMover, HeadState, judge_move,
};
use crate::rules::manifest::{MANIFEST_VERSION, Manifest};
use crate::seal::FleetKey;

/// Object by which every host finds that it has the key of the fleet.
const PROOF: &str = "fleet";
const PROOF_TEXT: &[u8] = b"bottleworks fleet";
/// Object that is written to read the clock of the store.
const CLOCK: &str = "clock";
/// Largest manifest when it is unpacked: some millions of chunks.
const MANIFEST_MAX: usize = 1 << 30;
const EPOCH_SECS: u64 = 86_400;
const LEVEL: i32 = 3;

/// A store that the hosts of a fleet share. All calls wait for their answers.
#[derive(Debug, Clone)]
pub struct BottleStore {
    pub(crate) backend: Arc<dyn ObjectBackend>,
    pub(crate) key: FleetKey,
    pub(crate) epoch_secs: u64,
    proven: Arc<OnceLock<()>>,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Files, folders and links that were read or made.
    pub entries: u64,
    /// Bytes of them that were read.
    pub bytes: u64,
    /// Chunks that were sent or fetched, and their bytes on the way.
    pub chunks: u64,
    pub chunk_bytes: u64,
    /// Chunks in all, where that is known.
    pub chunks_in_all: Option<u64>,
}

/// A head, and the version by which it is replaced.
pub(crate) type LoadedHead = (HeadState, ObjectVersion);

impl BottleStore {
    /// A store by its address. Nothing is asked of it yet.
    pub fn open(options: &StoreOptions) -> Result<Self, BottleStoreError> {
        let backend = open_backend(options)?;
        Ok(Self::with_backend(backend, options.key.clone()))
    }

    pub(crate) fn with_backend(backend: Arc<dyn ObjectBackend>, key: FleetKey) -> Self {
        Self { backend, key, epoch_secs: EPOCH_SECS, proven: Arc::default() }
    }

    /// The same store with shorter epochs, for tests of what happens at their ends.
    #[doc(hidden)]
    #[must_use]
    pub fn with_epoch_secs(self, epoch_secs: u64) -> Self {
        Self { epoch_secs, ..self }
    }

    /// Name of the store, for people.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Name of a bottle in the store.
    pub fn id_of(&self, key: BottleKey<'_>) -> BottleId {
        let BottleKey { owner, repo, issue, slug, made_at } = key;
        // None of the parts has a NUL.
        let text = format!("bottle\0{owner}\0{repo}\0{issue}\0{slug}\0{made_at}");
        BottleId::of_hash(&self.key.name(text.as_bytes()))
    }

    /// The head of a bottle; `None` for one that was never saved.
    pub fn head(&self, id: &BottleId) -> Result<Option<HeadState>, BottleStoreError> {
        self.prove_key()?;
        Ok(self.load_head(&id.folder())?.map(|(head, _)| head))
    }

    /// The record of a bottle as its manifest has it; `None` if the manifest cannot be read, and the bottle has to be pulled.
    pub fn record(
        &self,
        id: &BottleId,
        manifest: &str,
    ) -> Result<Option<serde_json::Value>, BottleStoreError> {
        self.prove_key()?;
        match self.load_manifest(&id.folder(), manifest) {
            Err(error) if error.is_damage() => Ok(None),
            loaded => Ok(Some(loaded?.record)),
        }
    }

    /// Marks a bottle as destroyed, so that no older claim saves it again. Its chunks go with a later collection. Without a
    /// claim a person gives it up, whatever its head is.
    pub fn destroy(
        &self,
        id: &BottleId,
        claim: Option<BottleClaim>,
    ) -> Result<(), BottleStoreError> {
        self.prove_key()?;
        let folder = id.folder();
        loop {
            let Some((head, version)) = self.load_head(&folder)? else { return Ok(()) };
            if head.is_destroyed {
                return Ok(());
            }
            let mover = HeadMover { claim, bases: &[&head.manifest] };
            let claim = allow(id.as_str(), judge_move(Some(&head), mover))?;
            let destroyed = HeadState { claim, is_destroyed: true, ..head.clone() };
            if self.replace_head(&folder, &destroyed, Some(&version))? {
                return Ok(());
            }
        }
    }

    /// Finds that the store was written with this key, or writes that it is now.
    pub(crate) fn prove_key(&self) -> Result<(), BottleStoreError> {
        if self.proven.get().is_some() {
            return Ok(());
        }
        let proof = self.key.seal(PROOF, PROOF_TEXT);
        let found = match self.backend.get(PROOF)? {
            Some((found, _)) => found,
            None => match self.backend.put_if_absent(PROOF, proof.clone())? {
                ConditionalPut::Written => proof.clone(),
                ConditionalPut::Refused => {
                    self.backend.get(PROOF)?.map(|(found, _)| found).unwrap_or_default()
                }
            },
        };
        if found != proof {
            return Err(BottleStoreError::OtherKey { store: self.name().to_owned() });
        }
        // Whoever set it first found the same.
        let _known = self.proven.set(());
        Ok(())
    }

    /// The epoch by the clock of the store, which all hosts have in common.
    pub(crate) fn epoch(&self) -> Result<u64, BottleStoreError> {
        Ok(epoch_at(self.now()?.as_second(), self.epoch_secs))
    }

    pub(crate) fn now(&self) -> Result<jiff::Timestamp, BottleStoreError> {
        self.backend.put(CLOCK, Vec::new())?;
        let found = self.backend.modified(CLOCK)?;
        found.ok_or_else(|| BottleStoreError::Missing {
            object: CLOCK.to_owned(),
            store: self.name().to_owned(),
        })
    }

    /// Time within which a freeze has to be over, so that its chunks are kept.
    pub(crate) fn freeze_limit(&self) -> Duration {
        Duration::from_secs(self.epoch_secs) * 9 / 10
    }

    pub(crate) fn load_head(&self, folder: &str) -> Result<Option<LoadedHead>, BottleStoreError> {
        let object = format!("{folder}head");
        let Some((sealed, version)) = self.backend.get(&object)? else { return Ok(None) };
        let head: HeadState = self.open_json(&object, &sealed)?;
        match head.version {
            HEAD_VERSION => Ok(Some((head, version))),
            other => Err(self.damaged(&object, format!("it is of the newer form {other}"))),
        }
    }

    /// Writes a head in place of the one that was read; false if another one is there by now.
    pub(crate) fn replace_head(
        &self,
        folder: &str,
        head: &HeadState,
        before: Option<&ObjectVersion>,
    ) -> Result<bool, BottleStoreError> {
        let object = format!("{folder}head");
        let sealed = self.seal_json(&object, head)?;
        let put = match before {
            Some(version) => self.backend.put_if_unchanged(&object, sealed, version)?,
            None => self.backend.put_if_absent(&object, sealed)?,
        };
        match put {
            ConditionalPut::Written => Ok(true),
            // The answer to a write that arrived may have been lost, and the write was then sent again.
            ConditionalPut::Refused => {
                Ok(self.load_head(folder)?.is_some_and(|(found, _)| found == *head))
            }
        }
    }

    pub(crate) fn load_manifest(
        &self,
        folder: &str,
        name: &str,
    ) -> Result<Manifest, BottleStoreError> {
        let object = format!("{folder}{name}");
        let found = self.backend.get(&object)?.ok_or_else(|| self.missing(&object))?;
        let manifest: Manifest = self.open_json(&object, &found.0)?;
        match manifest.version {
            MANIFEST_VERSION => Ok(manifest),
            other => Err(self.damaged(&object, format!("it is of the newer form {other}"))),
        }
    }

    pub(crate) fn seal_json(
        &self,
        object: &str,
        value: &impl Serialize,
    ) -> Result<Vec<u8>, BottleStoreError> {
        let json = serde_json::to_vec(value)
            .map_err(|error| BottleStoreError::Archive { why: error.to_string() })?;
        Ok(self.key.seal(object, &compress(&json)?))
    }

    fn open_json<T: DeserializeOwned>(
        &self,
        object: &str,
        sealed: &[u8],
    ) -> Result<T, BottleStoreError> {
        let opened = self.open_sealed(object, sealed, MANIFEST_MAX)?;
        serde_json::from_slice(&opened).map_err(|error| self.damaged(object, error.to_string()))
    }

    /// Opens a sealed object of at most so many bytes.
    pub(crate) fn open_sealed(
        &self,
        object: &str,
        sealed: &[u8],
        most: usize,
    ) -> Result<Vec<u8>, BottleStoreError> {
        let packed = self.key.open(object, sealed);
        let packed = packed.ok_or_else(|| self.damaged(object, "its seal does not open".into()))?;
        zstd::bulk::decompress(&packed, most)
            .map_err(|error| self.damaged(object, error.to_string()))
    }

    pub(crate) fn missing(&self, object: &str) -> BottleStoreError {
        BottleStoreError::Missing { object: object.to_owned(), store: self.name().to_owned() }
    }

    pub(crate) fn damaged(&self, object: &str, why: String) -> BottleStoreError {
        BottleStoreError::Damaged { object: object.to_owned(), store: self.name().to_owned(), why }
    }
}

pub(crate) fn compress(content: &[u8]) -> Result<Vec<u8>, BottleStoreError> {
    zstd::bulk::compress(content, LEVEL)
        .map_err(|error| BottleStoreError::Archive { why: error.to_string() })
}

/// The claim that a head has after a move, or why it is not moved.
pub(crate) fn allow(bottle: &str, judged: HeadMove) -> Result<BottleClaim, BottleStoreError> {
    let bottle = bottle.to_owned();
    match judged {
        HeadMove::Allowed(claim) => Ok(claim),
        HeadMove::Destroyed => Err(BottleStoreError::Destroyed { bottle }),
        HeadMove::Overtaken { held, came } => {
            Err(BottleStoreError::Overtaken { bottle, held, came })
        }
        HeadMove::Diverged => Err(BottleStoreError::Diverged { bottle }),
    }
}
