//! Words about what a result has and neither git's merge nor a resolution of a conflict explains. Pure.

use std::collections::BTreeMap;

use host::git::TreeEntry;
use model::id::Sha;

use super::observe::{PathVersions, text_of};
use super::regions::TextAccount;
use super::{Departure, DepartureKind, DepartureRank};
use crate::contract::plural;
use crate::entry::is_file;
use crate::path::TreePath;

pub(super) fn departure(
    path: &PathVersions,
    compared: &TextAccount,
    contents: &BTreeMap<Sha, Vec<u8>>,
) -> Option<Departure> {
    let gutted = compared.gutted;
    let say = |kind, detail: String| {
        let rank = rank_of(compared);
        Some(Departure { path: TreePath::new(path.path.as_slice()), kind, detail, gutted, rank })
    };
    if let Some(name) = &path.moved_to {
        let name = TreePath::new(name.as_slice());
        return say(
            DepartureKind::Renamed,
            format!("is now {name}, a name that neither side gave it"),
        );
    }
    let (merged, result) = match (&path.merged, &path.result) {
        (None, Some(result)) => {
            return say(DepartureKind::Added, added_words(path, result, compared, contents));
        }
        (_, None) => return say(DepartureKind::Removed, "is gone".to_owned()),
        (Some(merged), Some(result)) => (merged, result),
    };
    if merged.mode != result.mode {
        let modes = format!("mode {:o} is {:o} now", merged.mode, result.mode);
        return say(DepartureKind::Mode, modes);
    }
    say(DepartureKind::Content, strange_lines(compared))
}

/// Words about a file that neither side has: its type, what its lines may do, and a name that it could be taken for.
fn added_words(
    path: &PathVersions,
    result: &TreeEntry,
    compared: &TextAccount,
    contents: &BTreeMap<Sha, Vec<u8>>,
) -> String {
    let mut parts = vec!["neither side has it".to_owned()];
    let is_binary = is_file(result) && text_of(Some(result), contents).is_none();
    let kind = match () {
        () if !is_file(result) => Some("no regular file"),
        () if is_binary => Some("binary or large"),
        () if result.mode & 0o111 != 0 => Some("executable"),
        () => None,
    };
    parts.extend(kind.map(str::to_owned));
    parts.extend(suspicions(compared));
    let alike = path.alike.as_ref().map(|name| TreePath::new(name.as_slice()));
    parts.extend(alike.map(|name| format!("its name can be taken for {name}")));
    parts.join(", ")
}

/// Words about lines and modes that a file in conflict has or lacks and that no resolution of the conflict explains.
pub(super) fn beyond_conflict(path: &PathVersions, compared: &TextAccount) -> Option<Departure> {
    let result = path.result.as_ref()?;
    let sides = || [&path.fork, &path.upstream].into_iter().flatten();
    let is_strange = sides().count() > 0 && sides().all(|side| side.mode != result.mode);
    let (kind, detail) = if is_strange {
        (
            DepartureKind::Mode,
            format!("beyond the conflict: mode {:o}, which neither side has", result.mode),
        )
    } else {
        (DepartureKind::Content, conflict_lines(compared))
    };
    let is_inside = lines_beyond(compared).is_empty() && !compared.made_of_new_tokens;
    let rank = match rank_of(compared) {
        DepartureRank::Usual if kind == DepartureKind::Content && is_inside => {
            DepartureRank::InConflict
        }
        rank => rank,
    };
    (!detail.is_empty()).then(|| Departure {
        path: TreePath::new(path.path.as_slice()),
        kind,
        detail,
        gutted: compared.gutted,
        rank,
    })
}

fn rank_of(compared: &TextAccount) -> DepartureRank {
    match () {
        () if !suspicions(compared).is_empty() => DepartureRank::Suspicious,
        () if compared.only_blanks => DepartureRank::Blank,
        () => DepartureRank::Usual,
    }
}

/// Lines of the result that no side explains.
fn strange_lines(compared: &TextAccount) -> String {
    let mut parts = lines_beyond(compared);
    parts.extend(suspicions(compared));
    if compared.only_blanks && parts.is_empty() {
        parts.push("only line ends, blanks or empty lines differ".to_owned());
    }
    parts.join(", ")
}

/// The same for a file in conflict. A line in the place of a conflict may combine both sides.
fn conflict_lines(compared: &TextAccount) -> String {
    let beyond = lines_beyond(compared);
    let mut parts = Vec::new();
    parts.extend((compared.lines_made > 0).then(|| {
        let made = plural(compared.lines_made, "line");
        format!("inside the conflict: {made} that neither side has as it is")
    }));
    parts.extend(
        (!beyond.is_empty()).then(|| format!("beyond the conflict: {}", beyond.join(", "))),
    );
    parts.extend(suspicions(compared));
    parts.join(", ")
}

/// Hosts that are named one by one.
const HOSTS_SHOWN: usize = 3;

/// Words about new lines that a person should know before reading them.
fn suspicions(compared: &TextAccount) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(compared.turns_off.then(|| "a new line may turn code off".to_owned()));
    let letters = "a new line has letters that hide or look like others";
    parts.extend(compared.hides_letters.then(|| letters.to_owned()));
    let hosts: Vec<&str> = compared.new_hosts.iter().map(String::as_str).collect();
    if !hosts.is_empty() {
        let more = hosts.len().saturating_sub(HOSTS_SHOWN);
        let shown = hosts.iter().take(HOSTS_SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("a new line names a host that neither side names: {shown}{more}"));
    }
    parts
}

fn lines_beyond(compared: &TextAccount) -> Vec<String> {
    let TextAccount { lines_added, lines_removed, .. } = *compared;
    let added =
        (lines_added > 0).then(|| format!("{} that neither side has", plural(lines_added, "line")));
    let removed = (lines_removed > 0)
        .then(|| format!("{} gone that both sides have", plural(lines_removed, "line")));
    added.into_iter().chain(removed).collect()
}
