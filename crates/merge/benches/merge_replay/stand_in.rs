//! Clones that are handed around often lack their largest files. A merge that only has to look at them, to find out
//! whether they were renamed, gets a stand-in: a binary file like no other.

use std::fs;
use std::path::{Path, PathBuf};

use host::git::GitError;
use sha2::{Digest, Sha256};
use testkit::Repo;

/// A merge that lacks more is left out.
const MOST: usize = 60;
const BLOCKS: u8 = 40;

/// Asks git again and again, with a stand-in for each object that it misses in the repository `host.git` of the folder.
pub(crate) async fn with_stand_ins<T>(
    scratch: &Path,
    ask: impl AsyncFn() -> Result<T, GitError>,
) -> Result<T, GitError> {
    for _ in 0..MOST {
        match ask().await {
            Err(error) if let Some(id) = missing(&error.to_string()) => stand_in(scratch, &id),
            seen => return seen,
        }
    }
    ask().await
}

/// The object that git names when it stops.
fn missing(complaint: &str) -> Option<String> {
    let (_, rest) = ["unable to read ", "missing object "]
        .iter()
        .find_map(|words| complaint.rsplit_once(words))?;
    let id: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    (id.len() == 40).then_some(id)
}

/// Git itself writes the stand-in; it is then put where the missing object would be.
fn stand_in(scratch: &Path, id: &str) {
    let mut content = vec![0];
    for block in 0..BLOCKS {
        let name = Sha256::new().chain_update(id).chain_update([block]).finalize();
        content.extend(name.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
        content.push(b'\n');
    }
    let file = scratch.join("stand-in");
    fs::write(&file, content).unwrap();
    let repo = Repo::open(scratch.join("host.git"));
    let made = repo.git(&["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
    let target = loose(repo.dir(), id);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(loose(repo.dir(), made.trim()), target).unwrap();
}

fn loose(repo: &Path, id: &str) -> PathBuf {
    repo.join("objects").join(&id[..2]).join(&id[2..])
}
