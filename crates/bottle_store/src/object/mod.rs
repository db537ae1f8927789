//! Ways to a store: objects by name, written if they are absent or unchanged.

mod folder;
mod remote;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use model::secret::Secret;

use crate::error::BottleStoreError;

/// Where a store is, and by which right it is used.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// `s3://bucket[/folder]`, `gs://…`, `az://container[/folder]` or `file:///folder`.
    pub address: String,
    /// Address of a server other than the cloud's own.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// Name of the account or of the access key.
    pub account: Option<String>,
    /// Its secret: an access key, or for Google the JSON of a service account.
    pub secret: Option<Secret>,
    pub ca_file: Option<PathBuf>,
    pub key: crate::seal::FleetKey,
}

/// Version of an object, by which it is replaced if nobody else did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) tag: Option<String>,
    pub(crate) number: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ListedObject {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Timestamp,
}

/// Outcome of a write with a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionalPut {
    Written,
    /// The object is there already, or was replaced.
    Refused,
}

/// A store of objects. Every call waits for its answer, and what it has written is durable.
pub(crate) trait ObjectBackend: Debug + Send + Sync {
    /// Name of the store, for people.
    fn name(&self) -> &str;

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>, BottleStoreError>;

    fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), BottleStoreError>;

    fn put_if_absent(
        &self,
        object: &str,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, BottleStoreError>;

    fn put_if_unchanged(
        &self,
        object: &str,
        bytes: Vec<u8>,
        version: &ObjectVersion,
    ) -> Result<ConditionalPut, BottleStoreError>;

    /// The objects whose names begin with a folder, which ends with a slash.
    fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BottleStoreError>;

    /// Time at which the object was written, by the clock of the store.
    fn modified(&self, object: &str) -> Result<Option<Timestamp>, BottleStoreError>;

    /// Removes an object; one that is gone is success.
    fn delete(&self, object: &str) -> Result<(), BottleStoreError>;
}

const RULE: &str = "write it as s3://bucket, gs://bucket, az://container or file:///folder, with a folder after it if you like";

/// Opens the way to a store. Nothing is asked of it yet.
pub(crate) fn open_backend(
    options: &StoreOptions,
) -> Result<Arc<dyn ObjectBackend>, BottleStoreError> {
    let wrong = || BottleStoreError::Address { address: options.address.clone(), rule: RULE };
    let (kind, rest) = options.address.split_once("://").ok_or_else(wrong)?;
    // A password in an address would be in messages.
    if rest.contains(['@', '?', '#']) {
        return Err(wrong());
    }
    if kind == "file" {
        let path = Path::new(rest);
        return match path.is_absolute() {
            true => Ok(Arc::new(folder::Folder::new(path))),
            false => Err(wrong()),
        };
    }
    let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let place = remote::BucketPlace { bucket, folder: folder.trim_matches('/') };
    if bucket.is_empty() {
        return Err(wrong());
    }
    Ok(match kind {
        "s3" => Arc::new(remote::Bucket::s3(options, place)?),
        "gs" => Arc::new(remote::Bucket::google(options, place)?),
        "az" => Arc::new(remote::Bucket::azure(options, place)?),
        _ => return Err(wrong()),
    })
}
