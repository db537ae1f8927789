//! Facts about how a result was made: agent, model, time, tokens, cost, and the checks of host and fork.

use engine::box_command::BoxCommandSummary;
use engine::evidence::Evidence;
use model::inert::{inert_code, inert_prose};

use super::words::counted;
use engine::check::check_words;
use shell::agent_facts::AgentFacts;

use crate::flow::record::ForkRunRecord;

/// Characters of a command that are shown.
const COMMAND_CHARS: usize = 200;

/// Renders the facts as a list. What is not known is said, and so is what is an estimate.
pub(super) fn run_facts(record: &ForkRunRecord) -> String {
    let mut lines = match record.merged_alone {
        true => vec!["agent: none was needed".to_owned()],
        false => agent_lines(record),
    };
    lines.extend(check_lines(record));
    if let Some(evidence) = &record.evidence {
        lines.extend(host_lines(evidence));
    }
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

fn agent_lines(record: &ForkRunRecord) -> Vec<String> {
    let settings = &record.settings;
    let model = settings.model.as_deref().map_or("unknown".to_owned(), inert_code);
    let mut lines = vec![
        format!("agent: {} in a sealed {} box", inert_code(&settings.provider), settings.backend),
        format!("model: {model}"),
        format!("time: {}", render_time(record)),
    ];
    lines.extend(usage_lines(record));
    if let Some(earlier) = &record.resumed_from {
        let earlier = inert_code(earlier.as_str());
        lines.push(format!("continues run {earlier}, whose time and tokens are not included"));
    }
    lines
}

fn render_time(record: &ForkRunRecord) -> String {
    match &record.agent_box {
        Some(exit) => render_duration(exit.wall_ms),
        None => "unknown".to_owned(),
    }
}

fn render_duration(wall_ms: u64) -> String {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    match wall_ms / 1000 {
        secs @ 0..120 => counted(number(secs), "second"),
        secs => counted(number((secs + 30) / 60), "minute"),
    }
}

fn usage_lines(record: &ForkRunRecord) -> [String; 2] {
    let facts = agent_facts(record);
    let known = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
    [format!("tokens: {}", known(facts.tokens())), format!("cost: {}", known(facts.cost()))]
}

/// The agent's part of a run.
pub(crate) fn agent_facts(record: &ForkRunRecord) -> AgentFacts<'_> {
    AgentFacts {
        model: record.settings.model.as_deref(),
        exit: record.agent_box.as_ref(),
        result: record.agent_result.as_ref(),
    }
}

fn check_lines(record: &ForkRunRecord) -> Vec<String> {
    let setup = record.setup.as_ref().map(|setup| render_command("the fork's set-up", setup));
    let check = match &record.check {
        Some(check) => format!(
            "the fork's own check {} ({}): {}",
            inert_prose(&check_words(check)),
            render_duration(check.wall_ms),
            render_line(check)
        ),
        None => "the fork's own check: none is set (`check` in FORK.md)".to_owned(),
    };
    let ran = record.ran_tests.as_ref().map(|ran| {
        format!("tests that ran, compared with both sides: {}", inert_prose(&ran.words()))
    });
    let lines = setup.into_iter().chain([check]).chain(checks_before(record));
    lines.chain(ran).chain(test_line(record)).collect()
}

/// Checks that did not decide: on the merge before the agent, and with the agent's own definition.
fn checks_before(record: &ForkRunRecord) -> Vec<String> {
    let on_merge = record.check_on_merge.iter().map(|check| {
        let words = inert_prose(&check_words(check));
        format!("on the merge without an agent it {words}, so the agent was started")
    });
    let changed = record.check_changed.iter().map(|changed| {
        if changed.files.is_empty() && changed.allowed.is_empty() {
            return "**the agent changed files that the check's files name**: the result above rests on them".to_owned();
        }
        if changed.files.is_empty() {
            return "**the agent changed files that define the check**, and a person allowed it: the result above is with its \
                    files"
                .to_owned();
        }
        let words = inert_prose(&check_words(&changed.with_agent_files));
        format!(
            "**the agent changed files that define the check**: with its files it {words}; the result above is with those of \
             the fork and upstream"
        )
    });
    on_merge.chain(changed).collect()
}

fn test_line(record: &ForkRunRecord) -> Option<String> {
    let tests = record.tests.as_ref()?;
    let [missing, skipped, weakened] =
        [&tests.missing, &tests.skipped, &tests.weakened].map(Vec::len);
    Some(format!("tests of both sides: {missing} missing, {skipped} skipped, {weakened} weakened"))
}

fn render_line(command: &BoxCommandSummary) -> String {
    let line = command.command.split_whitespace().collect::<Vec<_>>().join(" ");
    inert_code(&line.chars().take(COMMAND_CHARS).collect::<String>())
}

fn render_command(name: &str, command: &BoxCommandSummary) -> String {
    let line = render_line(command);
    let time = render_duration(command.wall_ms);
    match command.passed() {
        true => format!("{name} passed in {time}: {line}"),
        false => format!("{name} failed after {time} ({}): {line}", inert_code(&command.how())),
    }
}

fn host_lines(evidence: &Evidence) -> [String; 5] {
    let mark = |good: bool| if good { "yes" } else { "no" };
    [
        format!("upstream's commit is contained: {}", mark(evidence.upstream_reachable)),
        format!("the fork's history is contained: {}", mark(evidence.base_reachable)),
        format!("conflict markers left: {}", evidence.markers_left.len()),
        format!("links out of the tree: {}", evidence.links_leaving.len()),
        format!("commits not by the box's own identity: {}", evidence.foreign_identities.len()),
    ]
}
