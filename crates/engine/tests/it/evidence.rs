//! Workspace out: what comes out of a box, and what the host finds out about it by itself.

use engine::evidence::{Bounds, Evidence};
use engine::export::{ExportRequest, Exported, export_within};
use sandbox::spec::MIB;
use testkit::{Fork, Hermetic};

use crate::support::{Imported, Project, Rig, next_export, on_every_backend};

on_every_backend! {
    an_honest_merge_is_recognised,
    a_solved_conflict_is_the_agents_own_work,
    markers_of_a_conflict_are_found,
    links_that_leave_the_tree_are_found,
    a_link_to_another_repository_is_found,
    what_is_too_large_is_found,
    history_that_was_dropped_is_noticed,
    a_fast_forward_is_a_result,
    a_branch_that_did_not_move_is_nothing_new,
    a_branch_that_is_gone_is_told,
    work_that_was_not_committed_stays_behind,
    identities_are_named_and_harmless_to_show,
    a_bundle_beyond_its_cap_is_refused,
    a_repository_that_git_cannot_read_is_refused,
    a_tree_that_is_a_trap_is_refused,
    the_newer_hash_comes_out_too,
    a_private_commit_cannot_be_claimed_by_its_id,
}

async fn an_honest_merge_is_recognised(rig: &Rig) {
    let found = evidence_of(rig, clean, "git merge --quiet --no-edit upstream/main").await;
    assert!(found.upstream_reachable && found.base_reachable);
    let commits: Vec<_> = found.new_commits.iter().map(|commit| commit.parents).collect();
    assert_eq!(commits, [2]);
    // What upstream brought is upstream's to answer for.
    assert_eq!((found.files_changed, found.files_made.as_slice()), (1, &[][..]));
    assert_eq!(found.foreign_identities, [""; 0]);
    assert_nothing_wrong(&found);
}

async fn a_solved_conflict_is_the_agents_own_work(rig: &Rig) {
    let script = "! git merge --quiet upstream/main >/dev/null && \
        printf 'one\\ntwo, said both\\nthree\\n' >shared.txt && git add shared.txt && git commit --quiet --no-edit";
    let found = evidence_of(rig, conflicting, script).await;
    assert!(found.upstream_reachable && found.base_reachable);
    assert_eq!(found.files_made, ["shared.txt"]);
    assert_nothing_wrong(&found);
}

async fn markers_of_a_conflict_are_found(rig: &Rig) {
    let script = "! git merge --quiet upstream/main >/dev/null && git add shared.txt && \
        printf 'A heading\\n=======\\ntext\\n' >notes.txt && git add notes.txt && git commit --quiet --no-edit";
    let found = evidence_of(rig, conflicting, script).await;
    assert!(found.upstream_reachable);
    assert_eq!(found.markers_left, ["shared.txt"]);
}

async fn links_that_leave_the_tree_are_found(rig: &Rig) {
    let script = "mkdir deep && ln -s /etc/passwd absolute && ln -s ../../x deep/up && ln -s ../README.md deep/in && \
        ln -s nowhere dangling && git add . && git commit --quiet -m links";
    let found = evidence_of(rig, clean, script).await;
    assert_eq!(found.links_leaving, ["absolute", "deep/up"]);
    assert_eq!(found.files_made, ["absolute", "dangling", "deep/in", "deep/up"]);
}

async fn a_link_to_another_repository_is_found(rig: &Rig) {
    let script = "git update-index --add --cacheinfo \"160000,$(git rev-parse HEAD),vendor/lib\" && \
        git commit --quiet -m gitlink";
    let found = evidence_of(rig, clean, script).await;
    assert_eq!(found.gitlinks_made, ["vendor/lib"]);
}

async fn what_is_too_large_is_found(rig: &Rig) {
    let script = "head -c 5000 /dev/zero >large && : >a-name-that-is-too-long && : >small && git add . && \
        git commit --quiet -m large";
    let project = Project::new(clean).await;
    work(rig, &project, script).await;
    let bounds = Bounds { file_bytes: 4999, path_bytes: 20, files: 2 };
    let found = project.import_within(rig, bounds).await;
    assert_eq!(
        found.evidence().oversize,
        ["path of 23 bytes: a-name-that-is-too-long", "3 files changed", "large has 5000 bytes"]
    );
    let found = project.import(rig).await;
    assert_eq!(found.evidence().oversize, [""; 0]);
}

async fn history_that_was_dropped_is_noticed(rig: &Rig) {
    let script =
        "git reset --quiet --hard upstream/main && git commit --quiet --allow-empty -m instead";
    let found = evidence_of(rig, clean, script).await;
    assert!(found.upstream_reachable && !found.base_reachable);
}

/// A fork without commits of its own gets upstream's, and nothing has to be made for it.
async fn a_fast_forward_is_a_result(rig: &Rig) {
    let mut project = Project::new(clean).await;
    let first = project.fork.upstream.sha("main~1");
    project.fork.origin.git(&["update-ref", "refs/heads/main", &first]);
    project.pin_again();
    work(rig, &project, "git merge --quiet --ff-only upstream/main").await;
    let imported = project.import(rig).await;
    assert_eq!(imported.exported, Exported::Tip(project.pins.upstream.clone()));
    let found = imported.evidence();
    assert!(found.upstream_reachable && found.base_reachable && found.new_commits.is_empty());
}

async fn a_branch_that_did_not_move_is_nothing_new(rig: &Rig) {
    let imported = import_of(
        rig,
        clean,
        "git checkout --quiet -b other && git commit --quiet --allow-empty -m x",
    )
    .await;
    assert_eq!(imported.exported, Exported::NothingNew);
}

async fn a_branch_that_is_gone_is_told(rig: &Rig) {
    let imported =
        import_of(rig, clean, "git checkout --quiet --detach && git branch --quiet -D main").await;
    assert_eq!(imported.exported, Exported::NoBranch);
}

async fn work_that_was_not_committed_stays_behind(rig: &Rig) {
    let script = "echo one >committed && git add committed && git commit --quiet -m one && \
        echo two >staged && git add staged && echo three >unknown && echo four >>committed";
    let found = evidence_of(rig, clean, script).await;
    assert_eq!(found.files_made, ["committed"]);
}

async fn identities_are_named_and_harmless_to_show(rig: &Rig) {
    let script = "git commit --quiet --allow-empty -m ours && \
        GIT_AUTHOR_NAME=\"$(printf 'Eve\\033[2J')\" git commit --quiet --allow-empty -m author && \
        GIT_COMMITTER_EMAIL=bot@example.org git commit --quiet --allow-empty -m committer";
    let found = evidence_of(rig, clean, script).await;
    let who: Vec<&str> = found
        .foreign_identities
        .iter()
        .map(|line| line.split_once(" by ").expect("a name").1)
        .collect();
    assert_eq!(who, ["Bottleworks agent <bot@example.org>", "Eve\\x1b[2J <agent@bottle.invalid>"]);
}

async fn a_bundle_beyond_its_cap_is_refused(rig: &Rig) {
    let project = Project::new(clean).await;
    let script =
        "head -c 300000 /dev/urandom >noise && git add noise && git commit --quiet -m noise";
    work(rig, &project, script).await;
    let repo = project.import_repo(rig).await;
    let agent_box = rig.sh("").spec;
    let known = [project.pins.base.clone(), project.pins.upstream.clone()];
    let wish = ExportRequest {
        run: rig.run(),
        agent_box: &agent_box,
        branch: &Project::branch(),
        known: &known,
        lists_uncommitted: true,
    };
    let exported = export_within(100_000, &rig.launcher, &wish, &repo, next_export(rig)).await;
    let refused = Exported::Refused("the bundle is larger than 100000 bytes".to_owned());
    assert_eq!(exported.expect("an answer"), refused);
    let exported = export_within(MIB, &rig.launcher, &wish, &repo, next_export(rig)).await;
    assert!(matches!(exported, Ok(Exported::Tip(_))), "{exported:?}");
}

async fn a_repository_that_git_cannot_read_is_refused(rig: &Rig) {
    let script = "git commit --quiet --allow-empty -m lost && \
        object=$(git rev-parse HEAD | sed 's,^..,&/,') && chmod +w \".git/objects/$object\" && \
        echo broken >\".git/objects/$object\"";
    let imported = import_of(rig, clean, script).await;
    assert!(matches!(imported.exported, Exported::Refused(_) | Exported::NoBranch), "{imported:?}");
    assert_eq!(imported.refs(), ["refs/pins/0", "refs/pins/1"]);
}

/// A tree with an entry named `.git` would be written into the repository of whoever checks it out.
async fn a_tree_that_is_a_trap_is_refused(rig: &Rig) {
    let script = "blob=$(echo trap | git hash-object -w --stdin) && \
        tree=$(printf '100644 blob %s\\t.git\\n' \"$blob\" | git mktree) && \
        commit=$(git commit-tree -p HEAD -m trap \"$tree\") && git update-ref refs/heads/main \"$commit\"";
    let imported = import_of(rig, clean, script).await;
    let Exported::Refused(reason) = &imported.exported else { panic!("{imported:?}") };
    assert!(reason.contains("hasDotgit") || reason.contains(".git"), "{reason}");
    assert_eq!(imported.refs(), ["refs/pins/0", "refs/pins/1"]);
}

async fn the_newer_hash_comes_out_too(rig: &Rig) {
    let found = evidence_of(
        rig,
        |hermetic| Fork::sha256(hermetic).clean_merge(),
        "git merge --quiet --no-edit upstream/main",
    );
    let found = found.await;
    assert!(found.upstream_reachable && found.base_reachable);
    assert_eq!(found.tip.expect("a tip").as_str().len(), 64);
}

/// The host's repository has what was pinned and nothing else of the person's, so a commit that was never given is not
/// there to be claimed.
async fn a_private_commit_cannot_be_claimed_by_its_id(rig: &Rig) {
    let project = Project::new(|hermetic| clean(hermetic).on_branch("private")).await;
    let private = project.fork.checkout.head();
    let script = format!(
        "tree=$(git rev-parse 'HEAD^{{tree}}') && head=$(git rev-parse HEAD) && who='a <a@b> 1 +0000' && \
         printf 'tree %s\\nparent %s\\nparent {private}\\nauthor %s\\ncommitter %s\\n\\nx\\n' \
         \"$tree\" \"$head\" \"$who\" \"$who\" | git hash-object -t commit -w --stdin --literally >id && \
         cat id >.git/shallow && cat id >.git/refs/heads/main && rm id"
    );
    work(rig, &project, &script).await;
    let imported = project.import(rig).await;
    let Exported::Refused(reason) = &imported.exported else {
        panic!("{:#?}", imported.exported);
    };
    assert!(!reason.is_empty());
}

async fn evidence_of(rig: &Rig, fork: impl FnOnce(&Hermetic) -> Fork, script: &str) -> Evidence {
    import_of(rig, fork, script).await.evidence().clone()
}

/// Lets an agent work on a fork, and takes out what it made.
async fn import_of(rig: &Rig, fork: impl FnOnce(&Hermetic) -> Fork, script: &str) -> Imported {
    let project = Project::new(fork).await;
    work(rig, &project, script).await;
    project.import(rig).await
}

async fn work(rig: &Rig, project: &Project, script: &str) {
    project.fill(rig).await;
    rig.sh(script).run_ok().await;
}

fn assert_nothing_wrong(found: &Evidence) {
    let lists = [&found.links_leaving, &found.gitlinks_made, &found.markers_left, &found.oversize];
    assert!(lists.iter().all(|list| list.is_empty()), "{found:#?}");
}

fn clean(hermetic: &Hermetic) -> Fork {
    Fork::new(hermetic).clean_merge()
}

fn conflicting(hermetic: &Hermetic) -> Fork {
    Fork::new(hermetic).conflicting_merge()
}
