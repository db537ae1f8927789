//! Report of a replay: totals, a chart for the terminal, an HTML page. Pure.

use maud::{DOCTYPE, PreEscaped, html};
use merge::resolver::history::{ReplayedMerge, Skipped};
use merge::resolver::replay::ReplayScore;
use model::escape::escape_line;
use serde::Serialize;

use super::words::counted;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReplaySummary {
    pub(crate) trust: f64,
    pub(crate) merges: usize,
    pub(crate) clean: usize,
    /// Totals of the merges with conflicts.
    pub(crate) score: ReplayScore,
    pub(crate) skipped: Vec<Skipped>,
    /// Merges with conflicts whose result is one side.
    pub(crate) one_sided: usize,
    pub(crate) median_merge_ms: u64,
    pub(crate) median_resolver_ms: u64,
    /// Oldest first.
    #[serde(skip)]
    outcomes: Vec<(String, ReplayOutcome)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayOutcome {
    Clean,
    Agreed,
    Differed,
    Open,
}

impl ReplayOutcome {
    const ALL: [Self; 4] = [Self::Clean, Self::Agreed, Self::Differed, Self::Open];

    fn of(tried: &ReplayedMerge) -> Self {
        match tried {
            ReplayedMerge { conflicts: 0, .. } => Self::Clean,
            ReplayedMerge { score: ReplayScore { merges_resolved: 0, .. }, .. } => Self::Open,
            ReplayedMerge { score: ReplayScore { merges_agreed: 0, .. }, .. } => Self::Differed,
            ReplayedMerge { .. } => Self::Agreed,
        }
    }

    /// Its label, symbol in a terminal and colour in HTML.
    fn shown(self) -> (&'static str, char, &'static str) {
        match self {
            Self::Clean => ("git alone", '.', "#b8c4ce"),
            Self::Agreed => ("resolved as people did", '+', "#2e7d32"),
            Self::Differed => ("resolved otherwise", '!', "#c62828"),
            Self::Open => ("left open", '?', "#f9a825"),
        }
    }
}

impl ReplaySummary {
    pub(crate) fn new(
        tried: &[ReplayedMerge],
        trust: f64,
        skipped: Vec<Skipped>,
        one_sided: usize,
    ) -> Self {
        let outcome =
            |tried: &ReplayedMerge| (tried.merge.short().to_owned(), ReplayOutcome::of(tried));
        Self {
            trust,
            merges: tried.len(),
            clean: tried.iter().filter(|tried| tried.conflicts == 0).count(),
            score: tried.iter().fold(ReplayScore::default(), |sum, tried| sum.plus(tried.score)),
            skipped,
            one_sided,
            median_merge_ms: median(tried.iter().map(|tried| tried.merge_ms)),
            median_resolver_ms: median(
                tried.iter().map(|tried| tried.merge_ms + tried.resolver_ms),
            ),
            outcomes: tried.iter().map(outcome).collect(),
        }
    }

    fn count(&self, outcome: ReplayOutcome) -> usize {
        self.outcomes.iter().filter(|(_, one)| *one == outcome).count()
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

const BAR: usize = 40;
const SYMBOLS_IN_A_ROW: usize = 60;

pub(crate) fn render_text(replayed: &ReplaySummary) -> String {
    if replayed.merges == 0 {
        return "No merge of upstream was found in this fork's history.\n".to_owned();
    }
    let mut text = format!(
        "{} of upstream, replayed in order at trust {}\n\n",
        counted(replayed.merges, "merge"),
        replayed.trust
    );
    for outcome in ReplayOutcome::ALL {
        let (count, (label, symbol, _)) = (replayed.count(outcome), outcome.shown());
        let bar = "#".repeat(count * BAR / replayed.merges);
        text += &format!("  {symbol} {label:<22} {count:>5}  {bar}\n");
    }
    text += &format!("\n{}\n\n", symbols(replayed));
    for line in numbers(replayed).into_iter().chain(left_out(replayed)) {
        text += &format!("{line}\n");
    }
    text
}

/// One symbol for each merge, oldest first.
fn symbols(replayed: &ReplaySummary) -> String {
    let symbols: Vec<char> =
        replayed.outcomes.iter().map(|(_, outcome)| outcome.shown().1).collect();
    let rows =
        symbols.chunks(SYMBOLS_IN_A_ROW).map(|row| format!("  {}", row.iter().collect::<String>()));
    rows.collect::<Vec<_>>().join("\n")
}

fn numbers(replayed: &ReplaySummary) -> [String; 3] {
    let ReplayScore { merges, merges_resolved, merges_agreed, files, files_resolved, files_agreed } =
        replayed.score;
    [
        format!(
            "files in conflict: {files}; resolved {}, of those as people did {}",
            share(files_resolved, files),
            share(files_agreed, files_resolved)
        ),
        format!(
            "merges in conflict: {merges}; resolved whole {}, of those as people did {}",
            share(merges_resolved, merges),
            share(merges_agreed, merges_resolved)
        ),
        format!(
            "median time of a merge: {} ms with git alone, {} ms with the resolver",
            replayed.median_merge_ms, replayed.median_resolver_ms
        ),
    ]
}

fn share(part: usize, whole: usize) -> String {
    match (part * 100).checked_div(whole) {
        Some(percent) => format!("{part} ({percent} %)"),
        None => "none".to_owned(),
    }
}

/// Style of the page, which loads nothing from elsewhere.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}\
    i{display:inline-block;width:12px;height:12px;margin:1px;border-radius:2px}ul{list-style:none;padding:0}";

pub(crate) fn render_html(replayed: &ReplaySummary) -> String {
    let colour = |outcome: ReplayOutcome| format!("background:{}", outcome.shown().2);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            meta charset="utf-8";
            title { "Replay of this fork's merges" }
            style { (PreEscaped(STYLE)) }
            h1 { (counted(replayed.merges, "merge")) " of upstream at trust " (replayed.trust) }
            div {
                @for (merge, outcome) in &replayed.outcomes {
                    i title={ (merge) ": " (outcome.shown().0) } style=(colour(*outcome)) {}
                }
            }
            ul {
                @for outcome in ReplayOutcome::ALL {
                    li {
                        i style=(colour(outcome)) {}
                        " " (outcome.shown().0) ": " (replayed.count(outcome))
                    }
                }
            }
            @for line in numbers(replayed).into_iter().chain(left_out(replayed)) {
                p { (line) }
            }
        }
    };
    page.into_string()
}

/// Lines about merges that were not replayed.
fn left_out(replayed: &ReplaySummary) -> Vec<String> {
    let one_sided = (replayed.one_sided > 0).then(|| one_sided(replayed.one_sided));
    let skipped = replayed.skipped.iter().map(|skipped| {
        format!("{} was left out: {}", skipped.merge.short(), escape_line(&skipped.why))
    });
    one_sided.into_iter().chain(skipped).collect()
}

/// Line about merges whose result is one side.
pub(crate) fn one_sided(count: usize) -> String {
    format!("left out: {} whose result is one side", counted(count, "merge"))
}

#[cfg(test)]
mod tests {
    use model::id::Sha;

    use super::*;

    fn tried(conflicts: usize, resolved: usize, agreed: usize) -> ReplayedMerge {
        let whole = usize::from(conflicts > 0 && resolved == conflicts);
        ReplayedMerge {
            merge: Sha::parse(&"a".repeat(40)).unwrap(),
            conflicts,
            score: ReplayScore {
                merges: usize::from(conflicts > 0),
                merges_resolved: whole,
                merges_agreed: usize::from(whole == 1 && agreed == resolved),
                files: conflicts,
                files_resolved: resolved,
                files_agreed: agreed,
            },
            merge_ms: 40,
            resolver_ms: 10,
        }
    }

    fn replayed() -> ReplaySummary {
        let merge = Sha::parse(&"b".repeat(40)).unwrap();
        let skipped = vec![Skipped { merge, why: "<b>\u{1b}".to_owned() }];
        let all = [tried(0, 0, 0), tried(2, 2, 2), tried(1, 1, 0), tried(3, 1, 1)];
        ReplaySummary::new(&all, 0.9, skipped, 2)
    }

    #[test]
    fn every_merge_has_one_outcome() {
        insta::assert_snapshot!(render_text(&replayed()), @r"
        4 merges of upstream, replayed in order at trust 0.9

          . git alone                  1  ##########
          + resolved as people did     1  ##########
          ! resolved otherwise         1  ##########
          ? left open                  1  ##########

          .+!?

        files in conflict: 6; resolved 4 (66 %), of those as people did 3 (75 %)
        merges in conflict: 3; resolved whole 2 (66 %), of those as people did 1 (50 %)
        median time of a merge: 40 ms with git alone, 50 ms with the resolver
        left out: 2 merges whose result is one side
        bbbbbbbbbbbb was left out: <b>\x1b
        ");
    }

    #[test]
    fn a_page_loads_nothing_and_escapes_what_others_said() {
        let page = render_html(&replayed());
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }

    #[test]
    fn a_fork_without_merges_is_told_so() {
        let text = render_text(&ReplaySummary::new(&[], 0.9, Vec::new(), 0));
        assert_eq!(text, "No merge of upstream was found in this fork's history.\n");
    }
}
