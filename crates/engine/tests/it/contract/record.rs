//! What is written down about a box.

use std::collections::BTreeSet;

use engine::launch::{BoxStatus, box_status};
use guest::config::PreflightCheck;
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use sandbox::spec::Root;

use crate::support::{Rig, on_backend, on_every_backend};

mod everywhere {
    use super::*;

    on_every_backend! {
        the_preflight_is_in_the_record_and_complete,
        times_and_limits_are_in_the_record,
        a_box_can_be_looked_at_all_its_life,
        a_root_that_the_backend_cannot_use_is_named,
    }

    async fn the_preflight_is_in_the_record_and_complete(rig: &Rig) {
        // Of a range for documentation: there is nobody, anywhere.
        let probe = "192.0.2.1:80".parse().expect("an address");
        let ran =
            rig.argv(&["true"]).with(|spec| spec.probe_addresses = vec![probe]).run_ok().await;
        let report = ran.record.report.expect("a report");
        let tried: BTreeSet<PreflightCheck> =
            report.preflight.iter().map(|item| item.name).collect();
        assert_eq!(tried, PreflightCheck::ALL.into());
        for item in &report.preflight {
            assert!(item.blocked && item.demanded && !item.detail.is_empty(), "{item:?}");
        }
        assert!(report.preflight.iter().any(|item| item.detail.starts_with("192.0.2.1:80")));
        assert!(report.ready && report.reasons().is_empty());
    }

    async fn times_and_limits_are_in_the_record(rig: &Rig) {
        let begun = host::clock::now();
        let ran =
            rig.argv(&["sleep", "0.3"]).limits(|limits| limits.open_files = 123).run_ok().await;
        let record = ran.record;
        assert!(begun <= record.started_at && record.started_at < record.finished_at);
        let ready = record.ready_ms.expect("it got ready");
        assert!(ready + 300 <= record.wall_ms, "{ready} {}", record.wall_ms);
        assert_eq!(record.backend, rig.kind());
        let limits = record.report.expect("a report").limits;
        assert_eq!(limits.nofile, Some(123));
        assert_eq!(limits.fsize, Some(ran.spec.limits.file_bytes));
        assert_eq!(limits.core, 0);
    }

    async fn a_box_can_be_looked_at_all_its_life(rig: &Rig) {
        let sh = rig.sh(": >started; until [ -e go ]; do sleep 0.02; done");
        let box_dir = engine::box_dir::BoxDir::new(&sh.spec.box_dir);
        assert_eq!(box_status(&box_dir).expect("a look"), BoxStatus::NeverStarted);
        let running = sh.launch();
        assert_eq!(box_status(&box_dir).expect("a look"), BoxStatus::Running);
        running.made("started").await;
        assert_eq!(box_status(&box_dir).expect("a look"), BoxStatus::Running);
        std::fs::write(rig.workspace().join("go"), "").expect("a file");
        let ran = running.end().await;
        assert_eq!(box_status(&box_dir).expect("a look"), BoxStatus::Ended(Box::new(ran.record)));
    }

    async fn a_root_that_the_backend_cannot_use_is_named(rig: &Rig) {
        let (root, name) = match rig.kind() {
            BackendKind::Bwrap => (Root::Image("some/image:tag".to_owned()), "some/image:tag"),
            BackendKind::Docker => (Root::HostUsr, "HostUsr"),
        };
        let ran = rig.argv(&["true"]).with(|spec| spec.root = root).run().await;
        let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
        assert!(reason.contains(name) && reason.contains("as the root of a box"), "{reason}");
    }
}

mod images {
    use super::*;

    on_backend!(docker, Docker, an_image_that_the_engine_lacks_is_named);

    async fn an_image_that_the_engine_lacks_is_named(rig: &Rig) {
        let image = "bottleworks/no-such-image:ever";
        let ran = rig.argv(&["true"]).with(|spec| spec.root = Root::Image(image.to_owned()));
        let ran = ran.run().await;
        let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
        assert!(reason.contains(image), "{reason}");
        assert_eq!(ran.record.report, None);
    }
}
