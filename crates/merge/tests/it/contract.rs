//! Whatever was the fork's is accounted for.

use std::fs;

use merge::clean::MergeAttempt;
use merge::contract::ContractStatus;

use crate::world::{FORK, UPSTREAM, World, commit_states, path_state};

const TEXT: &str = "alpha = 1\nbeta = 2\ngamma = 3\ndelta = 4\nepsilon = 5\n";

/// The fork changed a line, added a file, deleted one and took a line out; upstream went on elsewhere.
fn busy() -> World {
    let world = World::new(&[("conf", TEXT), ("old.txt", "old\n"), ("other", TEXT)]);
    world.write(FORK, "conf", TEXT.replace("beta = 2", "beta = 20"));
    world.write(FORK, "fork.txt", "ours\nalone\n");
    world.remove(FORK, "old.txt");
    world.write(FORK, "other", TEXT.replace("delta = 4\n", ""));
    world.write(UPSTREAM, "conf", TEXT.replace("epsilon = 5", "epsilon = 50"));
    world.write(UPSTREAM, "other", TEXT.replace("alpha = 1", "alpha = 10"));
    world
}

#[tokio::test]
async fn an_honest_merge_loses_nothing() {
    let world = busy();
    let MergeAttempt::Clean { commit, .. } = world.attempt().await else { panic!("conflicts") };
    let contract = world.contract(&commit, &[]).await;
    assert!(!contract.lost);
    assert_eq!(commit_states(&contract), [ContractStatus::Kept; 4]);
    assert!(contract.paths.iter().all(|path| path.state == ContractStatus::Kept), "{contract:?}");
    assert_eq!(contract.paths.len(), 4);
}

#[tokio::test]
async fn resetting_to_upstream_loses_all_of_it() {
    let world = busy();
    let contract = world.contract(&world.sha(UPSTREAM), &[]).await;
    assert!(contract.lost);
    assert_eq!(commit_states(&contract), [ContractStatus::Lost; 4]);
    assert!(contract.paths.iter().all(|path| path.state == ContractStatus::Lost), "{contract:?}");
}

#[tokio::test]
async fn a_rebase_that_drops_one_commit_is_seen() {
    let world = busy();
    world.on(UPSTREAM).git(&["checkout", "--quiet", "-B", "result"]);
    let range = format!("{UPSTREAM}..{FORK}");
    let commits = world.repo.git(&["rev-list", "--reverse", &range]);
    for commit in commits.lines().skip(1) {
        world.repo.git(&["cherry-pick", commit]);
    }
    let contract = world.contract(&world.sha("result"), &[]).await;
    assert!(contract.lost);
    let expected =
        [ContractStatus::Kept, ContractStatus::Kept, ContractStatus::Kept, ContractStatus::Lost];
    assert_eq!(commit_states(&contract), expected);
    assert!(contract.commits[1].same_as.is_some());
    assert_eq!(path_state(&contract, "conf").0, ContractStatus::Lost);
}

#[tokio::test]
async fn a_file_of_the_forks_that_is_gone_is_lost() {
    let world = busy();
    let tip = world.merged_by_hand(&[("fork.txt", None)]);
    let contract = world.contract(&tip, &[]).await;
    let expected = (ContractStatus::Lost, "the fork added it, and it is gone".to_owned());
    assert_eq!(path_state(&contract, "fork.txt"), expected);
    assert_eq!(path_state(&contract, "conf").0, ContractStatus::Kept);
    assert!(contract.lost);
}

#[tokio::test]
async fn a_deletion_undone_is_lost() {
    let world = busy();
    let tip = world.merged_by_hand(&[("old.txt", Some("old\n"))]);
    assert_eq!(path_state(&world.contract(&tip, &[]).await, "old.txt").0, ContractStatus::Lost);
}

#[tokio::test]
async fn taking_theirs_in_a_conflict_is_a_loss() {
    let world = World::new(&[("conf", TEXT)]);
    world.write(FORK, "conf", TEXT.replace("beta = 2", "beta = 20"));
    world.write(UPSTREAM, "conf", TEXT.replace("beta = 2", "beta = 200"));
    let tip = world.merged_by_hand(&[("conf", Some(&TEXT.replace("beta = 2", "beta = 200")))]);
    let contract = world.contract(&tip, &[]).await;
    let words = "0 of 1 line; upstream's version is in its place";
    assert_eq!(path_state(&contract, "conf"), (ContractStatus::Lost, words.to_owned()));
    assert_eq!(commit_states(&contract), [ContractStatus::Lost]);
    let tip = world.merged_by_hand(&[("conf", Some(&TEXT.replace("beta = 2", "beta = 20")))]);
    assert!(!world.contract(&tip, &[]).await.lost);
}

#[tokio::test]
async fn a_conflict_given_to_upstream_is_named_and_most_of_them_are_a_loss() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let world = World::new(&names.map(|name| (name, TEXT)));
    let (ours, theirs) =
        (TEXT.replace("beta = 2", "beta = 20"), TEXT.replace("beta = 2", "beta = 200"));
    let both = TEXT.replace("beta = 2", "beta = 20\nbeta = 200");
    world.write(FORK, "own", "of the fork\n");
    for name in names {
        world.write(FORK, name, &ours);
        world.write(UPSTREAM, name, &theirs);
    }
    let given = |count: usize| {
        let text = |at: usize| if at < count { theirs.as_str() } else { both.as_str() };
        let files: Vec<_> =
            names.iter().enumerate().map(|(at, name)| (*name, Some(text(at)))).collect();
        world.merged_by_hand(&files)
    };
    let contract = world.contract(&given(1), &[]).await;
    let words = "0 of 1 line; upstream's side of the conflict is in its place";
    assert_eq!(path_state(&contract, "a"), (ContractStatus::Changed, words.to_owned()));
    assert!(!contract.lost, "{contract:?}");
    // A line of the fork that upstream did not touch is no matter of the conflict.
    let gone = theirs.replace("delta = 4\n", "");
    let files: Vec<_> = names.iter().map(|name| (*name, Some(both.as_str()))).collect();
    let tip = world.merged_by_hand(&[&files[..], &[("a", Some(&gone)), ("own", None)]].concat());
    assert!(world.contract(&tip, &[]).await.lost);
    let contract = world.contract(&given(5), &[]).await;
    assert_eq!(path_state(&contract, "a").0, ContractStatus::Lost);
    assert!(contract.lost);
}

#[tokio::test]
async fn what_upstream_adopted_is_superseded() {
    let world = World::new(&[("conf", TEXT), ("far", "far\n")]);
    world.write(FORK, "conf", TEXT.replace("beta = 2", "beta = 20"));
    world.write(UPSTREAM, "far", "further\n");
    world.on(UPSTREAM).git(&["cherry-pick", FORK]);
    let adopted = world.sha(UPSTREAM);
    // Upstream goes on from what it took in.
    world.write(UPSTREAM, "conf", TEXT.replace("beta = 2", "beta = 2000"));
    let tip = world.merged_by_hand(&[("conf", Some(&TEXT.replace("beta = 2", "beta = 2000")))]);
    let contract = world.contract(&tip, &[]).await;
    assert_eq!(path_state(&contract, "conf").0, ContractStatus::Superseded);
    assert_eq!(commit_states(&contract), [ContractStatus::Superseded]);
    assert_eq!(contract.commits[0].same_as, Some(adopted));
    assert!(!contract.lost);
}

#[tokio::test]
async fn the_same_lines_upstream_are_superseded_without_the_same_commit() {
    let world = World::new(&[("conf", TEXT)]);
    let fork = format!("{TEXT}zeta = 6\n");
    world.write(FORK, "conf", &fork);
    world.write(UPSTREAM, "conf", format!("{fork}eta = 7\n"));
    let tip = world.merged_by_hand(&[("conf", Some(&format!("{fork}eta = 7\n")))]);
    let contract = world.contract(&tip, &[]).await;
    let expected = (ContractStatus::Superseded, "upstream has its 1 line".to_owned());
    assert_eq!(path_state(&contract, "conf"), expected);
    assert_eq!(commit_states(&contract), [ContractStatus::Superseded]);
}

#[tokio::test]
async fn an_adapted_change_is_changed() {
    let world = World::new(&[("conf", TEXT)]);
    world.write(FORK, "conf", TEXT.replace("beta = 2", "beta = 20"));
    world.write(UPSTREAM, "conf", TEXT.replace("beta = 2", "[beta]\nvalue = 2"));
    let adapted = TEXT.replace("beta = 2", "[beta]\nvalue = 20");
    let tip = world.merged_by_hand(&[("conf", Some(&adapted))]);
    let contract = world.contract(&tip, &[]).await;
    let expected = (ContractStatus::Changed, "0 of 1 line, 1 adapted".to_owned());
    assert_eq!(path_state(&contract, "conf"), expected);
    assert_eq!(commit_states(&contract), [ContractStatus::Changed]);
    assert!(!contract.lost);
}

#[tokio::test]
async fn a_protected_path_must_be_the_forks() {
    let world = World::new(&[("branding/logo", TEXT), ("branding/name", "name\n")]);
    world.write(FORK, "branding/logo", TEXT.replace("beta = 2", "beta = 20"));
    world.write(UPSTREAM, "branding/logo", TEXT.replace("epsilon = 5", "epsilon = 50"));
    world.write(UPSTREAM, "branding/name", "another name\n");
    world.write(UPSTREAM, "branding/new", "new\n");
    let tip = world.merged_by_git();
    assert!(!world.contract(&tip, &[]).await.lost);
    let contract = world.contract(&tip, &["branding/"]).await;
    let protected = (ContractStatus::Lost, "protected".to_owned());
    assert_eq!(path_state(&contract, "branding/logo"), protected);
    assert_eq!(path_state(&contract, "branding/name"), protected);
    assert_eq!(contract.paths.len(), 2);
    assert!(contract.lost);
    let tip = world.merged_by_hand(&[
        ("branding/logo", Some(&TEXT.replace("beta = 2", "beta = 20"))),
        ("branding/name", Some("name\n")),
    ]);
    assert!(!world.contract(&tip, &["branding/"]).await.lost);
}

#[tokio::test]
async fn changes_are_followed_to_a_new_name() {
    let long: String = (1..40).map(|number| format!("line {number}\n")).collect();
    let world = World::new(&[("here.txt", &long), ("there.txt", &long.replace("line", "row"))]);
    world.write(FORK, "here.txt", long.replace("line 7\n", "the fork's seven\n"));
    world.on(FORK).git(&["mv", "there.txt", "moved-by-fork.txt"]);
    world.repo.commit_index("fork: move");
    world.on(UPSTREAM).git(&["mv", "here.txt", "moved-by-upstream.txt"]);
    world.repo.commit_index("up: move");
    world.write(
        UPSTREAM,
        "there.txt",
        long.replace("line", "row").replace("row 9\n", "row nine\n"),
    );
    let MergeAttempt::Clean { commit, .. } = world.attempt().await else { panic!("conflicts") };
    let contract = world.contract(&commit, &[]).await;
    assert!(!contract.lost, "{contract:?}");
    let (state, detail) = path_state(&contract, "here.txt");
    assert_eq!(state, ContractStatus::Kept);
    assert!(detail.ends_with("now moved-by-upstream.txt"), "{detail}");
    assert_eq!(path_state(&contract, "moved-by-fork.txt").0, ContractStatus::Kept);
    assert_eq!(path_state(&contract, "there.txt").0, ContractStatus::Kept);
    assert_eq!(commit_states(&contract), [ContractStatus::Kept; 2]);
}

#[tokio::test]
async fn binary_files_are_compared_by_their_whole() {
    let world = World::new(&[("logo", "\0one")]);
    world.write(FORK, "logo", "\0two");
    world.write(UPSTREAM, "logo", "\0three");
    let tip = world.merged_by_hand(&[("logo", Some("\0three"))]);
    assert_eq!(path_state(&world.contract(&tip, &[]).await, "logo").0, ContractStatus::Lost);
    let tip = world.merged_by_hand(&[("logo", Some("\0two"))]);
    assert_eq!(path_state(&world.contract(&tip, &[]).await, "logo").0, ContractStatus::Kept);
    let tip = world.merged_by_hand(&[("logo", Some("\0four"))]);
    assert_eq!(path_state(&world.contract(&tip, &[]).await, "logo").0, ContractStatus::Lost);
}

#[tokio::test]
async fn odd_names_are_accounted_for() {
    let names: [&[u8]; 4] = [b"a b", b"new\nline", b"\"quote", b"\xff\xfe"];
    let world = World::new(&[("x", "x\n")]);
    for name in names {
        fs::write(world.odd_file(name), "of the fork\n").unwrap();
    }
    world.repo.commit("odd names");
    world.write(UPSTREAM, "y", "y\n");
    let tip = world.merged_by_git();
    let contract = world.contract(&tip, &[]).await;
    assert_eq!((contract.paths.len(), contract.lost), (4, false));
    for name in names {
        fs::remove_file(world.odd_file(name)).unwrap();
    }
    world.repo.commit("without them");
    let contract = world.contract(&world.sha("result"), &[]).await;
    assert!(contract.paths.iter().all(|path| path.state == ContractStatus::Lost));
    let found: Vec<&[u8]> = contract.paths.iter().map(|path| path.path.as_bytes()).collect();
    assert_eq!(found, [names[2], names[0], names[1], names[3]]);
    assert_eq!(commit_states(&contract), [ContractStatus::Lost]);
}

#[tokio::test]
async fn a_lost_mode_is_lost_work() {
    let world = World::new(&[("run.sh", TEXT)]);
    world.on(FORK).git(&["update-index", "--chmod=+x", "run.sh"]);
    world.repo.commit_index("fork: make it run");
    world.write(UPSTREAM, "run.sh", TEXT.replace("beta = 2", "beta = 3"));
    let MergeAttempt::Clean { commit, .. } = world.attempt().await else { panic!("conflicts") };
    assert!(!world.contract(&commit, &[]).await.lost);
    let contract = world.contract(&world.sha(UPSTREAM), &[]).await;
    let expected = (ContractStatus::Lost, "the fork's mode is gone".to_owned());
    assert_eq!(path_state(&contract, "run.sh"), expected);
}
