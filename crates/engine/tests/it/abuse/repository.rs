//! What git of the host makes of a workspace that an agent has turned against it: the whole way out, by export and
//! evidence.

use engine::export::{Exported, import_ref};
use host::git::SealedRepo;
use testkit::abuse::Attempt;
use testkit::repo::{Forgery, forge_merge, markers};

use super::scene::Scene;
use crate::support::{Imported, Project, Rig, on_every_backend};

on_every_backend! {
    no_forged_merge_is_believed,
    odd_branches_do_not_come_out_beside_the_one,
    a_workspace_full_of_traps_is_taken_out_unharmed,
}

/// Takes out what an attempt on a repository left, if this was one.
pub(super) async fn check(scene: &Scene<'_>, attempt: &Attempt) {
    let Some(project) = &scene.project else { return };
    match attempt.name {
        "own-suid" => commit(scene, "git add suid-id && git commit --quiet -m suid").await,
        "hostile-git" => commit(scene, COMMIT_ATTRIBUTES).await,
        _ => {}
    }
    let imported = project.import(scene.rig).await;
    if attempt.name == "odd-branches" {
        return a_name_of_two_meanings_does_not_come_out(&imported);
    }
    assert_only_our_refs(scene.rig, &imported);
    let evidence = imported.evidence();
    assert!(!evidence.upstream_reachable && evidence.base_reachable, "{evidence:#?}");
    match attempt.name {
        "own-suid" => the_bit_stays_behind(project, &imported).await,
        "hostile-git" => assert!(evidence.files_made.contains(&".gitattributes".to_owned())),
        "forged-identity" => {
            assert_eq!(evidence.foreign_identities.len(), 1, "{evidence:#?}");
            let line = &evidence.foreign_identities[0];
            assert!(line.ends_with("by Somebody Else <somebody@example.org>"), "{line}");
        }
        _ => assert_eq!(evidence.foreign_identities, [""; 0]),
    }
}

/// Past every hook and filter, which would only get into the way here.
const COMMIT_ATTRIBUTES: &str = "\
    blob=$(git hash-object -w --no-filters .gitattributes) && \
    git -c core.fsmonitor=false update-index --add --cacheinfo \"100644,$blob,.gitattributes\" && \
    tree=$(git -c core.fsmonitor=false write-tree) && \
    commit=$(git commit-tree -p HEAD -m attributes \"$tree\") && \
    git -c core.hooksPath=/dev/null update-ref refs/heads/main \"$commit\"";

async fn commit(scene: &Scene<'_>, script: &str) {
    scene.sh(script).run_ok().await;
}

/// Git knows two modes of files, and neither has the bit.
async fn the_bit_stays_behind(project: &Project, imported: &Imported) {
    let Exported::Tip(tip) = &imported.exported else { panic!("{imported:?}") };
    let entries = imported.repo.changed_entries(&project.pins.base, tip).await.expect("entries");
    for entry in &entries {
        assert!([0o100_644, 0o100_755].contains(&entry.new_mode), "{entry:?}");
    }
    assert!(entries.iter().any(|entry| entry.path == b"suid-id" && entry.new_mode == 0o100_755));
}

/// One of the odd branches is called `refs/heads/main`, by which git no longer knows which one `refs/heads/main` is. The
/// agent's work stays where it is then, and so does every odd name.
fn a_name_of_two_meanings_does_not_come_out(imported: &Imported) {
    assert!(matches!(imported.exported, Exported::Refused(_)), "{imported:?}");
    assert_eq!(imported.refs(), ["refs/pins/0", "refs/pins/1"]);
}

/// Whatever branches the agent made, only the one that was asked for comes out, under a name of ours.
fn assert_only_our_refs(rig: &Rig, imported: &Imported) {
    let ours = import_ref(rig.run(), &Project::branch()).expect("a ref");
    let refs = [ours.as_str(), "refs/pins/0", "refs/pins/1"];
    assert_eq!(imported.refs(), refs, "{:?}", imported.exported);
}

async fn no_forged_merge_is_believed(rig: &Rig) {
    let project = Project::new(|hermetic| testkit::Fork::new(hermetic).clean_merge()).await;
    project.fill(rig).await;
    rig.sh("echo work >work.txt && git add work.txt && git commit --quiet -m work").run_ok().await;
    for how in Forgery::ALL {
        forge_merge(&rig.workspace(), how);
        let imported = project.import(rig).await;
        assert!(!imported.evidence().upstream_reachable, "{how:?}: {imported:#?}");
        assert!(imported.evidence().base_reachable, "{how:?}: {imported:#?}");
    }
}

async fn odd_branches_do_not_come_out_beside_the_one(rig: &Rig) {
    let project = Project::new(|hermetic| testkit::Fork::new(hermetic).clean_merge()).await;
    project.fill(rig).await;
    let script = "echo work >work.txt && git add work.txt && git commit --quiet -m work && \
        for name in -f --upload-pack=touch '$(touch${IFS}pwned)' \"'quoted'\" HEAD main2; do \
        git update-ref \"refs/heads/$name\" HEAD || exit 1; done; git update-ref refs/bottle/forged HEAD; \
        git tag main; git rev-parse HEAD >'.git/refs/heads/with space'";
    rig.sh(script).run_ok().await;
    let imported = project.import(rig).await;
    assert_only_our_refs(rig, &imported);
}

async fn a_workspace_full_of_traps_is_taken_out_unharmed(rig: &Rig) {
    let project = Project::new(|hermetic| testkit::Fork::new(hermetic).conflicting_merge()).await;
    project.fill(rig).await;
    rig.sh("echo work >work.txt && git add work.txt && git commit --quiet -m work").run_ok().await;
    let marks = project.hermetic.root().join("markers");
    let traps = testkit::repo::hostile_workspace(&rig.workspace(), &marks);
    assert!(traps.len() > 45);
    let imported = project.import(rig).await;
    assert!(!imported.evidence().upstream_reachable, "{imported:#?}");
    show(&imported.repo, &project, &imported).await;
    assert_eq!(markers(&marks), [""; 0]);
}

/// What a person would be shown.
async fn show(repo: &SealedRepo, project: &Project, imported: &Imported) {
    let Exported::Tip(tip) = &imported.exported else { panic!("{imported:?}") };
    let patch = repo.diff(&project.pins.base, tip, 100_000).await.expect("a patch");
    assert!(String::from_utf8_lossy(&patch.bytes).contains("+work"));
}
