//! ACTIVE_WORKSTREAMS.md, rebuilt from the existing workstreams.

use super::project_dirs::{ACTIVE, ProjectDirs};
use super::touched::TouchedLists;
use super::workstream::Workstream;
use super::{DiskError, DiskResult, save_derived};
use crate::rules::active::{ActiveRow, render_active};
use crate::rules::status::WorkstreamStatus;
use crate::rules::touched::parse_touched;

impl ProjectDirs {
    /// Writes the table, and returns the errors of unreadable workstreams. The caller holds the global lock.
    pub(crate) fn write_active(&self) -> DiskResult<Vec<DiskError>> {
        let (workstreams, faults) = self.load_workstreams()?;
        self.write_active_of(&workstreams)?;
        Ok(faults)
    }

    /// Writes the table of these workstreams, which were read under the global lock.
    pub(crate) fn write_active_of(&self, workstreams: &[Workstream]) -> DiskResult<()> {
        let active: Vec<&Workstream> = workstreams.iter().filter(|ws| is_active(ws)).collect();
        let touched = TouchedLists::load(&active)?;
        let rows: Vec<ActiveRow<'_>> = active
            .iter()
            .zip(touched.iter())
            .map(|(ws, touched)| ActiveRow {
                meta: &ws.meta,
                touched: parse_touched(touched).count(),
            })
            .collect();
        let page = render_active(self.project.name.as_str(), &rows);
        save_derived(&self.dir.join(ACTIVE), page.as_bytes())
    }
}

pub(crate) fn is_active(workstream: &Workstream) -> bool {
    workstream.meta.status != WorkstreamStatus::Done
}
