//! Where the bottle of an issue is, from its row and from what is on this disk. Absence on this disk alone removes nothing:
//! another host may have the bottle, and a disk may not be mounted. Pure.

/// Facts about the bottle that the row of an issue names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceFacts<'a> {
    /// The host that the row names; `None` in rows of versions that knew one host only.
    pub(crate) row_host: Option<&'a str>,
    pub(crate) own_host: &'a str,
    pub(crate) folder: FolderState,
}

/// The folder of a bottle on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderState {
    Absent,
    /// It was made, and nothing was put into it.
    Empty,
    /// It has things in it, and no record.
    NoRecord,
    HasRecord,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BottlePlace {
    Here,
    /// A process was killed while it made the bottle; nothing is lost with it.
    HalfMade,
    Elsewhere {
        host: String,
    },
    /// This host has it, and its folder or its record cannot be found.
    Missing,
}

pub(crate) fn place_bottle(facts: PlaceFacts<'_>) -> BottlePlace {
    match (facts.row_host, facts.folder) {
        (Some(host), _) if host != facts.own_host => {
            BottlePlace::Elsewhere { host: host.to_owned() }
        }
        (_, FolderState::HasRecord) => BottlePlace::Here,
        (_, FolderState::Empty) => BottlePlace::HalfMade,
        (_, FolderState::Absent | FolderState::NoRecord) => BottlePlace::Missing,
    }
}

/// Says why a bottle cannot be worked with here; `None` if it can.
pub(crate) fn explain_absence(place: &BottlePlace, slug: &str) -> Option<String> {
    match place {
        BottlePlace::Here | BottlePlace::HalfMade => None,
        BottlePlace::Elsewhere { host } => Some(format!("the bottle '{slug}' is on host {host}")),
        BottlePlace::Missing => Some(format!(
            "the folder of the bottle '{slug}' is missing: mount or restore it, or give it up with: bot-bottle destroy --force {slug}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row_host: Option<&str>, folder: FolderState, place: &BottlePlace) {
        let facts = PlaceFacts { row_host, own_host: "here", folder };
        assert_eq!(place_bottle(facts), *place, "{row_host:?} {folder:?}");
    }

    #[test]
    fn only_a_bottle_of_this_host_that_was_never_filled_is_half_made() {
        for host in [None, Some("here")] {
            check(host, FolderState::HasRecord, &BottlePlace::Here);
            check(host, FolderState::Empty, &BottlePlace::HalfMade);
            check(host, FolderState::NoRecord, &BottlePlace::Missing);
            check(host, FolderState::Absent, &BottlePlace::Missing);
        }
        let elsewhere = BottlePlace::Elsewhere { host: "there".to_owned() };
        for folder in
            [FolderState::Absent, FolderState::Empty, FolderState::NoRecord, FolderState::HasRecord]
        {
            check(Some("there"), folder, &elsewhere);
        }
    }

    #[test]
    fn what_is_not_here_is_explained() {
        assert_eq!(explain_absence(&BottlePlace::Here, "a"), None);
        let there = BottlePlace::Elsewhere { host: "there".to_owned() };
        assert_eq!(
            explain_absence(&there, "a").as_deref(),
            Some("the bottle 'a' is on host there")
        );
        let missing = explain_absence(&BottlePlace::Missing, "a").expect("an explanation");
        assert!(missing.contains("restore it"), "{missing}");
    }
}
