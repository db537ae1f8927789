//! The size of a fork's delta after each past merge of upstream.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use merge::resolver::history::MERGES_CAP;
use model::id::Sha;
use shell::Ui;

use super::{ForkDelta, kept_file, load_kept, save_kept};
use crate::exit::{Failure, OrExit};
use crate::rules::delta::page::SizePoint;

/// Lines that differ after a merge, by merge: kept, because a merge never changes.
type KnownSizes = BTreeMap<Sha, u64>;

impl ForkDelta {
    /// Measures the delta after each of the newest merges of upstream on the fork's branch, and as it is now.
    pub(crate) async fn sizes(
        &self,
        ui: &Ui,
        cache: &Path,
        now: Timestamp,
    ) -> Result<Vec<SizePoint>, Failure> {
        let repo = &self.past.sealed;
        let pins = &self.seen.pins;
        let range =
            host::git::LineageRange { tip: &pins.base, siblings: &[], upstream: &pins.upstream };
        let merges = repo.past_merges(range, MERGES_CAP).await.or_machine()?;
        let file = kept_file(cache, &self.seen, "sizes");
        let mut known: KnownSizes = load_kept(&file).unwrap_or_default();
        for (number, merge) in merges.iter().enumerate() {
            if known.contains_key(&merge.sha) {
                continue;
            }
            ui.progress("delta", &format!("measured {number} of {} past merges", merges.len()));
            // One that git cannot compare is left out of the plot.
            let Ok(files) = repo.diff_numbers(&merge.theirs, &merge.sha).await else { continue };
            let lines = files.iter().map(|file| file.insertions + file.deletions).sum();
            known.insert(merge.sha.clone(), lines);
        }
        save_kept(&file, &known);
        let ids: Vec<Sha> = merges.iter().map(|merge| merge.sha.clone()).collect();
        let lines = repo.commit_lines(&ids).await.or_machine()?;
        let mut points: Vec<SizePoint> = lines
            .into_iter()
            .filter_map(|line| {
                let lines = *known.get(&line.sha)?;
                Some(point(line.seconds, line.sha.short().to_owned(), lines))
            })
            .collect();
        points.sort_by_key(|point| point.seconds);
        let today = u64::try_from(self.delta.lines().total()).unwrap_or(u64::MAX);
        points.push(point(now.as_second(), "today".to_owned(), today));
        Ok(points)
    }
}

fn point(seconds: i64, merge: String, lines: u64) -> SizePoint {
    let day = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    SizePoint { seconds, day: day.strftime("%Y-%m-%d").to_string(), merge, lines }
}
