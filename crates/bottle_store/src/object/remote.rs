//! A store in a bucket, over HTTP. Its requests run on threads of their own, so that a caller waits on any thread.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{
    ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    RetryConfig, UpdateVersion,
};
use tokio::runtime::Runtime;

use super::{ConditionalPut, ListedObject, ObjectBackend, ObjectVersion, StoreOptions};
use crate::error::BottleStoreError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time in which something has to come from the store.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
const REQUEST_LIMIT: Duration = Duration::from_secs(300);
/// A store that fails for longer is told to the caller, who waits as long as it wants.
const RETRY_LIMIT: Duration = Duration::from_secs(10);

/// Bucket and folder in it.
pub(super) struct BucketPlace<'a> {
    pub(super) bucket: &'a str,
    pub(super) folder: &'a str,
}

pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    folder: String,
    name: String,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // The last owner may be on a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Makes HTTP clients that trust what the rest of the program trusts.
#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

impl Connector {
    fn new(options: &StoreOptions, store: &str) -> Result<Self, BottleStoreError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| BottleStoreError::Refused {
            action: "set up TLS",
            store: store.to_owned(),
            source,
        };
        let tls = host::tls::read_client_config(options.ca_file.as_deref())
            .map_err(|error| failed(Box::new(error)))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_LIMIT)
            .read_timeout(SILENCE_LIMIT)
            .timeout(REQUEST_LIMIT)
            .build();
        client.map(Self).map_err(|error| failed(Box::new(error)))
    }
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() }
}

impl Bucket {
    pub(super) fn s3(
        options: &StoreOptions,
        place: BucketPlace<'_>,
    ) -> Result<Self, BottleStoreError> {
        let name = format!("the bucket {}", options.address);
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(place.bucket)
            .with_region(options.region.as_deref().unwrap_or("us-east-1"))
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(retry())
            .with_http_connector(Connector::new(options, &name)?);
        if let Some(endpoint) = &options.endpoint {
            builder = builder
                .with_endpoint(endpoint.as_str())
                .with_allow_http(endpoint.starts_with("http://"));
        }
        // Without an account the machine's own role is asked for, as in the cloud.
        if let (Some(account), Some(secret)) = (&options.account, &options.secret) {
            builder = builder
                .with_access_key_id(account.as_str())
                .with_secret_access_key(secret.expose());
        }
        let built = builder.build().map(|it| Arc::new(it) as Arc<dyn ObjectStore>);
        Self::new(built, name, place)
    }

    pub(super) fn google(
        options: &StoreOptions,
        place: BucketPlace<'_>,
    ) -> Result<Self, BottleStoreError> {
        let name = format!("the bucket {}", options.address);
        let mut builder = GoogleCloudStorageBuilder::new()
            .with_bucket_name(place.bucket)
            .with_retry(retry())
            .with_http_connector(Connector::new(options, &name)?);
        if let Some(secret) = &options.secret {
            builder = builder.with_service_account_key(secret.expose());
        }
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_base_url(endpoint);
        }
        let built = builder.build().map(|it| Arc::new(it) as Arc<dyn ObjectStore>);
        Self::new(built, name, place)
    }

    pub(super) fn azure(
        options: &StoreOptions,
        place: BucketPlace<'_>,
    ) -> Result<Self, BottleStoreError> {
        let name = format!("the container {}", options.address);
        let mut builder = MicrosoftAzureBuilder::new()
            .with_container_name(place.bucket)
            .with_retry(retry())
            .with_http_connector(Connector::new(options, &name)?);
        if let Some(account) = &options.account {
            builder = builder.with_account(account.as_str());
        }
        if let Some(secret) = &options.secret {
            builder = builder.with_access_key(secret.expose());
        }
        if let Some(endpoint) = &options.endpoint {
            builder = builder
                .with_endpoint(endpoint.clone())
                .with_allow_http(endpoint.starts_with("http://"));
        }
        let built = builder.build().map(|it| Arc::new(it) as Arc<dyn ObjectStore>);
        Self::new(built, name, place)
    }

    fn new(
        built: object_store::Result<Arc<dyn ObjectStore>>,
        name: String,
        place: BucketPlace<'_>,
    ) -> Result<Self, BottleStoreError> {
        let refused = |source: Error| BottleStoreError::Refused {
            action: "be set up",
            store: name.clone(),
            source: Box::new(source),
        };
        let store = built.map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("bottle-store")
            .enable_all()
            .build()
            .map_err(BottleStoreError::Thread)?;
        Ok(Self { store, folder: place.folder.to_owned(), name, runtime: Some(runtime) })
    }

    fn path(&self, object: &str) -> ObjectPath {
        ObjectPath::from(match self.folder.as_str() {
            "" => object.to_owned(),
            folder => format!("{folder}/{object}"),
        })
    }

    /// Runs a request on the threads of this store and waits for it.
    fn wait<T: Send + 'static>(
        &self,
        action: &'static str,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<Result<T, Error>, BottleStoreError> {
        let ended = |source: Box<dyn std::error::Error + Send + Sync>| {
            BottleStoreError::Unreachable { action, store: self.name.clone(), source }
        };
        let runtime =
            self.runtime.as_ref().ok_or_else(|| ended("its threads have ended".into()))?;
        let (sender, answer) = mpsc::channel();
        runtime.spawn(async move { drop(sender.send(request.await)) });
        answer.recv().map_err(|error| ended(Box::new(error)))
    }

    fn failed(&self, action: &'static str) -> impl Fn(Error) -> BottleStoreError + '_ {
        move |error| {
            let store = self.name.clone();
            let source = Box::new(error);
            match *source {
                Error::PermissionDenied { .. }
                | Error::Unauthenticated { .. }
                | Error::NotSupported { .. }
                | Error::NotImplemented { .. }
                | Error::InvalidPath { .. } => BottleStoreError::Refused { action, store, source },
                _ => BottleStoreError::Unreachable { action, store, source },
            }
        }
    }

    fn put_with(
        &self,
        object: &str,
        bytes: Vec<u8>,
        mode: PutMode,
    ) -> Result<ConditionalPut, BottleStoreError> {
        let (store, path) = (Arc::clone(&self.store), self.path(object));
        let options = PutOptions { mode, ..PutOptions::default() };
        let payload = PutPayload::from_bytes(Bytes::from(bytes));
        let put =
            self.wait("write", async move { store.put_opts(&path, payload, options).await })?;
        match put {
            Ok(_) => Ok(ConditionalPut::Written),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Ok(ConditionalPut::Refused)
            }
            Err(error) => Err(self.failed("write")(error)),
        }
    }
}

impl ObjectBackend for Bucket {
    fn name(&self) -> &str {
        &self.name
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>, BottleStoreError> {
        let (store, path) = (Arc::clone(&self.store), self.path(object));
        let got = self.wait("read", async move {
            let found = store.get(&path).await?;
            let version =
                ObjectVersion { tag: found.meta.e_tag.clone(), number: found.meta.version.clone() };
            Ok((found.bytes().await?, version))
        })?;
        match got {
            Ok((bytes, version)) => Ok(Some((bytes.to_vec(), version))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read")(error)),
        }
    }

    fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), BottleStoreError> {
        self.put_with(object, bytes, PutMode::Overwrite).map(drop)
    }

    fn put_if_absent(
        &self,
        object: &str,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, BottleStoreError> {
        self.put_with(object, bytes, PutMode::Create)
    }

    fn put_if_unchanged(
        &self,
        object: &str,
        bytes: Vec<u8>,
        version: &ObjectVersion,
    ) -> Result<ConditionalPut, BottleStoreError> {
        let version = UpdateVersion { e_tag: version.tag.clone(), version: version.number.clone() };
        self.put_with(object, bytes, PutMode::Update(version))
    }

    fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BottleStoreError> {
        let (store, path) = (Arc::clone(&self.store), self.path(folder));
        let listed = self.wait("list", async move {
            use futures_util::TryStreamExt as _;
            store.list(Some(&path)).try_collect::<Vec<_>>().await
        })?;
        let before = match self.folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let listed = listed.map_err(self.failed("list"))?;
        let named = |meta: object_store::ObjectMeta| {
            let path = meta.location.to_string();
            ListedObject {
                name: path.strip_prefix(&before).unwrap_or(&path).to_owned(),
                bytes: meta.size,
                modified: time_of(meta.last_modified.timestamp()),
            }
        };
        Ok(listed.into_iter().map(named).collect())
    }

    fn modified(&self, object: &str) -> Result<Option<Timestamp>, BottleStoreError> {
        let (store, path) = (Arc::clone(&self.store), self.path(object));
        match self.wait("read", async move { store.head(&path).await })? {
            Ok(meta) => Ok(Some(time_of(meta.last_modified.timestamp()))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read")(error)),
        }
    }

    fn delete(&self, object: &str) -> Result<(), BottleStoreError> {
        let (store, path) = (Arc::clone(&self.store), self.path(object));
        match self.wait("remove", async move { store.delete(&path).await })? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove")(error)),
        }
    }
}

fn time_of(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or_default()
}
