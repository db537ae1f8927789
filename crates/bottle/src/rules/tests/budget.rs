//! Budgets: what is refused in a configuration, what a run reserves, and the words for a budget without room.

use egress::{EgressConfig, EgressPolicy, EgressProfile, ModelRouteSpec, ModelUsage};
use jiff::Timestamp;
use orchestrator_db::{Amount, BudgetRefusal, BudgetScope, BudgetUnit, IssueKey};

use crate::rules::agent_manifest::{SpendTable, parse_toml};
use crate::rules::budget::{
    BudgetReason, BudgetSettings, SpendingFacts, UnlimitedRun, day_of, explain_refusal,
    group_digits, lower_limits, micro_usd, render_usd, spent_amount, usd_of, with_unlimited,
};

const REPOS: [&str; 2] = ["acme/widget", "acme/tools/lathe"];

fn parse(text: &str) -> BudgetSettings {
    parse_toml(text).expect("it reads")
}

#[track_caller]
fn refuse(text: &str, words: &str) {
    let fault = parse(text).check(&REPOS).expect_err("refused");
    assert!(fault.contains(words), "{fault}");
}

#[test]
fn budgets_that_cannot_be_meant_are_refused_by_name() {
    assert_eq!(parse("").check(&REPOS), Ok(()));
    refuse("issue = { usd = 1.0 }", "budget.issue.usd needs budget.run.usd");
    refuse(
        "run = { usd = 1.0 }\nhost = { tokens = 9 }",
        "budget.host.tokens needs budget.run.tokens",
    );
    refuse("run = { tokens = 0 }", "budget.run cannot be 0");
    refuse("run = { usd = -1.0 }", "budget.run.usd is a number of dollars");
    refuse("run = { usd = nan }", "budget.run.usd is a number of dollars");
    refuse("run = { tokens = 9007199254740993 }", "budget.run.tokens cannot be more than");
    let run = "run = { tokens = 1 }\n";
    refuse(
        &format!("{run}repositories = {{ \"acme/wiget\" = {{}} }}"),
        "'acme/wiget' is not served",
    );
    refuse(&format!("{run}organisations = {{ \"acm\" = {{}} }}"), "no repository of 'acm'");
    let named = format!("{run}repositories = {{ \"ACME/widget\" = {{ tokens = 5 }} }}");
    assert_eq!(parse(&named).check(&REPOS), Ok(()));
}

#[test]
fn a_run_reserves_the_least_of_its_limits() {
    let budget = parse("run = { tokens = 100, usd = 2.0 }");
    let most = |max_tokens, max_usd| {
        budget.most(&SpendTable { max_tokens, max_usd, ..SpendTable::default() })
    };
    let amount = |tokens, micro_usd| Amount { tokens: Some(tokens), micro_usd: Some(micro_usd) };
    assert_eq!(most(None, None), amount(100, 2_000_000));
    assert_eq!(most(Some(40), Some(5.0)), amount(40, 2_000_000));
    assert_eq!(most(Some(400), Some(0.5)), amount(100, 500_000));
    assert_eq!(parse("").most(&SpendTable::default()), Amount::default());
}

#[test]
fn a_named_budget_takes_the_place_of_the_usual_one() {
    let budget = parse(
        "run = { tokens = 1 }\nrepository = { tokens = 10 }\norganisation = { tokens = 20 }\n\
         repositories = { \"Acme/Widget\" = { tokens = 11 } }\norganisations = { acme = { tokens = 21 } }\n",
    );
    let limits = |owner: &str, repo: &str| -> Vec<(BudgetScope, Option<u64>)> {
        budget.limits(owner, repo).iter().map(|limit| (limit.scope, limit.most.tokens)).collect()
    };
    use BudgetScope::{Organisation, Repository};
    assert_eq!(limits("acme", "widget"), [(Organisation, Some(21)), (Repository, Some(11))]);
    assert_eq!(limits("acme/tools", "lathe"), [(Organisation, Some(21)), (Repository, Some(10))]);
    assert_eq!(limits("other", "x"), [(Organisation, Some(20)), (Repository, Some(10))]);
}

fn key() -> IssueKey {
    IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number: 3 }
}

fn explain(scope: BudgetScope, spent: u64, reserved: u64, wanted: u64) -> BudgetReason {
    let unit = BudgetUnit::Tokens;
    let refusal = BudgetRefusal { scope, unit, limit: 100_000, spent, reserved, wanted };
    let now: Timestamp = "2026-11-18T14:02:33Z".parse().expect("a time");
    let settings = parse("run = { tokens = 1 }\norganisations = { acme = { tokens = 100000 } }");
    explain_refusal(&settings, &refusal, &key(), now)
}

#[test]
fn a_budget_without_room_is_explained() {
    let spent = explain(BudgetScope::Repository, 120_000, 0, 50_000);
    insta::assert_snapshot!(spent.text, @"the budget of repository acme/widget on 2026-11-18, 100,000 tokens, is spent: at 14:02 UTC 120,000 tokens are spent and 0 tokens reserved, and a run reserves 50,000 tokens; it goes on at 00:00 UTC, or when budget.repository is raised");
    assert_eq!(spent.opens.map(|at| at.to_string()).as_deref(), Some("2026-11-19T00:00:00Z"));
    let tight = explain(BudgetScope::Host, 60_000, 0, 50_000);
    assert!(tight.text.contains("of this host on 2026-11-18, 100,000 tokens, has no room"));
    let soon = explain(BudgetScope::Organisation, 10_000, 50_000, 50_000);
    insta::assert_snapshot!(soon.text, @r#"the budget of organisation acme on 2026-11-18, 100,000 tokens, is reserved by runs at work: at 14:02 UTC 10,000 tokens are spent and 50,000 tokens reserved, and a run reserves 50,000 tokens; it goes on when a run ends with less, or at 00:00 UTC, or when budget.organisations."acme" is raised"#);
    assert_eq!((soon.opens, soon.may_fit_soon), (None, true));
    let issue = explain(BudgetScope::Issue, 100_000, 0, 1);
    assert!(issue.text.ends_with("it goes on when budget.issue is raised"), "{}", issue.text);
    assert_eq!(issue.opens, None, "an issue's budget does not open by itself");
    let never = explain(BudgetScope::Host, 0, 0, 100_001);
    insta::assert_snapshot!(never.text, @"a run reserves 100,001 tokens, more than the whole budget of this host, 100,000 tokens; raise budget.host, or lower budget.run");
    for reason in [spent, tight, soon, issue, never] {
        assert!(reason.text.starts_with(&reason.head));
    }
}

#[test]
fn what_runs_without_a_limit_have_spent_leaves_less_room() {
    let budget =
        parse("run = { tokens = 100 }\nhost = { tokens = 1000 }\nissue = { tokens = 500 }");
    let now: Timestamp = "2026-11-18T12:00:00Z".parse().expect("a time");
    let other = |spent| UnlimitedRun {
        seq: 1,
        key: IssueKey { issue_number: 9, ..key() },
        day: day_of(now),
        reserved: Amount::default(),
        spent: Amount { tokens: Some(spent), micro_usd: None },
    };
    let limits = |runs: &[UnlimitedRun]| {
        let mut request = budget.reservation(&key(), "worker", &SpendTable::default(), now);
        lower_limits(&mut request, &key(), runs);
        let mut limits: Vec<_> = request
            .limits
            .iter()
            .map(|it| (it.scope, it.most.tokens.unwrap_or_default()))
            .collect();
        limits.sort();
        limits
    };
    let (issue, host) = (BudgetScope::Issue, BudgetScope::Host);
    assert_eq!(limits(&[]), [(issue, 500), (host, 1000)]);
    assert_eq!(limits(&[other(40)]), [(issue, 500), (host, 1000)], "the store counts it as 100");
    assert_eq!(limits(&[other(700)]), [(issue, 500), (host, 400)]);
    let yesterday = UnlimitedRun { day: day_of(now).yesterday().expect("a day"), ..other(700) };
    assert_eq!(limits(&[yesterday]), [(issue, 500), (host, 1000)]);
    let own = UnlimitedRun { key: key(), ..other(9000) };
    assert_eq!(limits(&[own]), [(issue, 0), (host, 0)]);
    let limited = Amount { tokens: Some(800), micro_usd: None };
    let limited = UnlimitedRun { reserved: limited, ..other(700) };
    assert_eq!(limits(&[limited]), [(issue, 500), (host, 1000)], "its reservation counts");
    let refusal = BudgetRefusal {
        scope: host,
        unit: BudgetUnit::Tokens,
        limit: 400,
        spent: 350,
        reserved: 100,
        wanted: 100,
    };
    let told = with_unlimited(&refusal, &key(), day_of(now), (&budget, &[other(700)]));
    assert_eq!((told.limit, told.spent, told.reserved), (1000, 350, 700), "in its own numbers");
}

#[test]
fn a_budget_in_which_no_run_fits_is_found() {
    let budget = parse(
        "run = { tokens = 100, usd = 1.0 }\nhost = { tokens = 99 }\nissue = { usd = 0.5 }\n\
         repositories = { \"acme/widget\" = { tokens = 100 } }\n",
    );
    let found = |max_tokens, max_usd| {
        let spend = SpendTable { max_tokens, max_usd, ..SpendTable::default() };
        budget.never_fitting(&REPOS, "worker", &spend)
    };
    assert_eq!(
        found(None, None),
        [
            "a run of 'worker' reserves 1.00 dollars, more than the whole budget of an issue, 0.50 dollars",
            "a run of 'worker' reserves 100 tokens, more than the whole budget of this host, 99 tokens",
        ]
    );
    assert!(found(Some(99), Some(0.5)).is_empty(), "its manifest asks for less");
}

#[test]
fn amounts_are_whole_and_round_up() {
    assert_eq!([0.0, 0.1, 5.0, 0.000_000_1].map(micro_usd), [0, 100_000, 5_000_000, 1]);
    assert!((usd_of(micro_usd(19.99)) - 19.99).abs() < 1e-9);
    assert_eq!(render_usd(1_234_500_000), "1,234.50 dollars");
    assert_eq!(render_usd(1), "0.000001 dollars");
    assert_eq!([0, 999, 1000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn what_nobody_counted_is_unknown_and_never_nothing() {
    let upstream = egress::model_route::Upstream::parse("https://api.example").expect("a server");
    let auth = egress::model_route::AuthStyle::Bearer;
    let mut route = ModelRouteSpec::new(upstream, auth, egress::KeySource::Env("K".into()), "");
    let config = |model: Option<&ModelRouteSpec>| EgressConfig {
        run: "r".to_owned(),
        policy: EgressPolicy::new(EgressProfile::ModelOnly),
        model: model.cloned(),
        log_path: std::path::PathBuf::new(),
    };
    let usage = ModelUsage { input: 7, output: 3, usd: 0.5, ..ModelUsage::default() };
    let spent = |egress: Option<&EgressConfig>, has_log, usage| {
        spent_amount(&SpendingFacts { egress, has_log, usage })
    };
    assert_eq!(spent(None, false, None), Amount::ZERO, "no way to a model");
    let counted = config(Some(&route));
    assert_eq!(spent(Some(&counted), false, None), Amount::ZERO, "the proxy never began");
    assert_eq!(spent(Some(&counted), true, None), Amount::default(), "the proxy died");
    let tokens = Amount { tokens: Some(10), micro_usd: None };
    assert_eq!(spent(Some(&counted), true, Some(&usage)), tokens, "without a price");
    let none = ModelUsage::default();
    assert_eq!(spent(Some(&counted), true, Some(&none)), Amount::ZERO);
    route.prices.0.insert("m".to_owned(), shell::agent_settings::price(1.0, 1.0));
    let priced = config(Some(&route));
    let both = Amount { tokens: Some(10), micro_usd: Some(500_000) };
    assert_eq!(spent(Some(&priced), true, Some(&usage)), both);
    let uncounted = config(None);
    assert_eq!(spent(Some(&uncounted), true, Some(&none)), Amount::default());
}
