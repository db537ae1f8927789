//! Where the bottle of an issue is, from its row and from what is on this disk. Absence on this disk alone removes nothing:
//! another host may have the bottle, and a disk may not be mounted. Pure.

/// Facts about the bottle that the row of an issue names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceFacts<'a> {
    /// The host that the row names; `None` in rows of versions that knew one host only.
    pub(crate) row_host: Option<&'a str>,
    pub(crate) own_host: &'a str,
    /// Its newest state in the store of bottles; `None` without one, or without a store.
    pub(crate) saved: Option<&'a str>,
    pub(crate) folder: &'a FolderState,
}

/// The folder of a bottle on this disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderState {
    Absent,
    /// It was made, and nothing was put into it.
    Empty,
    /// It has things in it, and no record.
    NoRecord,
    HasRecord {
        mark: Option<SavedMark>,
    },
}

/// State in the store of bottles that a folder is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedMark {
    /// The manifest that it was saved as or fetched from.
    pub(crate) manifest: Option<String>,
    /// Its number among those of the bottle.
    pub(crate) generation: u64,
    /// True since something was done in the folder.
    pub(crate) is_changed: bool,
    /// True if only the records of its runs are here.
    pub(crate) is_trimmed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BottlePlace {
    Here,
    /// The row names another host, and the folder on this disk is of its newest state.
    Cached,
    /// The store of bottles has it, and this disk has not, or an older state.
    Stored,
    /// A process was killed while it made the bottle; nothing is lost with it.
    HalfMade,
    Elsewhere {
        host: String,
    },
    /// This host has it, and its folder or its record cannot be found.
    Missing,
}

/// A state in the store of bottles, by the name that rows have of it: the bottle's own and the manifest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavedName<'a> {
    pub(crate) bottle: &'a str,
    pub(crate) manifest: &'a str,
}

impl<'a> SavedName<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (bottle, manifest) = text.split_once('/')?;
        Some(Self { bottle, manifest })
    }

    /// The number of the manifest among those of the bottle.
    fn generation(self) -> u64 {
        let number = self.manifest.split('-').next().and_then(|it| it.parse().ok());
        number.unwrap_or_default()
    }
}

pub(crate) fn place_bottle(facts: PlaceFacts<'_>) -> BottlePlace {
    let PlaceFacts { row_host, own_host, saved, folder } = facts;
    let other = row_host.filter(|host| *host != own_host);
    match (other, saved.and_then(SavedName::parse)) {
        (Some(host), None) => BottlePlace::Elsewhere { host: host.to_owned() },
        (Some(_), Some(saved)) => match folder {
            FolderState::HasRecord { mark: Some(mark) } if mark.is_whole_copy_of(saved) => {
                BottlePlace::Cached
            }
            _ => BottlePlace::Stored,
        },
        (None, None) => match folder {
            FolderState::HasRecord { .. } => BottlePlace::Here,
            FolderState::Empty => BottlePlace::HalfMade,
            FolderState::Absent | FolderState::NoRecord => BottlePlace::Missing,
        },
        (None, Some(saved)) => match folder {
            // A newer one was saved by a process that was killed before it wrote the row.
            FolderState::HasRecord { mark: Some(mark) }
                if !mark.is_trimmed && mark.generation >= saved.generation() =>
            {
                BottlePlace::Here
            }
            // Without a mark, or with an older one, the disk was restored to an earlier time.
            _ => BottlePlace::Stored,
        },
    }
}

impl SavedMark {
    fn is_whole_copy_of(&self, saved: SavedName<'_>) -> bool {
        let is_whole = !self.is_changed && !self.is_trimmed;
        is_whole && self.manifest.as_deref() == Some(saved.manifest)
    }
}

/// Says why a bottle cannot be worked with here; `None` if it can.
pub(crate) fn explain_absence(place: &BottlePlace, slug: &str) -> Option<String> {
    match place {
        BottlePlace::Here | BottlePlace::HalfMade | BottlePlace::Cached | BottlePlace::Stored => {
            None
        }
        BottlePlace::Elsewhere { host } => Some(format!("the bottle '{slug}' is on host {host}")),
        BottlePlace::Missing => Some(format!(
            "the folder of the bottle '{slug}' is missing: mount or restore it, or give it up with: bot-bottle destroy --force {slug}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "ab12/00000003-cd";

    #[track_caller]
    fn check(
        row_host: Option<&str>,
        saved: Option<&str>,
        folder: &FolderState,
        place: &BottlePlace,
    ) {
        let facts = PlaceFacts { row_host, own_host: "here", saved, folder };
        assert_eq!(place_bottle(facts), *place, "{row_host:?} {saved:?} {folder:?}");
    }

    fn marked(generation: u64, manifest: &str) -> SavedMark {
        let manifest = Some(manifest.to_owned());
        SavedMark { manifest, generation, ..SavedMark::default() }
    }

    fn record(mark: Option<SavedMark>) -> FolderState {
        FolderState::HasRecord { mark }
    }

    #[test]
    fn only_a_bottle_of_this_host_that_was_never_filled_is_half_made() {
        for host in [None, Some("here")] {
            check(host, None, &record(None), &BottlePlace::Here);
            check(host, None, &FolderState::Empty, &BottlePlace::HalfMade);
            check(host, None, &FolderState::NoRecord, &BottlePlace::Missing);
            check(host, None, &FolderState::Absent, &BottlePlace::Missing);
        }
        let elsewhere = BottlePlace::Elsewhere { host: "there".to_owned() };
        for folder in [FolderState::Absent, FolderState::Empty, FolderState::NoRecord, record(None)]
        {
            check(Some("there"), None, &folder, &elsewhere);
        }
    }

    #[test]
    fn a_saved_bottle_is_fetched_unless_the_folder_here_is_its_newest_state() {
        let same = marked(3, "00000003-cd");
        let changed = SavedMark { is_changed: true, ..same.clone() };
        let trimmed = SavedMark { is_trimmed: true, ..same.clone() };
        let (older, newer) = (marked(2, "00000002-ab"), marked(4, "00000004-ef"));
        let other_of_same_number = marked(3, "00000003-ff");
        let (here, there) = (Some("here"), Some("there"));
        for (mark, own, others) in [
            (Some(same), BottlePlace::Here, BottlePlace::Cached),
            // Work is under way in the own folder; in one of another host's bottle it was given up.
            (Some(changed), BottlePlace::Here, BottlePlace::Stored),
            (Some(newer), BottlePlace::Here, BottlePlace::Stored),
            (Some(other_of_same_number), BottlePlace::Here, BottlePlace::Stored),
            (Some(older), BottlePlace::Stored, BottlePlace::Stored),
            (Some(trimmed), BottlePlace::Stored, BottlePlace::Stored),
            (None, BottlePlace::Stored, BottlePlace::Stored),
        ] {
            check(here, Some(SAVED), &record(mark.clone()), &own);
            check(None, Some(SAVED), &record(mark.clone()), &own);
            check(there, Some(SAVED), &record(mark), &others);
        }
        for folder in [FolderState::Absent, FolderState::Empty, FolderState::NoRecord] {
            check(here, Some(SAVED), &folder, &BottlePlace::Stored);
            check(there, Some(SAVED), &folder, &BottlePlace::Stored);
        }
    }

    #[test]
    fn what_is_not_here_is_explained() {
        for place in [BottlePlace::Here, BottlePlace::Cached, BottlePlace::Stored] {
            assert_eq!(explain_absence(&place, "a"), None);
        }
        let there = BottlePlace::Elsewhere { host: "there".to_owned() };
        assert_eq!(
            explain_absence(&there, "a").as_deref(),
            Some("the bottle 'a' is on host there")
        );
        let missing = explain_absence(&BottlePlace::Missing, "a").expect("an explanation");
        assert!(missing.contains("restore it"), "{missing}");
    }
}
