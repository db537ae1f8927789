//! Verdict about tests: a result that lost tests of either side is not published unless the user accepts it.

use merge::test_names::TestAccount;

use super::judge::Verdict;

/// Maker of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MadeBy {
    /// Git alone: it drops a test only if a side did.
    Git,
    AgentOrResolver,
}

/// Turns a good verdict into a refusal if tests are missing or skipped.
pub(crate) fn judge_tests(
    verdict: Verdict,
    tests: Option<&TestAccount>,
    made_by: MadeBy,
    accept_loss: bool,
) -> Verdict {
    match tests {
        Some(tests) if tests.is_lost() && !accept_loss => match (&verdict, made_by) {
            (Verdict::Publish, MadeBy::AgentOrResolver) => {
                Verdict::TestsLost { tests: tests.losses() }
            }
            _ => verdict,
        },
        Some(_) | None => verdict,
    }
}

#[cfg(test)]
mod tests {
    use merge::path::TreePath;
    use merge::test_names::TestFinding;

    use super::*;

    #[test]
    fn a_missing_test_refuses_an_agents_result_unless_it_is_accepted() {
        let finding = TestFinding {
            path: TreePath::new(b"a.rs".to_vec()),
            name: "works".to_owned(),
            note: "of the fork".to_owned(),
        };
        let lost = TestAccount { missing: vec![finding.clone()], ..TestAccount::default() };
        let weak = TestAccount { weakened: vec![finding], ..TestAccount::default() };
        let judge =
            |tests, made_by, accept| judge_tests(Verdict::Publish, Some(tests), made_by, accept);
        let refused = judge(&lost, MadeBy::AgentOrResolver, false);
        assert!(matches!(&refused, Verdict::TestsLost { tests } if tests[0].contains("works")));
        assert_eq!(judge(&lost, MadeBy::AgentOrResolver, true), Verdict::Publish);
        assert_eq!(judge(&lost, MadeBy::Git, false), Verdict::Publish);
        assert_eq!(judge(&weak, MadeBy::AgentOrResolver, false), Verdict::Publish);
        let stuck = judge_tests(Verdict::Stuck, Some(&lost), MadeBy::AgentOrResolver, false);
        assert_eq!(stuck, Verdict::Stuck);
    }
}
