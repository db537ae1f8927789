//! The second freeze of a bottle of 50,000 files, beside hashing the same tree: CPU time, to a store in a folder.

use std::fs;
use std::path::Path;

use bottle_store::{
    BottleClaim, BottleKey, BottleStore, FleetKey, Owners, SaveRequest, SavedBottle, StoreOptions,
};
use model::secret::Secret;
use testkit::measure::{compare_costs, cost, row};

const FILES: usize = 50_000;
const ROUNDS: usize = 5;
/// Promise: CPU time of the freeze over that of hashing.
const MOST: f64 = 1.3;

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(bytes).collect()
}

/// Files of a few kilobytes in a workspace, and larger ones beside it: packs, a database, a cache.
fn make_bottle(folder: &Path) {
    for number in 0..FILES {
        let dir = folder.join(format!("workspace/src/{}/{}", number / 2500, number / 50 % 50));
        if number % 50 == 0 {
            fs::create_dir_all(&dir).expect("folders");
        }
        let bytes = 200 + number * 7919 % 13_000;
        fs::write(dir.join(format!("file-{number}.rs")), noise(bytes, number as u64))
            .expect("written");
    }
    fs::create_dir_all(folder.join("workspace/.git")).expect("a folder");
    fs::write(folder.join("workspace/.git/pack"), noise(87 << 20, 1)).expect("written");
    fs::create_dir_all(folder.join("harness-state")).expect("a folder");
    for number in 0..100 {
        let path = folder.join(format!("harness-state/part-{number}"));
        fs::write(path, noise(3 << 20, 1_000_000 + number)).expect("written");
    }
    fs::write(folder.join("record.json"), "{}").expect("written");
}

/// Five commits: thirty files, 3 MB of a session, 2 MB that are new.
fn work(folder: &Path, round: u64) {
    for number in 0..30_u64 {
        let at = (number * 1609 + round) as usize;
        let path = format!("workspace/src/{}/{}/file-{at}.rs", at / 2500, at / 50 % 50);
        fs::write(folder.join(path), noise(5000, round * 100 + number)).expect("written");
    }
    fs::write(folder.join("harness-state/session"), noise(3 << 20, 77 + round)).expect("written");
    fs::write(folder.join("workspace/new"), noise(2 << 20, 99 + round)).expect("written");
}

/// Hashes every file of a tree.
fn hash_tree(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a kind").is_dir() {
                folders.push(entry.path());
                continue;
            }
            let content = fs::read(entry.path()).expect("a file");
            bytes += content.len() as u64;
            std::hint::black_box(blake3::hash(&content));
        }
    }
    bytes
}

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let (folder, root) = (dir.path().join("bottle"), dir.path().join("store"));
    fs::create_dir_all(&root).expect("a folder");
    make_bottle(&folder);
    let store = BottleStore::open(&StoreOptions {
        address: format!("file://{}", root.display()),
        endpoint: None,
        region: None,
        account: None,
        secret: None,
        ca_file: None,
        key: FleetKey::parse(&Secret::new("5e".repeat(32))).expect("a key"),
    })
    .expect("a store");
    let made_at = host::clock::now();
    let id = store.id_of(BottleKey { owner: "a", repo: "b", issue: 1, slug: "c", made_at });
    let own = (host::env::uid(), host::env::gid());
    let save = || -> SavedBottle {
        let request = SaveRequest {
            id: &id,
            slug: "c",
            folder: &folder,
            claim: Some(BottleClaim { number: 1, id: 1 }),
            host: "bench",
            owners: Owners { host: own, agent: own },
            now: host::clock::now(),
        };
        store.save(request, &|_| {}).expect("saved")
    };
    let mut sent = 0;
    let first = cost(|| sent = save().sent_bytes);
    row(&format!(
        "bottles: first freeze of {FILES} files: {:.1} s of processors, {} MB sent",
        first.cpu.as_secs_f64(),
        sent >> 20
    ));
    let mut round = 0;
    let result = compare_costs(
        ROUNDS,
        || {
            round += 1;
            work(&folder, round);
            cost(|| sent = save().sent_bytes)
        },
        || {
            let mut bytes = 0;
            let hashed = cost(|| bytes = hash_tree(&folder));
            assert!(bytes > 500 << 20, "the tree is there");
            hashed
        },
    );
    result.print("bottles: second freeze of 50,000 files", "hashing the same tree", MOST);
    row(&format!("bottles: a second freeze sent {} MB", sent >> 20));
    let unchanged = cost(|| sent = save().sent_bytes);
    assert_eq!(sent, 0, "nothing is sent when nothing changed");
    row(&format!(
        "bottles: a freeze without a change: {:.1} s of processors, nothing sent",
        unchanged.cpu.as_secs_f64()
    ));
}
