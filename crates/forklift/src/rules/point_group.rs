//! Points for the person who merges, in a length that is read: grave ones one by one, the others by kind and folder, folded.

use std::collections::BTreeMap;

use model::inert::inert_html;

use super::pull_text::cut;
use super::review::{PointKind, ReviewPoint};
use super::section::{Importance, Section};
use super::words::counted;

/// Points up to which nothing is folded, and lines that stand first otherwise, if the grave points leave room for them.
const UNFOLDED: usize = 12;

/// Points of one list; more are counted.
const ROWS: usize = 200;

/// Folders in one another by which points are grouped at most.
const DEEPEST: usize = 6;

/// A point as a line of Markdown.
#[derive(Debug)]
pub(super) struct PointLine {
    pub(super) kind: PointKind,
    /// Folder of its file; none if it is about the whole result.
    pub(super) folder: Option<String>,
    pub(super) line: String,
}

impl PointLine {
    pub(super) fn new(point: &ReviewPoint, line: String) -> Self {
        let folder = |path: &String| match path.rsplit_once('/') {
            Some((folder, _)) => folder.to_owned(),
            None => String::new(),
        };
        Self { kind: point.kind, folder: point.path.as_ref().map(folder), line }
    }
}

/// The section of the points. Each point is in it, unless it is too long for a pull request; then it is counted.
pub(super) fn point_sections(lines: Vec<PointLine>) -> Vec<Section> {
    let first = |head: String, items: Vec<String>| {
        let section = Section {
            title: "Needs a look",
            head,
            items,
            noun: "points",
            importance: Importance::Review,
            ..Section::default()
        };
        section.at_most(ROWS)
    };
    let all = lines.len();
    if all <= UNFOLDED {
        return vec![first(String::new(), lines.into_iter().map(|it| it.line).collect())];
    }
    let (grave, others): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|it| it.kind == PointKind::Grave);
    if others.is_empty() {
        return vec![first(String::new(), grave.into_iter().map(|it| it.line).collect())];
    }
    let head = match grave.len() {
        0 => format!("{}, all of them folded by kind and folder.\n\n", counted(all, "point")),
        count => format!(
            "{}: {count} to read one by one, and {} folded below by kind and folder.\n\n",
            counted(all, "point"),
            others.len()
        ),
    };
    let groups = group(others, UNFOLDED.saturating_sub(grave.len()));
    let mut sections = vec![first(head, grave.into_iter().map(|it| it.line).collect())];
    sections.extend(groups.into_iter().map(|group| group.render().at_most(ROWS)));
    sections
}

/// Points of one kind, in one folder and below it.
struct PointGroup {
    kind: PointKind,
    /// None if they are in several folders.
    folder: Option<String>,
    lines: Vec<String>,
}

/// Groups the points by folders that are as deep as the number of groups allows; at last by their kinds alone.
fn group(lines: Vec<PointLine>, most: usize) -> Vec<PointGroup> {
    let folder = |line: &PointLine, depth: usize| {
        let folder = line.folder.as_deref().unwrap_or_default();
        folder.split('/').take(depth).collect::<Vec<_>>().join("/")
    };
    let by_depth = |depth: usize| {
        let mut groups: BTreeMap<(PointKind, String), usize> = BTreeMap::new();
        lines.iter().for_each(|it| *groups.entry((it.kind, folder(it, depth))).or_default() += 1);
        groups.len()
    };
    let depth = (1..=DEEPEST).rev().find(|depth| by_depth(*depth) <= most).unwrap_or(0);
    let mut groups: BTreeMap<(PointKind, String), Vec<String>> = BTreeMap::new();
    for line in lines {
        groups.entry((line.kind, folder(&line, depth))).or_default().push(line.line);
    }
    let of =
        |((kind, folder), lines)| PointGroup { kind, folder: (depth > 0).then_some(folder), lines };
    groups.into_iter().map(of).collect()
}

impl PointGroup {
    fn render(self) -> Section {
        let count = self.lines.len();
        let what = match self.kind {
            PointKind::Grave => counted(count, "point"),
            PointKind::InConflict => format!(
                "{} with changes in another form, in or beside a conflict or of empty lines alone",
                counted(count, "file")
            ),
            PointKind::Decided => format!("{} decided by the agent", counted(count, "conflict")),
            PointKind::Blank => format!(
                "{} in which only line ends, blanks or empty lines differ",
                counted(count, "file")
            ),
        };
        let place = match self.folder.as_deref() {
            None => String::new(),
            Some("") => ", in the root".to_owned(),
            Some(folder) => format!(", in <code>{}</code>", inert_html(&cut(folder))),
        };
        Section {
            head: format!("<details><summary>{what}{place}</summary>\n\n"),
            items: self.lines,
            tail: "\n</details>".to_owned(),
            noun: "points",
            importance: Importance::Folded,
            ..Section::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use merge::account::{
        Departure, DepartureKind, DepartureRank, MergeAccount, SideAccount, SideChange, SideStatus,
    };
    use merge::path::TreePath;
    use serde_json::json;

    use super::super::pull_text::tests::{conflict, pull, record};
    use super::super::review::review_points;
    use super::super::section::render_sections;
    use super::*;

    fn line(kind: PointKind, path: &str) -> PointLine {
        let point = ReviewPoint { path: Some(path.to_owned()), what: "x".to_owned(), kind };
        PointLine::new(&point, format!("- `{path}`: x\n"))
    }

    fn render(lines: Vec<PointLine>) -> String {
        render_sections(point_sections(lines), usize::MAX)
    }

    fn many(kind: PointKind, folder: &str, count: usize) -> Vec<PointLine> {
        (0..count).map(|at| line(kind, &format!("{folder}{at:02}"))).collect()
    }

    #[test]
    fn few_points_are_not_folded() {
        let text = render(many(PointKind::Decided, "a/", UNFOLDED));
        assert!(!text.contains("<details>") && text.matches("\n- ").count() == UNFOLDED, "{text}");
    }

    #[test]
    fn grave_points_are_never_folded_and_none_is_missing() {
        let kinds = [PointKind::Grave, PointKind::InConflict, PointKind::Decided, PointKind::Blank];
        let lines = || kinds.into_iter().flat_map(|kind| many(kind, &format!("{kind:?}/"), 40));
        let text = render(lines().collect());
        let (open, folded) = text.split_once("<details>").unwrap();
        assert_eq!(open.matches("\n- `Grave/").count(), 40, "{open}");
        assert!(open.contains("160 points: 40 to read one by one, and 120 folded below"), "{open}");
        for line in lines().filter(|line| line.kind != PointKind::Grave) {
            assert!(folded.contains(&line.line), "{}", line.line);
        }
    }

    #[test]
    fn the_folders_are_as_deep_as_a_dozen_lines_allow() {
        let deep = |folders: usize| {
            let lines =
                (0..folders).flat_map(|n| many(PointKind::InConflict, &format!("top/f{n:02}/"), 3));
            render(many(PointKind::Grave, "g/", 4).into_iter().chain(lines).collect())
        };
        assert!(deep(8).contains("in <code>top/f07</code>"), "{}", deep(8));
        let merged = deep(9);
        assert!(
            merged.contains("27 files with") && merged.contains("in <code>top</code>"),
            "{merged}"
        );
        let alone: Vec<PointLine> =
            (0..30).map(|n| line(PointKind::Blank, &format!("f{n}/a"))).collect();
        let text = render(alone);
        assert!(text.contains("30 points, all of them folded"), "{text}");
        assert!(text.contains("empty lines differ</summary>"), "{text}");
    }

    #[test]
    fn a_point_of_the_root_and_one_with_a_hostile_folder_are_told_apart() {
        let nasty = "<img src=x>/@victim";
        let lines =
            [many(PointKind::Blank, "", 7), many(PointKind::Blank, &format!("{nasty}/"), 7)];
        let text = render(lines.into_iter().flatten().collect());
        assert!(text.contains(", in the root</summary>"), "{text}");
        assert!(!text.contains("<code><img") && !text.contains("<code>@victim"), "{text}");
    }

    #[test]
    fn folded_points_are_left_off_before_those_that_are_read() {
        let lines = [many(PointKind::Grave, "g/", 20), many(PointKind::Blank, "b/", 200)];
        let lines = lines.into_iter().flatten().collect();
        let text = render_sections(point_sections(lines), 1500);
        assert_eq!(text.matches("- `g/").count(), 20, "{text}");
        assert!(text.contains("more points."), "{text}");
    }

    /// A change of which one hunk of three is `status`, in or outside of a conflict.
    fn change(path: String, status: SideStatus, in_conflict: bool) -> SideChange {
        let is = |wanted: SideStatus| usize::from(status == wanted);
        let dropped = is(SideStatus::Dropped);
        SideChange {
            path: TreePath::new(path.as_str()),
            status,
            hunks: 3,
            adapted: is(SideStatus::Adapted),
            adapted_in_conflict: if in_conflict { is(SideStatus::Adapted) } else { 0 },
            dropped,
            dropped_clean: if in_conflict { 0 } else { dropped },
            lines: 2,
            lines_dropped_clean: None,
            reason: None,
            is_generated: false,
            detail: "1 of 3 hunks, 2 lines missing".to_owned(),
        }
    }

    fn blank(path: String) -> Departure {
        Departure {
            path: TreePath::new(path.as_str()),
            kind: DepartureKind::Content,
            detail: "only line ends, blanks or empty lines differ".to_owned(),
            gutted: false,
            rank: DepartureRank::Blank,
        }
    }

    #[test]
    fn a_pull_request_with_fifty_three_points_has_a_dozen_lines_first() {
        let numbered = |folder: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{folder}/file{n:02}.kt")).collect()
        };
        let combined: Vec<String> = [numbered("app/src/main", 14), numbered("app/src/test", 3)]
            .into_iter()
            .chain([numbered("library/ui", 9)])
            .flatten()
            .collect();
        let decided = [numbered("library/strings", 11), numbered("gradle", 4)].concat();
        let upstream: Vec<SideChange> = [
            change("app/build.gradle".to_owned(), SideStatus::Dropped, false),
            change("library/net/Proxy.kt".to_owned(), SideStatus::Dropped, true),
            change("library/net/Client.kt".to_owned(), SideStatus::Adapted, false),
        ]
        .into_iter()
        .chain(combined.iter().map(|path| change(path.clone(), SideStatus::Adapted, true)))
        .collect();
        let added = Departure {
            kind: DepartureKind::Added,
            detail: "neither side has it".to_owned(),
            rank: DepartureRank::Usual,
            ..blank("library/net/Extra.kt".to_owned())
        };
        let blanks = numbered("docs", 8).into_iter().map(blank);
        let paths = combined.iter().chain(&decided);
        let account = MergeAccount {
            upstream: SideAccount { paths: 200, changes: upstream },
            conflicts: paths.map(|path| conflict(path, "")).collect(),
            departures: std::iter::once(added).chain(blanks).collect(),
            ..MergeAccount::default()
        };
        let mut record = record(&json!({}));
        record.account = Some(account);
        assert_eq!(review_points(&record).len(), 53);
        let body = pull(&record, &["a commit of upstream"]).body;
        let (review, _) = body.split_once("### Conflicts").expect("a section");
        insta::assert_snapshot!(review);
    }
}
