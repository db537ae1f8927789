//! A verdict is not talked round: whatever is taken away from an honest merge is refused or shown with its path.

use merge::contract::ContractEnds;
use testkit::Hermetic;

#[path = "../../benches/verdict/dishonest/mod.rs"]
mod dishonest;
#[path = "../../benches/verdict/generated.rs"]
mod generated;
#[path = "../../benches/verdict/ruling.rs"]
mod ruling;

use dishonest::{Operator, Place, Random, make_variant, observe_merge};
use generated::generate_fork;
use ruling::{commit_variant, rule};

/// Merges that each test generates.
const MERGES: usize = 3;

/// Tries all operators on generated merges, and collects what is neither refused nor shown, and what was never tried.
async fn try_all(seed: u64) -> Vec<String> {
    let mut problems = Vec::new();
    let mut untried: Vec<(Operator, Place)> = Operator::ALL
        .into_iter()
        .flat_map(|operator| operator.places().iter().map(move |place| (operator, *place)))
        .collect();
    for number in 0..MERGES {
        let hermetic = Hermetic::new();
        let mut random = Random::new(seed, &number.to_string());
        let (repo, ends) = generate_fork(&hermetic.root().join("host.git"), &mut random).await;
        let honest = rule(&repo, &ends, None).await.unwrap();
        problems.extend(honest.refusals.iter().map(|reason| format!("honest: {reason}")));
        problems.extend((honest.conflicts == 0).then(|| format!("{number} has no conflict")));
        let merge = observe_merge(&repo, &ends, &mut random).await.unwrap();
        for operator in Operator::ALL {
            for &place in operator.places() {
                let made = make_variant(&repo, &merge, operator, place, &mut random).await;
                let Some(variant) = made.unwrap() else { continue };
                untried.retain(|tried| *tried != (operator, place));
                let tip = commit_variant(&repo, &ends, &variant.tree).await.unwrap();
                let tried = ContractEnds { tip, ..ends.clone() };
                let ruling = rule(&repo, &tried, Some(&honest.commits)).await.unwrap();
                let words = ruling.words_about(&variant.touched);
                if ruling.refusals.is_empty() && words == honest.words_about(&variant.touched) {
                    let (operator, place) = (operator.as_str(), place.as_str());
                    problems.push(format!("{number}: {operator} {place}: {:?}", variant.touched));
                }
            }
        }
    }
    problems.extend(untried.iter().map(|untried| format!("never tried: {untried:?}")));
    problems
}

#[tokio::test]
async fn no_operator_takes_something_away_unseen() {
    assert_eq!(try_all(1).await, Vec::<String>::new());
}

#[tokio::test]
async fn nor_does_it_with_other_merges() {
    assert_eq!(try_all(2).await, Vec::<String>::new());
}
