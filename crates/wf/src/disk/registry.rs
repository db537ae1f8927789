//! ACTIVE_WORKSTREAMS.md, made anew from the workstreams that are there.

use super::site::{ACTIVE, Site};
use super::workstream::Workstream;
use super::{DiskError, save};
use crate::rules::active::{Row, render_active};
use crate::rules::status::WorkstreamStatus;
use crate::rules::touched::parse_touched;

impl Site {
    /// Writes the table; the caller holds the global lock. The faults of workstreams that could not be read are
    /// returned, and the table is written without them (D107).
    pub(crate) fn write_active(&self) -> Result<Vec<DiskError>, DiskError> {
        let (workstreams, faults) = self.load_workstreams()?;
        let active: Vec<&Workstream> = workstreams.iter().filter(|ws| is_active(ws)).collect();
        let mut rows = Vec::with_capacity(active.len());
        for workstream in active {
            let touched = parse_touched(&workstream.touched()?).count();
            rows.push(Row { meta: &workstream.meta, touched });
        }
        let page = render_active(self.project.name.as_str(), &rows);
        save(&self.dir.join(ACTIVE), page.as_bytes())?;
        Ok(faults)
    }
}

/// Whether a workstream still takes part (D107).
pub(crate) fn is_active(workstream: &Workstream) -> bool {
    workstream.meta.status != WorkstreamStatus::Done
}
