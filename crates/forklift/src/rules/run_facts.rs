//! Facts about how a result was made: agent, model, time, tokens, cost, and the checks of host and fork.

use engine::box_command::BoxCommandSummary;
use engine::evidence::Evidence;
use model::inert::{inert_code, inert_prose};

use super::words::counted;
use engine::check::check_words;
use shell::agent_facts::AgentFacts;

use crate::flow::record::{ContinuedWork, ForkRunRecord};

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
        lines.push(match continued_words(record) {
            Some(words) => format!("continues run {earlier}; {words}"),
            None => format!("continues run {earlier}, whose time and tokens are not included"),
        });
    }
    lines
}

/// Time, tokens and cost of all runs that continue one another, this one included; `None` if they are not known.
pub(crate) fn continued_words(record: &ForkRunRecord) -> Option<String> {
    let sum = record.continued_work?.plus(own_work(record));
    let least = |known: usize| if known < sum.runs { "at least " } else { "" };
    let tokens = match sum.counted_runs {
        0 => "tokens unknown".to_owned(),
        known => {
            let ContinuedWork { tokens_read, tokens_written, .. } = sum;
            format!("{}{tokens_read} tokens read, {tokens_written} written", least(known))
        }
    };
    let cost = match sum.priced_runs {
        0 => "cost unknown".to_owned(),
        known => format!("{}{:.2} dollars", least(known), sum.usd),
    };
    let (runs, time) = (counted(sum.runs, "run"), render_duration(sum.wall_ms));
    Some(format!("all {runs} together: {time}, {tokens}, {cost}"))
}

/// Work of the agents of a run and of the runs that it continues; `None` if that of an earlier one is not known.
pub(crate) fn work_so_far(record: &ForkRunRecord) -> Option<ContinuedWork> {
    match (&record.resumed_from, record.continued_work) {
        (Some(_), None) => None,
        (_, earlier) => Some(earlier.unwrap_or_default().plus(own_work(record))),
    }
}

/// By the host's own count, else by the agent's account.
fn own_work(record: &ForkRunRecord) -> ContinuedWork {
    let exit = record.agent_box.as_ref();
    let usage = exit.and_then(|exit| exit.egress.as_ref()).map(|egress| &egress.usage);
    let usage = usage.filter(|usage| usage.tokens() > 0);
    let claim = record.agent_result.as_ref();
    let claimed = claim.map(|claim| (claim.input_tokens, claim.output_tokens));
    let tokens = usage
        .map(|usage| (usage.input + usage.cache_read + usage.cache_write, usage.output))
        .or(claimed.filter(|(read, written)| read + written > 0));
    let usd = usage.map(|usage| usage.usd).filter(|usd| *usd > 0.0);
    let usd = usd.or(claim.and_then(|claim| claim.cost_usd).filter(|usd| *usd > 0.0));
    let (tokens_read, tokens_written) = tokens.unwrap_or_default();
    ContinuedWork {
        runs: 1,
        wall_ms: exit.map_or(0, |exit| exit.wall_ms),
        tokens_read,
        tokens_written,
        usd: usd.unwrap_or_default(),
        counted_runs: usize::from(tokens.is_some()),
        priced_runs: usize::from(usd.is_some()),
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pull_text::tests::record;
    use super::*;

    #[test]
    fn the_work_of_runs_that_continue_one_another_is_summed() {
        let claim = json!({
            "claim": {"kind": "finished"}, "answer": null, "session": null, "tool_calls": 0,
            "input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5,
        });
        let first = record(&json!({"agent_result": claim}));
        let continues = |earlier: &ForkRunRecord, more: serde_json::Value| {
            let mut later = record(&more);
            later.product.resumed_from = Some(earlier.run.clone());
            later.product.continued_work = work_so_far(earlier);
            later
        };
        let second = continues(&first, json!({}));
        let third = continues(&second, json!({"agent_result": claim}));
        assert_eq!(
            continued_words(&third).as_deref(),
            Some(
                "all 3 runs together: 30 minutes, at least 200 tokens read, 40 written, at least 1.00 dollars"
            )
        );
        // A record of an earlier version does not know what it continues.
        let mut old = second;
        old.product.continued_work = None;
        assert_eq!(continued_words(&continues(&old, json!({}))), None);
    }
}
