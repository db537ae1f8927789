//! Rendering of `ACTIVE_WORKSTREAMS.md`, the table of active workstreams.

use super::meta::Meta;

pub(crate) struct ActiveRow<'a> {
    pub(crate) meta: &'a Meta,
    pub(crate) touched: usize,
}

pub(crate) fn render_active(project: &str, rows: &[ActiveRow<'_>]) -> String {
    let mut page = format!(
        "# Active workstreams: {project}\n\n| ID | Branch | Worktree | Status | Title | Expected paths | Last refreshed | Touched files |\n|---|---|---|---|---|---|---|---|\n"
    );
    for ActiveRow { meta, touched } in rows {
        let worktree = meta.worktree.to_string_lossy();
        let expected = meta.expected_paths.join(" ");
        let cells = [
            meta.id.as_str(),
            meta.branch.as_str(),
            &worktree,
            meta.status.word(),
            &meta.title,
            &expected,
            &meta.last_refreshed,
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        page.push_str(&format!("| {} | {touched} |\n", cells.join(" | ")));
    }
    if rows.is_empty() {
        page.push_str("\nNone. Start one: wf new <id> \"<title>\" \"<paths>\"\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::meta::parse_meta;
    use model::env_file::EnvFile;

    #[test]
    fn a_bar_in_a_cell_is_escaped() {
        let text = format!(
            "ID=tf\nTITLE=x\nBRANCH=feat/tf\nWORKTREE=/w\nBASE_BRANCH=main\nBASE_SHA={}\nSTATUS=planning\nEXPECTED_PATHS=mk/\nCREATED_AT=t\nLAST_REFRESHED=t\n",
            "a".repeat(40)
        );
        let mut meta = parse_meta(&EnvFile::parse(&text).unwrap(), "tf").unwrap();
        meta.title = "a|b".to_owned();
        let page = render_active("p", &[ActiveRow { meta: &meta, touched: 2 }]);
        assert!(
            page.ends_with("| tf | feat/tf | /w | planning | a\\|b | mk/ | t | 2 |\n"),
            "{page}"
        );
        assert!(render_active("p", &[]).contains("None."));
    }
}
