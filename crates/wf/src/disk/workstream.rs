//! A workstream's folder: its meta.env, its plan, the files it has touched.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::env_file::EnvFile;
use model::id::{MicroCommitId, WorkstreamId};

use super::project_dirs::{CLOSED, ProjectDirs};
use super::{
    DiskError, DiskResult, load_env, load_text, names_in, read_optional, remove_optional, save,
    spread,
};
use crate::rules::meta::{Meta, parse_meta, stamp, unknown_keys};
use crate::rules::plan::{Plan, PlanError, parse_plan};
use crate::rules::status::WorkstreamStatus;
use crate::rules::suggest::hint;

pub(crate) const META: &str = "meta.env";
pub(crate) const PLAN: &str = "plan.md";
pub(crate) const NOTES: &str = "notes.md";
pub(crate) const TOUCHED: &str = "touched_files.txt";
pub(crate) const DOCS_MANIFEST: &str = "docs_manifest.json";

#[derive(Debug, Clone)]
pub(crate) struct Workstream {
    pub(crate) dir: PathBuf,
    pub(crate) meta: Meta,
    file: EnvFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Safe,
    /// The change may be lost in a power failure, such as a refresh time.
    Quick,
}

impl Workstream {
    pub(crate) fn load_dir(dir: &Path) -> DiskResult<Self> {
        let path = dir.join(META);
        if path.is_dir() {
            return Err(DiskError::invalid(&path, "this is a folder, not a file"));
        }
        let file = load_env(&path)?.ok_or_else(|| {
            let id = folder_of(dir);
            DiskError::invalid(&path, format!("there is no such file; {}", remedy_without_meta(id)))
        })?;
        let meta = parse_meta(&file, folder_of(dir)).map_err(DiskError::in_file(&path))?;
        Ok(Self { dir: dir.to_path_buf(), meta, file })
    }

    /// Loads an archived workstream, whose folder has a time in its name.
    pub(crate) fn load_archived(dir: &Path) -> DiskResult<Self> {
        let path = dir.join(META);
        let file =
            load_env(&path)?.ok_or_else(|| DiskError::invalid(&path, "there is no such file"))?;
        let id = file.get("ID").unwrap_or_default().to_owned();
        let meta = parse_meta(&file, &id).map_err(DiskError::in_file(&path))?;
        Ok(Self { dir: dir.to_path_buf(), meta, file })
    }

    /// Changes keys of the current file, which may be newer than what was read. The caller holds the global lock.
    pub(crate) fn change(&mut self, changes: &[(&str, &str)]) -> DiskResult<()> {
        *self = Self::load_dir(&self.dir)?;
        self.change_known(changes, Durability::Safe)
    }

    pub(crate) fn set_status(
        &mut self,
        status: WorkstreamStatus,
        blocked_by: &str,
    ) -> DiskResult<()> {
        self.change(&[("STATUS", status.word()), ("BLOCKED_BY", blocked_by)])
    }

    /// Changes keys of a workstream that the caller read under the lock and still holds.
    pub(crate) fn change_known(
        &mut self,
        changes: &[(&str, &str)],
        durability: Durability,
    ) -> DiskResult<()> {
        let path = self.dir.join(META);
        let mut file = self.file.clone();
        for (key, value) in changes {
            file.set(key, value).map_err(DiskError::in_file(&path))?;
        }
        // A file that could not be read back is not written.
        let meta = parse_meta(&file, folder_of(&self.dir)).map_err(DiskError::in_file(&path))?;
        let text = file.to_string();
        match durability {
            Durability::Safe => save(&path, text.as_bytes())?,
            Durability::Quick => {
                host::file::write_transient(&path, text.as_bytes(), super::SHARED)?;
            }
        }
        (self.meta, self.file) = (meta, file);
        Ok(())
    }

    pub(crate) fn unknown_keys(&self) -> Vec<&str> {
        unknown_keys(&self.file)
    }

    pub(crate) fn plan_path(&self) -> PathBuf {
        self.dir.join(PLAN)
    }

    pub(crate) fn plan_text(&self) -> DiskResult<Option<String>> {
        load_text(&self.plan_path())
    }

    pub(crate) fn load_plan(&self) -> DiskResult<Plan> {
        let plan = self.find_plan()?;
        plan.ok_or_else(|| DiskError::invalid(&self.plan_path(), "there is no such file"))
    }

    /// The plan, if there is a file of it.
    pub(crate) fn find_plan(&self) -> DiskResult<Option<Plan>> {
        let text = self.plan_text()?;
        let plan = text.as_deref().map(parse_plan).transpose();
        plan.map_err(DiskError::in_file(&self.plan_path()))
    }

    /// Marks a micro-commit in the plan and returns the new text; none if the plan has no such micro-commit.
    pub(crate) fn mark_plan(
        &self,
        mark: fn(&str, &MicroCommitId) -> Result<Option<String>, PlanError>,
        id: &MicroCommitId,
    ) -> DiskResult<Option<String>> {
        let (path, text) = (self.plan_path(), self.plan_text()?.unwrap_or_default());
        let marked = mark(&text, id).map_err(DiskError::in_file(&path))?;
        if let Some(marked) = marked.as_ref().filter(|marked| **marked != text) {
            save(&path, marked.as_bytes())?;
        }
        Ok(marked)
    }

    pub(crate) fn touched(&self) -> DiskResult<Vec<u8>> {
        Ok(read_optional(&self.dir.join(TOUCHED))?.unwrap_or_default())
    }

    pub(crate) fn note(&self, message: &str, now: Timestamp) -> DiskResult<()> {
        Ok(host::file::append_line(&self.dir.join(NOTES), &format!("- {}: {message}", stamp(now)))?)
    }
}

fn remedy_without_meta(id: &str) -> String {
    format!("restore it, or remove what is left: wf delete {id} --confirm")
}

fn folder_of(dir: &Path) -> &str {
    dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

impl ProjectDirs {
    /// The names of all workstreams that are not closed.
    pub(crate) fn workstream_names(&self) -> DiskResult<Vec<String>> {
        let mut names = names_in(&self.workstreams_dir())?;
        names.retain(|name| name != CLOSED && WorkstreamId::parse(name).is_ok());
        Ok(names)
    }

    pub(crate) fn find_workstream(&self, typed: &str) -> DiskResult<Workstream> {
        let id =
            WorkstreamId::parse(typed).map_err(|error| DiskError::Setting(error.to_string()))?;
        let dir = self.workstream_dir(&id);
        if !dir.is_dir() {
            let names = self.workstream_names()?;
            let hint = hint(typed, names.iter().map(String::as_str));
            return Err(DiskError::Unknown {
                kind: "workstream",
                name: typed.to_owned(),
                hint,
                list: "wf list",
            });
        }
        Workstream::load_dir(&dir)
    }

    /// Warns about folders without meta.env. They are not workstreams, and the others are not affected.
    pub(crate) fn folders_without_meta(&self) -> DiskResult<Vec<String>> {
        let mut names = self.workstream_names()?;
        names.retain(|name| self.lacks_meta(name));
        let above = self.workstreams_dir();
        let warning = |name: &String| {
            let folder = above.join(name);
            format!("{} has no meta.env: {}", folder.display(), remedy_without_meta(name))
        };
        Ok(names.iter().map(warning).collect())
    }

    fn lacks_meta(&self, name: &str) -> bool {
        let folder = self.workstreams_dir().join(name);
        folder.is_dir() && folder.join(META).symlink_metadata().is_err()
    }

    /// Reads all workstreams, and the errors of those that cannot be read.
    pub(crate) fn load_workstreams(&self) -> DiskResult<(Vec<Workstream>, Vec<DiskError>)> {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let above = self.workstreams_dir();
        let mut names = self.workstream_names()?;
        names.retain(|name| !self.lacks_meta(name));
        for loaded in spread(names, |name| Workstream::load_dir(&above.join(name))) {
            match loaded {
                Ok(workstream) => good.push(workstream),
                Err(error) => bad.push(error),
            }
        }
        Ok((good, bad))
    }

    /// Reads the closed workstreams, the oldest first, and the errors of those that cannot be read.
    pub(crate) fn load_closed(&self) -> DiskResult<(Vec<Workstream>, Vec<DiskError>)> {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for dir in self.closed_dirs()? {
            match Workstream::load_archived(&dir) {
                Ok(workstream) => good.push(workstream),
                Err(error) => bad.push(error),
            }
        }
        Ok((good, bad))
    }

    pub(crate) fn closed_dirs(&self) -> DiskResult<Vec<PathBuf>> {
        let dir = self.closed_dir();
        Ok(names_in(&dir)?.into_iter().map(|name| dir.join(name)).collect())
    }

    pub(crate) fn set_current(&self, id: &WorkstreamId) -> DiskResult<()> {
        super::make_dir(&self.state_dir())?;
        save(&self.current_path(), format!("{id}\n").as_bytes())
    }

    pub(crate) fn clear_current(&self) -> DiskResult<()> {
        remove_optional(&self.current_path())
    }

    pub(crate) fn current(&self) -> Option<String> {
        let text = fs::read_to_string(self.current_path()).ok()?;
        Some(text.trim().to_owned()).filter(|id| self.workstreams_dir().join(id).is_dir())
    }

    fn current_path(&self) -> PathBuf {
        self.state_dir().join(format!("{}.current", self.project.name))
    }
}
