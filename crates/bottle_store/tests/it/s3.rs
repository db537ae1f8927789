//! Promises that hold on S3: of several writers one wins, and a server that dies leaves no half freeze.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bottle_store::{
    BottleClaim, BottleId, BottleKey, BottleStore, BottleStoreError, CollectOptions, FleetKey,
    Owners, PullOptions, SaveRequest, SavedBottle, StoreOptions,
};
use model::secret::Secret;
use tempfile::TempDir;
use testkit::s3::S3Server;

struct Scene {
    dir: TempDir,
    server: S3Server,
    store: BottleStore,
    id: BottleId,
}

fn options(endpoint: String) -> StoreOptions {
    let (account, secret) = S3Server::ACCOUNT;
    StoreOptions {
        address: format!("s3://{}/fleet/one", S3Server::BUCKET),
        endpoint: Some(endpoint),
        region: None,
        account: Some(account.to_owned()),
        secret: Some(Secret::new(secret)),
        ca_file: None,
        key: FleetKey::parse(&Secret::new("5e".repeat(32))).expect("a key"),
    }
}

fn claim(number: u64) -> Option<BottleClaim> {
    Some(BottleClaim { number, id: number + 7 })
}

fn owners() -> Owners {
    let own = (host::env::uid(), host::env::gid());
    Owners { host: own, agent: own }
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes / 8).flat_map(|_| next().to_le_bytes()).collect()
}

impl Scene {
    fn new() -> Option<Self> {
        let server = S3Server::start()?;
        let store = BottleStore::open(&options(server.endpoint())).expect("a store");
        let id = store.id_of(BottleKey {
            owner: "acme",
            repo: "app",
            issue: 7,
            slug: "coder-issue-7",
            made_at: "2026-11-19T10:00:00Z".parse().expect("a time"),
        });
        Some(Self { dir: tempfile::tempdir().expect("a folder"), server, store, id })
    }

    fn bottle(&self) -> PathBuf {
        let folder = self.dir.path().join("one/coder-issue-7");
        fs::create_dir_all(folder.join("workspace")).expect("folders");
        fs::write(folder.join("record.json"), "{}").expect("written");
        fs::write(folder.join("workspace/large"), noise(12 << 20, 11)).expect("written");
        folder
    }

    fn save(
        &self,
        folder: &Path,
        claim: Option<BottleClaim>,
    ) -> Result<SavedBottle, BottleStoreError> {
        let request = SaveRequest {
            id: &self.id,
            slug: "coder-issue-7",
            folder,
            claim,
            host: "one",
            owners: owners(),
            now: host::clock::now(),
        };
        self.store.save(request, &|_| {})
    }

    fn pull(&self, host: &str, claim: Option<BottleClaim>) -> Result<PathBuf, BottleStoreError> {
        let folder = self.dir.path().join(host).join("coder-issue-7");
        fs::create_dir_all(folder.parent().expect("a parent")).expect("a folder");
        let slug = "coder-issue-7";
        let request = PullOptions { id: &self.id, slug, claim, folder: &folder, owners: owners() };
        self.store.pull(request, &|_| {}, |_| Ok::<_, BottleStoreError>(()))?;
        Ok(folder)
    }
}

#[test]
fn a_bottle_goes_to_a_bucket_and_comes_back() {
    let Some(scene) = Scene::new() else { return };
    let folder = scene.bottle();
    let first = scene.save(&folder, claim(1)).unwrap();
    assert!(first.sent > 5, "{first:?}");
    assert_eq!(scene.save(&folder, claim(1)).unwrap().sent, 0);
    let pulled = scene.pull("two", claim(2)).unwrap();
    let read = |folder: &Path| fs::read(folder.join("workspace/large")).unwrap();
    assert_eq!(read(&pulled), read(&folder));
    fs::write(pulled.join("workspace/new"), "new").unwrap();
    assert_eq!(scene.save(&pulled, claim(2)).unwrap().generation, 2);
    let late = scene.save(&folder, claim(1)).unwrap_err();
    assert!(matches!(late, BottleStoreError::Overtaken { .. }), "{late}");
    let keep = CollectOptions { retention: Default::default(), tombstones: Default::default() };
    let collected = scene.store.collect(keep, &|| true).unwrap();
    assert_eq!((collected.bottles, collected.chunks_removed), (1, 0), "all of it is young");
    assert!(scene.server.folder().join("fleet/one/chunks").is_dir(), "it is in its folder");
}

#[test]
fn of_several_writers_at_once_one_wins() {
    let Some(scene) = Scene::new() else { return };
    let health = scene.store.check().unwrap();
    assert!(health.is_safe(), "{health:?}");
}

#[test]
fn a_server_that_dies_in_the_middle_of_an_upload_leaves_the_state_before() {
    let Some(scene) = Scene::new() else { return };
    let folder = scene.bottle();
    scene.save(&folder, claim(1)).unwrap();
    fs::write(folder.join("workspace/more"), noise(24 << 20, 5)).unwrap();
    let Scene { dir, server, store, id } = scene;
    let server = Mutex::new(server);
    let request = SaveRequest {
        id: &id,
        slug: "coder-issue-7",
        folder: &folder,
        claim: claim(1),
        host: "one",
        owners: owners(),
        now: host::clock::now(),
    };
    let torn = store.save(request, &|transfer| {
        if transfer.chunks == 3 {
            server.lock().expect("the server").kill();
        }
    });
    let error = torn.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let mut server = server.into_inner().expect("the server");
    let down = store.head(&id).unwrap_err();
    assert!(down.is_transient(), "{down}");
    server.start_again();
    let scene = Scene { dir, server, store, id };
    assert_eq!(scene.store.head(&scene.id).unwrap().unwrap().generation, 1);
    let saved = scene.save(&folder, claim(1)).unwrap();
    assert_eq!(saved.generation, 2);
    assert!(saved.sent < 26, "what was put is not put again: {saved:?}");
    let pulled = scene.pull("two", claim(2)).unwrap();
    assert_eq!(fs::read(pulled.join("workspace/more")).unwrap(), noise(24 << 20, 5));
}

#[test]
fn a_secret_that_is_wrong_is_no_passing_failure() {
    let Some(scene) = Scene::new() else { return };
    let wrong = StoreOptions {
        secret: Some(Secret::new("another-secret-of-a-test")),
        ..options(scene.server.endpoint())
    };
    let error = BottleStore::open(&wrong).unwrap().check().unwrap_err();
    assert!(!error.is_transient(), "{}", model::error_chain(&error));
    let absent = StoreOptions {
        address: "s3://no-such-bucket".to_owned(),
        ..options(scene.server.endpoint())
    };
    BottleStore::open(&absent).unwrap().check().unwrap_err();
}
