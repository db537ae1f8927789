//! Comparison of the code that a commit changes with the files of another commit, also where that has the code under other
//! names or in other files.

use std::collections::BTreeMap;

use host::git::{ChangedEntry, GitError, SealedRepo};
use merge::likeness::Likeness;
use model::id::Sha;

use crate::rules::security::code_path::is_code;
use crate::rules::security::code_place::{CodePlace, FileFacts, Surroundings, find_code};

/// Bytes of a file whose lines are compared.
const FILE_BYTES: usize = 8 << 20;

/// Files of one commit whose code is looked for in all files.
const MOST_SOUGHT_FILES: usize = 20;

/// Files in which lines of that code are found.
const MOST_PLACES: usize = 200;

/// A commit with its parent and what it changes.
pub(super) struct FixChange {
    pub(super) commit: Sha,
    pub(super) parent: Option<Sha>,
    pub(super) entries: Vec<ChangedEntry>,
    /// True for a commit that joins several and is in no history.
    pub(super) is_made: bool,
}

impl FixChange {
    /// The difference between two commits.
    pub(super) async fn between(
        repo: &SealedRepo,
        before: &Sha,
        after: &Sha,
    ) -> Result<Self, GitError> {
        let entries = repo.changed_entries(before, after).await?;
        let (commit, parent) = (after.clone(), Some(before.clone()));
        Ok(Self { commit, parent, entries, is_made: true })
    }

    /// Regular files with code.
    fn code(&self) -> impl Iterator<Item = &ChangedEntry> {
        let is_wanted = |entry: &&ChangedEntry| {
            is_code(&entry.path) && is_file(entry.old_mode) && is_file(entry.new_mode)
        };
        let entries = self.entries.iter().filter(is_wanted);
        entries.filter(|entry| entry.old.is_some() || entry.new.is_some())
    }
}

/// Mode of a regular file, or of no file at all.
fn is_file(mode: u32) -> bool {
    mode == 0 || mode & 0o170_000 == 0o100_000
}

/// Compares commits with one state of the fork.
pub(super) struct CodeComparison<'a> {
    pub(super) repo: &'a SealedRepo,
    /// The commit whose files are compared.
    pub(super) other: &'a Sha,
    /// The state of upstream that the fork has taken.
    pub(super) common: Option<&'a Sha>,
}

/// A file of a change with the one that it is compared with.
struct ComparedFile<'a> {
    entry: &'a ChangedEntry,
    own: Option<Sha>,
    /// The texts before and after the change; `None` for a large or binary one.
    texts: Option<(Vec<u8>, Vec<u8>)>,
}

impl CodeComparison<'_> {
    pub(super) async fn compare(&self, change: &FixChange) -> Result<FileFacts, GitError> {
        let code: Vec<&ChangedEntry> = change.code().collect();
        let paths: Vec<&[u8]> = code.iter().map(|entry| entry.path.as_slice()).collect();
        let there = self.repo.entries_at(self.other, &paths).await?;
        let common = match self.common {
            Some(common) => self.repo.entries_at(common, &paths).await?,
            None => BTreeMap::new(),
        };
        let lacks_one =
            code.iter().any(|entry| entry.old.is_some() && !there.contains_key(&entry.path));
        let renamed: BTreeMap<Vec<u8>, Sha> = match (&change.parent, lacks_one) {
            (Some(parent), true) => {
                let renames = self.repo.renames(parent, self.other).await?;
                renames.into_iter().map(|rename| (rename.from, rename.id)).collect()
            }
            _ => BTreeMap::new(),
        };
        let mut facts = FileFacts { code_files: code.len(), ..FileFacts::default() };
        let mut files = Vec::new();
        for entry in code {
            let at_path = there.get(&entry.path).map(|it| &it.id);
            let at_common = common.get(&entry.path).map(|it| &it.id);
            facts.as_new += usize::from(at_path == entry.new.as_ref());
            facts.as_common += usize::from(self.common.is_some() && at_path == at_common);
            let own = at_path.or_else(|| renamed.get(&entry.path)).cloned();
            let texts = self.texts(&[entry.old.as_ref(), entry.new.as_ref()]).await?;
            let texts = texts.and_then(|texts| <[Vec<u8>; 2]>::try_from(texts).ok());
            files.push(ComparedFile { entry, own, texts: texts.map(|[old, new]| (old, new)) });
        }
        let places = self.search(&files).await?;
        for (at, file) in files.into_iter().enumerate() {
            self.add(&mut facts, file, places.get(&at)).await?;
        }
        Ok(facts)
    }

    async fn add(
        &self,
        facts: &mut FileFacts,
        file: ComparedFile<'_>,
        place: Option<&CodePlace>,
    ) -> Result<(), GitError> {
        let ComparedFile { entry, mut own, texts } = file;
        match place {
            Some(CodePlace::At { id, moved }) => {
                own = Some(id.clone());
                facts.moved.push(moved.clone());
            }
            Some(CodePlace::Unknown) => facts.unsearched += 1,
            Some(CodePlace::Nowhere) | None => {}
        }
        // A file that the fix adds is missing in every fork that lacks the fix.
        facts.code_files_there += usize::from(own.is_some() || entry.old.is_none());
        // A file that the fork does not have says nothing about its lines, unless the fix adds it.
        if own.is_none() && entry.old.is_some() {
            return Ok(());
        }
        let own = self.texts(&[own.as_ref()]).await?;
        let own = own.as_ref().and_then(|texts| texts.first());
        if let (Some((before, after)), Some(own)) = (&texts, own) {
            facts.likeness += Likeness::measure(before, after, own);
            facts.with_surroundings += usize::from(Surroundings::of(before, after).are_in(own));
        }
        Ok(())
    }

    /// Looks in all files for the code of those that are not there, all at once. Returns the places by the numbers of the files.
    async fn search(
        &self,
        files: &[ComparedFile<'_>],
    ) -> Result<BTreeMap<usize, CodePlace>, GitError> {
        let gone = files.iter().enumerate().filter(|(_, file)| file.own.is_none());
        let sought: BTreeMap<usize, Surroundings> = gone
            .map(|(at, file)| {
                let texts = file.texts.as_ref().filter(|_| at < MOST_SOUGHT_FILES);
                let lines = texts.map(|(before, after)| Surroundings::of(before, after));
                (at, lines.unwrap_or_default())
            })
            .collect();
        let lines: Vec<&[u8]> = sought.values().flat_map(Surroundings::sought).collect();
        let found = self.repo.files_with_text(self.other, &lines).await?;
        let found: Vec<&[u8]> =
            found.iter().map(Vec::as_slice).filter(|path| is_code(path)).collect();
        if found.len() > MOST_PLACES {
            return Ok(sought.into_keys().map(|at| (at, CodePlace::Unknown)).collect());
        }
        let entries = self.repo.entries_at(self.other, &found).await?;
        let mut texts: BTreeMap<Vec<u8>, (Sha, Vec<u8>)> = BTreeMap::new();
        for (path, entry) in entries.into_iter().filter(|(_, entry)| is_file(entry.mode)) {
            if let Some(text) = self.texts(&[Some(&entry.id)]).await?.and_then(|mut it| it.pop()) {
                texts.insert(path, (entry.id, text));
            }
        }
        let places = sought.into_iter().map(|(at, lines)| (at, find_code(&lines, &texts)));
        Ok(places.collect())
    }

    /// The texts of blobs, empty where there is no file; `None` if one is large or binary.
    async fn texts(&self, ids: &[Option<&Sha>]) -> Result<Option<Vec<Vec<u8>>>, GitError> {
        let wanted: Vec<Sha> = ids.iter().filter_map(|id| id.cloned()).collect();
        let mut blobs = self.repo.read_blobs(&wanted, FILE_BYTES).await?.into_iter();
        let texts = ids.iter().map(|id| match id {
            None => Some(Vec::new()),
            Some(_) => {
                let blob = blobs.next().flatten()?;
                let is_text = !blob.bytes.contains(&0) && blob.size <= FILE_BYTES as u64;
                is_text.then_some(blob.bytes)
            }
        });
        Ok(texts.collect())
    }
}
