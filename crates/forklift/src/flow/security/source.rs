//! Reads advisories: from a folder of OSV files, from a git repository on this machine, or from the copy of a remote one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::git::{FetchProgress, SealedRepo, UserRepo, init_source};
use jiff::Timestamp;
use model::id::{RemoteName, Sha};
use shell::Ui;
use shell::progress::while_fetching;
use tempfile::TempDir;

use crate::exit::{Failure, OrExit};
use crate::flow::observe::known_default_branch;
use crate::rules::security::advisory::{Advisory, AdvisoryId};
use crate::rules::security::finding::Database;
use crate::rules::security::osv::{MOST_BYTES, OsvFault, OsvFormat, parse_osv};
use crate::rules::security::source_name::SourceName;
use crate::rules::words::counted;

/// Files of one source; all of OSV.dev has about 400,000.
const MOST_FILES: usize = 600_000;

/// Depth of folders.
const MOST_DEPTH: usize = 12;

/// Files between two counts of the progress.
const STEP: usize = 500;

/// Files of one batch from a repository.
const BATCH_FILES: usize = 2000;

const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// An advisory with the file that it is in.
#[derive(Debug, Clone)]
pub(crate) struct FoundAdvisory {
    pub(crate) database: String,
    pub(crate) file: String,
    pub(crate) advisory: Advisory,
}

/// Reading of all sources.
#[derive(Debug, Default)]
pub(crate) struct LoadedAdvisories {
    pub(crate) advisories: Vec<FoundAdvisory>,
    pub(crate) databases: Vec<Database>,
}

impl LoadedAdvisories {
    /// Reads every source. Those with an address are read from the copy of this machine, which `update` renews first.
    pub(crate) async fn read(
        ui: &Ui,
        sources: &[SourceName],
        cache: &Path,
        update: bool,
    ) -> Result<Self, Failure> {
        let mut loaded = Self::default();
        for source in sources {
            let shown = source.to_string();
            ui.phase("advisories", &format!("reading {shown}"));
            match locate(ui, source, cache, update).await? {
                SourcePlace::Folder(path) => loaded.read_folder(ui, &shown, &path)?,
                SourcePlace::Repository(path) => {
                    loaded.read_repository(ui, &shown, &path, source.git_ref()).await?;
                }
            }
        }
        Ok(loaded)
    }

    /// Leaves out withdrawn advisories and copies older than another. Of copies that say no date all stay.
    pub(super) fn keep_newest(&mut self) {
        let mut newest: BTreeMap<AdvisoryId, Timestamp> = BTreeMap::new();
        for FoundAdvisory { advisory, .. } in &self.advisories {
            if let Some(at) = advisory.modified {
                let known = newest.entry(advisory.id.clone()).or_insert(at);
                *known = (*known).max(at);
            }
        }
        self.advisories.retain(|FoundAdvisory { advisory, .. }| {
            advisory.modified == newest.get(&advisory.id).copied() && !advisory.is_withdrawn
        });
    }

    fn read_folder(&mut self, ui: &Ui, shown: &str, root: &Path) -> Result<(), Failure> {
        let mut list = FileList::default();
        list.add(root, Path::new(""), 0).map_err(|error| {
            Failure::usage(format!("could not read {}: {error}", root.display()))
        })?;
        let FileList { files, refused } = list;
        let mut reader = Reader::new(shown, None);
        for (path, reason) in refused {
            reader.refuse(&path.to_string_lossy(), reason);
        }
        for (number, file) in files.iter().enumerate() {
            if number % STEP == 0 {
                ui.progress("advisories", &format!("read {number} of {} files", files.len()));
            }
            let name = file.to_string_lossy().into_owned();
            match host::safe_read::read_beneath(root, &name, MOST_BYTES + 1) {
                Ok(Some(read)) => reader.take(&name, &read.bytes),
                Ok(None) => {}
                Err(refused) => reader.refuse(&name, &refused.to_string()),
            }
        }
        self.add(reader, root)
    }

    async fn read_repository(
        &mut self,
        ui: &Ui,
        shown: &str,
        path: &Path,
        name: Option<&str>,
    ) -> Result<(), Failure> {
        let user = UserRepo::discover(path).await.or_machine()?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => default_ref(&user).await?,
        };
        let remote = format!("refs/remotes/origin/{name}");
        let (commit, fetched) =
            tokio::try_join!(user.resolve_commit(&name), user.resolve_commit(&remote))
                .or_machine()?;
        let commit = fetched.or(commit).ok_or_else(|| {
            Failure::usage(format!("{shown} has no branch, tag or commit '{name}'"))
        })?;
        let scratch = TempDir::new().or_machine()?;
        let read = scratch.path().join("read.git");
        let sealed = SealedRepo::init_bare(&read, user.object_format()).await.or_machine()?;
        sealed.add_alternate(&user.objects_dir()).or_machine()?;
        let entries = sealed.list_entries(&commit).await.or_machine()?;
        let is_file = |mode: u32| mode & 0o170_000 == 0o100_000;
        let mut files: Vec<(String, Sha)> = entries
            .into_iter()
            .filter(|(path, entry)| is_file(entry.mode) && OsvFormat::of_name(path).is_some())
            .map(|(path, entry)| (String::from_utf8_lossy(&path).into_owned(), entry.id))
            .collect();
        let mut reader = Reader::new(shown, Some(commit));
        for (name, _) in files.drain(files.len().min(MOST_FILES)..) {
            reader.refuse(&name, "there are too many files");
        }
        for (number, batch) in files.chunks(BATCH_FILES).enumerate() {
            let done = number * BATCH_FILES;
            ui.progress("advisories", &format!("read {done} of {} files", files.len()));
            let ids: Vec<Sha> = batch.iter().map(|(_, id)| id.clone()).collect();
            let blobs = sealed.read_blobs(&ids, MOST_BYTES + 1).await.or_machine()?;
            for ((name, _), blob) in batch.iter().zip(blobs) {
                match blob {
                    Some(blob) => reader.take(name, &blob.bytes),
                    None => reader.refuse(name, "its object is missing"),
                }
            }
        }
        self.add(reader, path)
    }

    fn add(&mut self, reader: Reader, place: &Path) -> Result<(), Failure> {
        let Reader { database, found } = reader;
        if database.files == 0 {
            return Err(Failure::usage(format!(
                "{} has no advisories: no file ends with .json, .yaml or .yml{}",
                place.display(),
                match &database.first_unreadable {
                    Some(reason) => format!(", or none can be read ({reason})"),
                    None => String::new(),
                }
            )));
        }
        self.databases.push(database);
        self.advisories.extend(found);
        Ok(())
    }
}

/// Reader of one source.
struct Reader {
    database: Database,
    found: Vec<FoundAdvisory>,
}

impl Reader {
    fn new(source: &str, commit: Option<Sha>) -> Self {
        let database = Database {
            source: source.to_owned(),
            commit,
            files: 0,
            matching: 0,
            unreadable: 0,
            first_unreadable: None,
        };
        Self { database, found: Vec::new() }
    }

    fn take(&mut self, name: &str, bytes: &[u8]) {
        let Some(format) = OsvFormat::of_name(name.as_bytes()) else { return };
        match parse_osv(bytes, format) {
            Ok(advisory) => {
                self.database.files += 1;
                let (database, file) = (self.database.source.clone(), name.to_owned());
                self.found.push(FoundAdvisory { database, file, advisory });
            }
            // Settings of a package or of a forge, beside the advisories.
            Err(OsvFault::Other) => {}
            Err(fault) => self.refuse(name, &fault.to_string()),
        }
    }

    fn refuse(&mut self, name: &str, reason: &str) {
        self.database.unreadable += 1;
        self.database.first_unreadable.get_or_insert_with(|| format!("{name}: {reason}"));
    }
}

/// The default branch of a copy, or the checked out commit of a repository.
async fn default_ref(repo: &UserRepo) -> Result<String, Failure> {
    if repo.resolve_commit("HEAD").await.or_machine()?.is_some() {
        return Ok("HEAD".to_owned());
    }
    let origin = RemoteName::parse("origin").or_machine()?;
    Ok(known_default_branch(repo, &origin).await?.to_string())
}

enum SourcePlace {
    Folder(PathBuf),
    Repository(PathBuf),
}

/// Finds a source on this machine; one with an address has a copy in the cache.
async fn locate(
    ui: &Ui,
    source: &SourceName,
    cache: &Path,
    update: bool,
) -> Result<SourcePlace, Failure> {
    let (path, wants_ref) = match source {
        SourceName::Path { path, git_ref } => (path.clone(), git_ref.is_some()),
        SourceName::Address { url, .. } => return fetch_copy(ui, url, cache, update).await,
    };
    if !path.is_dir() {
        return Err(Failure::usage(format!(
            "there is no folder {} with advisories",
            path.display()
        )));
    }
    let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
    Ok(match is_bare || wants_ref {
        true => SourcePlace::Repository(path),
        false => SourcePlace::Folder(path),
    })
}

async fn fetch_copy(
    ui: &Ui,
    url: &str,
    cache: &Path,
    update: bool,
) -> Result<SourcePlace, Failure> {
    let folder = cache.join("advisories");
    let path = folder.join(format!("{}.git", model::digest::short_sha256(url.as_bytes(), 10)));
    let is_there = path.join("HEAD").is_file();
    if !update && !is_there {
        return Err(Failure::usage(format!("there is no copy of {url} on this machine"))
            .with_remedy("get it, where there is a network, with: forklift security --update"));
    }
    if update {
        host::file::create_dirs(&folder).or_machine()?;
        if !is_there {
            init_source(&path, url).await.or_machine()?;
        }
        let repo = UserRepo::discover(&path).await.or_machine()?;
        let origin = RemoteName::parse("origin").or_machine()?;
        let progress = FetchProgress::default();
        let fetching = repo.fetch(&origin, FETCH_LIMIT, &progress);
        let fetched = while_fetching(ui, &[(url, &progress)], fetching).await;
        if let Err(error) = fetched {
            if !is_there {
                drop(host::file::remove_tree_safely(&path));
            }
            let text = format!("cannot fetch {url}: {}", error.reason());
            return Err(Failure::new(model::exit::ForkliftExit::Machine, text));
        }
    }
    Ok(SourcePlace::Repository(path))
}

/// Files of a folder that may be advisories, and what cannot be looked at.
#[derive(Default)]
struct FileList {
    files: Vec<PathBuf>,
    refused: Vec<(PathBuf, &'static str)>,
}

impl FileList {
    /// Lists regular files, without following links and without repositories' own folders.
    fn add(&mut self, root: &Path, below: &Path, depth: usize) -> std::io::Result<()> {
        if depth > MOST_DEPTH {
            self.refused.push((below.to_path_buf(), "the folder is too deep"));
            return Ok(());
        }
        let mut entries: Vec<_> = std::fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let path = below.join(&name);
            if kind.is_dir() && name != ".git" {
                self.add(root, &path, depth + 1)?;
            } else if kind.is_file() && OsvFormat::of_name(name.as_encoded_bytes()).is_some() {
                match self.files.len() < MOST_FILES {
                    true => self.files.push(path),
                    false => self.refused.push((path, "there are too many files")),
                }
            }
        }
        Ok(())
    }
}

/// Tells how many advisories were read.
pub(crate) fn read_words(databases: &[Database]) -> String {
    let files: usize = databases.iter().map(|database| database.files).sum();
    let matching: usize = databases.iter().map(|database| database.matching).sum();
    let noun = if files == 1 { "advisory" } else { "advisories" };
    format!("{matching} of {files} {noun} in {}", counted(databases.len(), "source"))
}
