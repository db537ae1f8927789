//! Compares a result with the three versions of a text, region by region. Pure.

mod render;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use render::render_conflict;

use super::ConflictResolution;
use super::suspicion::{hides_letters, hosts, turns_off};
use crate::three::text::{bare, code_of_line, dark_tokens, lines, uncommented};
use crate::three::{Change, Edit, Region, Touching, edits, three_way};

/// Four versions of a text; a missing one is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextVersions<'a> {
    pub(super) base: &'a [u8],
    pub(super) fork: &'a [u8],
    pub(super) upstream: &'a [u8],
    pub(super) result: &'a [u8],
}

/// Account of the changes of both sides in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextAccount {
    pub(super) fork: HunkCounts,
    pub(super) upstream: HunkCounts,
    /// Lines of the result that neither side has, outside the conflicts.
    pub(super) lines_added: usize,
    /// Lines of the result that neither side has, in the place of a conflict.
    pub(super) lines_made: usize,
    /// Some of these lines have words or signs that neither side has in the place of the same conflict.
    pub(super) made_of_new_tokens: bool,
    /// Lines that neither side changed and the result lacks.
    pub(super) lines_removed: usize,
    /// Lines that both sides and git's merge have.
    pub(super) lines_common: usize,
    /// A new line of the result may turn off what follows it, such as the start of a comment.
    pub(super) turns_off: bool,
    /// A new line of the result has letters that hide or look like others.
    pub(super) hides_letters: bool,
    /// Hosts in new lines of the result that no version of the file names.
    pub(super) new_hosts: BTreeSet<String>,
    /// The result differs from git's merge in line ends or blanks alone.
    pub(super) only_blanks: bool,
    /// Almost nothing is left of what both sides have.
    pub(super) gutted: bool,
    /// Resolution of the conflicts, if there were any.
    pub(super) resolution: Option<ConflictResolution>,
    /// The conflicts as text.
    pub(super) hunk: String,
}

/// Hunks of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HunkCounts {
    pub(super) hunks: usize,
    pub(super) adapted: usize,
    /// Those of them in or beside a conflict, or of empty lines alone.
    pub(super) adapted_in_conflict: usize,
    pub(super) dropped: usize,
    pub(super) dropped_clean: usize,
    /// Missing lines of those.
    pub(super) lines_dropped_clean: usize,
    /// Lines of the side that the result lacks, or that it has although the side removed them.
    pub(super) lines_missing: usize,
    /// Missing lines that are comments now.
    pub(super) commented_out: usize,
}

type Line<'a> = &'a [u8];
type Counts<'a> = BTreeMap<&'a [u8], usize>;
type CodeCounts = BTreeMap<Vec<u8>, usize>;

pub(super) fn compare_text(versions: TextVersions<'_>) -> TextAccount {
    let TextVersions { base, fork, upstream, result } = versions;
    let [base, fork, upstream, result] = [base, fork, upstream, result].map(trimmed_lines);
    let regions = three_way(&base, &fork, &upstream, Touching::Joins);
    let (merged, spans) = both_sides(&regions, &fork, &upstream);
    let edits = edits(&merged, &result);
    let whole = WholeTexts {
        fork: count(&fork),
        upstream: count(&upstream),
        result: count(&result),
        merged: count(&merged),
        code: OnceCell::new(),
        fork_code: OnceCell::new(),
        upstream_code: OnceCell::new(),
    };
    let mut account = TextAccount::default();
    let mut resolutions = Vec::new();
    let mut resolved = Vec::new();
    for (at, (region, span)) in regions.iter().zip(&spans).enumerate() {
        let here = &result[image(&edits, span)];
        let parts = Parts {
            base: &base[region.base.clone()],
            fork: &fork[region.ours.clone()],
            upstream: &upstream[region.theirs.clone()],
            result: here,
        };
        let is_touched = edits.iter().any(|edit| touches(edit, span));
        let clean_hunk = |side: Side| {
            let hunk = clean_hunk(&parts, side, is_touched, &whole);
            let is_taken = hunk.state == HunkState::Taken;
            Hunk {
                is_clean: hunk.is_clean && (is_taken || !is_beside_conflict(&regions, at)),
                ..hunk
            }
        };
        match region.change {
            Change::None => {}
            Change::Ours => account.fork.add(&clean_hunk(Side::Fork)),
            Change::Theirs => account.upstream.add(&clean_hunk(Side::Upstream)),
            Change::Same => {
                let hunk = clean_hunk(Side::Upstream);
                account.upstream.add(&hunk);
                account.fork.add(&hunk);
            }
            Change::Conflict => {
                let (fork, upstream) = conflict_hunk(&parts, &whole);
                resolutions.push(resolution_of(&parts, &fork, &upstream));
                account.fork.add(&fork);
                account.upstream.add(&upstream);
                account.made_of_new_tokens |= has_new_tokens(&parts, &whole);
                render_conflict(&mut account.hunk, &parts);
                resolved.extend_from_slice(here);
            }
        }
    }
    account.resolution = sum_up(&resolutions);
    account.only_blanks = resolutions.is_empty() && are_alike(&merged, &result);
    note_new_lines(&mut account, &whole, &count(&resolved));
    account.gutted = is_gutted(&account, [&merged, &fork, &upstream, &result]);
    account
}

/// Lines from which on a file can be gutted.
const FEWEST_LINES: usize = 10;

/// Returns whether almost nothing is left of what both sides and git's merge have. Lines that are only indented otherwise are
/// there.
fn is_gutted(account: &TextAccount, texts: [&[Line<'_>]; 4]) -> bool {
    let is_most = |gone: usize, of: usize| gone >= FEWEST_LINES && gone * 10 >= of * 9;
    if !is_most(account.lines_removed, account.lines_common) {
        return false;
    }
    let bare = texts.map(|lines| lines.iter().map(|line| bare(line)).collect::<Vec<_>>());
    let lines = bare.each_ref().map(|lines| lines.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let [merged, fork, upstream, result] = &lines.each_ref().map(|lines| count(lines));
    let (mut common, mut gone) = (0, 0);
    for (line, &wanted) in merged {
        let of = |counts: &Counts<'_>| counts.get(line).copied().unwrap_or_default();
        let least = wanted.min(of(fork)).min(of(upstream));
        if has_words(line) {
            common += least;
            gone += least.saturating_sub(of(result));
        }
    }
    is_most(gone, common)
}

/// Lines between a change and a conflict within which whoever resolves the conflict rewrites both.
const NEAR_LINES: usize = 3;

/// Looks only at the regions near the one at this place: there may be many.
fn is_beside_conflict(regions: &[Region], at: usize) -> bool {
    let (before, rest) = regions.split_at(at);
    let Some((own, after)) = rest.split_first() else { return false };
    let is_conflict = |other: &Region| other.change == Change::Conflict;
    let is_near_before =
        |other: &&Region| own.base.start.saturating_sub(other.base.end) <= NEAR_LINES;
    let is_near_after =
        |other: &&Region| other.base.start.saturating_sub(own.base.end) <= NEAR_LINES;
    before.iter().rev().take_while(is_near_before).any(is_conflict)
        || after.iter().take_while(is_near_after).any(is_conflict)
}

/// Returns whether texts are the same but for blanks and empty lines.
fn are_alike(one: &[Line<'_>], other: &[Line<'_>]) -> bool {
    let bytes = |lines: &[Line<'_>]| -> Vec<u8> {
        lines.concat().into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect()
    };
    bytes(one) == bytes(other)
}

/// Without whitespace at the end, so that line ends do not count.
fn trimmed_lines(text: &[u8]) -> Vec<Line<'_>> {
    lines(text).into_iter().map(<[u8]>::trim_ascii_end).collect()
}

/// The merged text, with both versions of every conflict, and the range of each region in it.
fn both_sides<'a>(
    regions: &[Region],
    fork: &[Line<'a>],
    upstream: &[Line<'a>],
) -> (Vec<Line<'a>>, Vec<Range<usize>>) {
    let mut merged = Vec::new();
    let mut spans = Vec::new();
    for region in regions {
        let start = merged.len();
        if region.change != Change::Theirs {
            merged.extend_from_slice(&fork[region.ours.clone()]);
        }
        if matches!(region.change, Change::Theirs | Change::Conflict) {
            merged.extend_from_slice(&upstream[region.theirs.clone()]);
        }
        spans.push(start..merged.len());
    }
    (merged, spans)
}

/// Range of the result that stands in the place of a range of the merged text, with what was inserted at its ends.
fn image(edits: &[Edit], span: &Range<usize>) -> Range<usize> {
    let mut start = span.start;
    for edit in edits.iter().take_while(|edit| edit.before.start < span.start) {
        let (before, after) = (&edit.before, &edit.after);
        let is_before = before.end <= span.start;
        start = if is_before { span.start - before.end + after.end } else { after.start };
    }
    let mut end = span.end;
    for edit in edits {
        let (before, after) = (&edit.before, &edit.after);
        let is_insertion_at_end = before.is_empty() && before.start == span.end;
        if before.start >= span.end && !is_insertion_at_end {
            break;
        }
        end = if before.end <= span.end { span.end - before.end + after.end } else { after.end };
    }
    start..end.max(start)
}

fn touches(edit: &Edit, span: &Range<usize>) -> bool {
    if edit.before.is_empty() || span.is_empty() {
        return edit.before.start <= span.end && span.start <= edit.before.end;
    }
    edit.before.start < span.end && span.start < edit.before.end
}

/// A region in the four versions.
struct Parts<'p, 'a> {
    base: &'p [Line<'a>],
    fork: &'p [Line<'a>],
    upstream: &'p [Line<'a>],
    result: &'p [Line<'a>],
}

/// Lines of the whole texts, to find lines that were moved.
struct WholeTexts<'a> {
    fork: Counts<'a>,
    upstream: Counts<'a>,
    result: Counts<'a>,
    /// Git's merge, with both versions of every conflict.
    merged: Counts<'a>,
    /// The code of the result's lines, and of both sides', counted when a change is not found by its lines.
    code: OnceCell<CodeCounts>,
    fork_code: OnceCell<CodeCounts>,
    upstream_code: OnceCell<CodeCounts>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Fork,
    Upstream,
}

impl<'a> WholeTexts<'a> {
    fn of(&self, side: Side) -> &Counts<'a> {
        match side {
            Side::Fork => &self.fork,
            Side::Upstream => &self.upstream,
        }
    }

    /// Returns whether the result has a line as often as the side, wherever.
    fn has_elsewhere(&self, side: Side, line: &[u8], change: LineChange) -> bool {
        let of = |counts: &Counts<'_>| counts.get(line).copied().unwrap_or_default();
        change == LineChange::Added && of(&self.result) >= of(self.of(side))
    }

    /// Returns whether the result has the code of a line at least as often as the side that added it, or at most as often as the
    /// side that took it away there, wherever, with whatever indentation and comment.
    fn has_code_elsewhere(&self, side: Side, line: &[u8], change: LineChange) -> bool {
        let (code, of_result) =
            (code_of_line(line), self.code.get_or_init(|| count_code(&self.result)));
        let own = match side {
            Side::Fork => self.fork_code.get_or_init(|| count_code(&self.fork)),
            Side::Upstream => self.upstream_code.get_or_init(|| count_code(&self.upstream)),
        };
        match change {
            LineChange::Added => of_result.get(&code) >= own.get(&code),
            LineChange::Removed => of_result.get(&code) <= own.get(&code),
        }
    }
}

/// Fate of one hunk.
#[derive(Debug, Default)]
struct Hunk {
    state: HunkState,
    is_clean: bool,
    lines_missing: usize,
    commented_out: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HunkState {
    #[default]
    Taken,
    Adapted,
    Dropped,
}

impl HunkCounts {
    fn add(&mut self, hunk: &Hunk) {
        self.hunks += 1;
        match hunk.state {
            HunkState::Taken => return,
            HunkState::Adapted => {
                self.adapted += 1;
                self.adapted_in_conflict += usize::from(!hunk.is_clean);
            }
            HunkState::Dropped => {
                self.dropped += 1;
                self.dropped_clean += usize::from(hunk.is_clean);
                self.lines_dropped_clean += if hunk.is_clean { hunk.lines_missing } else { 0 };
            }
        }
        self.lines_missing += hunk.lines_missing;
        self.commented_out += hunk.commented_out;
    }
}

/// A hunk that git applies alone. Whatever the result has otherwise is at least an adaptation: a change of which half of the
/// words are there, or whose code is there elsewhere, stands in another form, and one of empty lines takes nothing away with it.
fn clean_hunk(parts: &Parts<'_, '_>, side: Side, is_touched: bool, whole: &WholeTexts<'_>) -> Hunk {
    let own = match side {
        Side::Fork => parts.fork,
        Side::Upstream => parts.upstream,
    };
    if !is_touched || parts.result == own {
        return Hunk { is_clean: true, ..Hunk::default() };
    }
    let elsewhere = |line: &[u8], change| whole.has_elsewhere(side, line, change);
    let found = compare_lines(parts.base, own, parts.result, elsewhere);
    let is_there = || {
        let share = token_share(parts, own, parts.base, has_words);
        found.commented_out == 0 && share.is_some_and(|share| share >= HALF)
    };
    let is_elsewhere = || {
        let elsewhere = |line: &[u8], change| whole.has_code_elsewhere(side, line, change);
        !compare_lines(parts.base, own, parts.result, elsewhere).is_dropped()
    };
    let is_empty = is_of_empty_lines(parts.base, own);
    let is_dropped = found.is_dropped() && !is_empty && !is_there() && !is_elsewhere();
    let state = if is_dropped { HunkState::Dropped } else { HunkState::Adapted };
    found.hunk(state, !is_empty)
}

/// Returns whether two texts differ in empty lines alone.
fn is_of_empty_lines(one: &[Line<'_>], other: &[Line<'_>]) -> bool {
    let [one, other] = [one, other].map(|lines| lines.iter().filter(|line| !line.is_empty()));
    one.eq(other)
}

/// Both sides of a conflict. A side that is not there line by line may be there token by token.
fn conflict_hunk(parts: &Parts<'_, '_>, whole: &WholeTexts<'_>) -> (Hunk, Hunk) {
    let one = |side: Side, own: &[Line<'_>], other: &[Line<'_>]| {
        if parts.result == own {
            return Hunk::default();
        }
        let elsewhere = |line: &[u8], change| whole.has_elsewhere(side, line, change);
        let found = compare_lines(parts.base, own, parts.result, elsewhere);
        if found.is_whole() {
            return Hunk::default();
        }
        // A change of blanks alone has no tokens by which it could be found, and in some languages blanks are code.
        let Some(share) = token_share(parts, own, other, |_| true) else {
            return found.hunk(HunkState::Adapted, false);
        };
        let state = match () {
            () if parts.result == other && share >= 1.0 => HunkState::Taken,
            () if parts.result == other => HunkState::Dropped,
            () if share >= 1.0 && found.commented_out == 0 => HunkState::Taken,
            () if found.is_dropped() && share < FEW => HunkState::Dropped,
            () => HunkState::Adapted,
        };
        found.hunk(state, false)
    };
    (one(Side::Fork, parts.fork, parts.upstream), one(Side::Upstream, parts.upstream, parts.fork))
}

/// Share of a side's change below which the change counts as dropped.
const FEW: f64 = 0.1;

/// Share of the words of a change outside of conflicts from which on it counts as adapted.
const HALF: f64 = 0.5;

/// Share of a change that a result has, by lines.
#[derive(Default)]
struct LinesFound {
    /// Lines that the change adds or removes.
    changed: usize,
    missing: usize,
    commented_out: usize,
}

impl LinesFound {
    fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Returns whether at most a tenth of the change is there.
    fn is_dropped(&self) -> bool {
        self.missing > 0 && (self.changed - self.missing) * 10 <= self.changed
    }

    fn hunk(&self, state: HunkState, is_clean: bool) -> Hunk {
        let (lines_missing, commented_out) = (self.missing, self.commented_out);
        Hunk { state, is_clean, lines_missing, commented_out }
    }
}

/// Change of a line by a side within a region.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineChange {
    Added,
    Removed,
}

fn compare_lines(
    base: &[Line<'_>],
    own: &[Line<'_>],
    result: &[Line<'_>],
    elsewhere: impl Fn(&[u8], LineChange) -> bool,
) -> LinesFound {
    let (base, own) = (count(base), count(own));
    let here = count(result);
    let comments: Counts<'_> =
        count(&result.iter().filter_map(|line| uncommented(line)).collect::<Vec<_>>());
    let of = |counts: &Counts<'_>, line: &[u8]| counts.get(line).copied().unwrap_or_default();
    let mut all = [LinesFound::default(), LinesFound::default()];
    let names = base.keys().chain(own.keys().filter(|line| !base.contains_key(*line)));
    for &line in names {
        let (before, after, now) = (of(&base, line), of(&own, line), of(&here, line));
        if before == after {
            continue;
        }
        let found = &mut all[usize::from(has_words(line))];
        found.changed += before.abs_diff(after);
        if after > before {
            let lacking = (after - before).min(after.saturating_sub(now));
            if lacking > 0 && !elsewhere(line, LineChange::Added) {
                found.missing += lacking;
                found.commented_out += lacking.min(of(&comments, line.trim_ascii()));
            }
        } else {
            let back = (before - after).min(now.saturating_sub(after));
            let is_moved = back > 0 && elsewhere(line, LineChange::Removed);
            found.missing += if is_moved { 0 } else { back };
        }
    }
    let [without_words, with_words] = all;
    // Braces and empty lines tell something only if the change has nothing else.
    if with_words.changed > 0 { with_words } else { without_words }
}

/// Share of the tokens of a kind that a side added or removed and that the result follows; `None` if the side changed none.
/// Comments of the result are no code.
fn token_share(
    parts: &Parts<'_, '_>,
    own: &[Line<'_>],
    other: &[Line<'_>],
    counts_as: impl Fn(&[u8]) -> bool,
) -> Option<f64> {
    let known = [count(parts.base), count(own), count(other)];
    let is_known = |line: &Line<'_>| known.iter().any(|version| version.contains_key(line));
    let code = parts.result.iter().filter(|line| is_known(line) || uncommented(line).is_none());
    let result = count_tokens(code);
    let (base, other) = (count_tokens(parts.base), count_tokens(other));
    let own = count_tokens(own);
    let of = |counts: &Counts<'_>, token: &[u8]| counts.get(token).copied().unwrap_or_default();
    let (mut changed, mut followed) = (0, 0);
    let names = own.keys().chain(base.keys().filter(|token| !own.contains_key(*token)));
    for &token in names.filter(|token| counts_as(token)) {
        let (before, after) = (of(&base, token), of(&own, token));
        let (rest, now) = (of(&other, token), of(&result, token));
        if after > before {
            changed += after - before;
            followed += (after - before).min(now.saturating_sub(before.min(rest)));
        } else if before > after {
            changed += before - after;
            followed += (before - after).min(before.max(rest).saturating_sub(now));
        }
    }
    (changed > 0).then(|| followed as f64 / changed as f64)
}

fn resolution_of(parts: &Parts<'_, '_>, fork: &Hunk, upstream: &Hunk) -> ConflictResolution {
    let is_taken = |hunk: &Hunk| hunk.state == HunkState::Taken;
    match () {
        () if parts.result == parts.fork => ConflictResolution::Ours,
        () if parts.result == parts.upstream => ConflictResolution::Theirs,
        () if is_taken(fork) && is_taken(upstream) => ConflictResolution::Both,
        () => ConflictResolution::New,
    }
}

/// Several conflicts of a file: alike, some of each side, or something new.
fn sum_up(resolutions: &[ConflictResolution]) -> Option<ConflictResolution> {
    let first = *resolutions.first()?;
    if resolutions.iter().all(|one| *one == first) {
        return Some(first);
    }
    let is_new = resolutions.contains(&ConflictResolution::New);
    Some(if is_new { ConflictResolution::New } else { ConflictResolution::Both })
}

/// Lines of nobody: new in the result, or gone although neither side touched them. `resolved` are the lines in the place of
/// conflicts.
fn note_new_lines(account: &mut TextAccount, whole: &WholeTexts<'_>, resolved: &Counts<'_>) {
    for (line, &now) in &whole.result {
        let of = |counts: &Counts<'_>| counts.get(line).copied().unwrap_or_default();
        let known = of(&whole.merged).max(of(&whole.fork)).max(of(&whole.upstream));
        let new = now.saturating_sub(known);
        if has_words(line) {
            let made = new.min(of(resolved));
            account.lines_made += made;
            account.lines_added += new - made;
        }
        if new > 0 {
            account.turns_off |= turns_off(line);
            account.hides_letters |= hides_letters(line);
            account.new_hosts.extend(hosts(line));
        }
    }
    if !account.new_hosts.is_empty() {
        let known = [&whole.merged, &whole.fork, &whole.upstream].into_iter().flatten();
        let known: BTreeSet<String> = known.flat_map(|(line, _)| hosts(line)).collect();
        account.new_hosts.retain(|host| !known.contains(host));
    }
    for (line, &wanted) in &whole.merged {
        let of = |counts: &Counts<'_>| counts.get(line).copied().unwrap_or_default();
        let least = wanted.min(of(&whole.fork)).min(of(&whole.upstream));
        if has_words(line) {
            account.lines_common += least;
            account.lines_removed += least.saturating_sub(of(&whole.result));
        }
    }
}

/// Returns whether lines in the place of a conflict, which no side has, have tokens that neither side has there.
fn has_new_tokens(parts: &Parts<'_, '_>, whole: &WholeTexts<'_>) -> bool {
    let sides = [&whole.merged, &whole.fork, &whole.upstream];
    let is_made = |line: &&Line<'_>| !sides.iter().any(|side| side.contains_key(**line));
    let mut made = parts.result.iter().filter(is_made).peekable();
    if made.peek().is_none() {
        return false;
    }
    let lines = parts.fork.iter().chain(parts.upstream);
    let known: BTreeSet<&[u8]> = lines.flat_map(|line| dark_tokens(line)).collect();
    made.flat_map(|line| dark_tokens(line)).any(|token| !known.contains(token))
}

fn count<'a>(lines: &[Line<'a>]) -> Counts<'a> {
    let mut counts = Counts::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

fn count_code(lines: &Counts<'_>) -> CodeCounts {
    let mut counts = CodeCounts::new();
    for (line, count) in lines {
        *counts.entry(code_of_line(line)).or_default() += count;
    }
    counts
}

fn count_tokens<'a>(lines: impl IntoIterator<Item = &'a Line<'a>>) -> Counts<'a> {
    let mut counts = Counts::new();
    for token in lines.into_iter().flat_map(|line| dark_tokens(line)) {
        *counts.entry(token).or_default() += 1;
    }
    counts
}

fn has_words(line: &[u8]) -> bool {
    line.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

#[cfg(test)]
mod tests;
