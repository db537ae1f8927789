//! Which backends this machine has. A missing one is reported by name, once; where it is promised, every test fails.

use std::sync::OnceLock;

use sandbox::backend::BackendKind;
use sandbox::spec::Root;
use testkit::part::{Part, missing, require};

/// The variable that names the image of the boxes on an engine.
const IMAGE_VARIABLE: &str = "BOTTLEWORKS_TEST_IMAGE";

/// The root of the boxes of this backend, if the machine has what it needs.
pub(super) fn root_of(kind: BackendKind) -> Option<Root> {
    static BWRAP: OnceLock<Option<Root>> = OnceLock::new();
    static DOCKER: OnceLock<Option<Root>> = OnceLock::new();
    match kind {
        // Its boxes have the programs of this host, and the tests ask for some that not every host has.
        BackendKind::Bwrap => BWRAP.get_or_init(|| {
            let parts = [Part::Bwrap, Part::Perl, Part::Git].map(require);
            parts.iter().all(Option::is_some).then_some(Root::HostUsr)
        }),
        BackendKind::Docker => {
            DOCKER.get_or_init(|| require(Part::Docker).and_then(|_| require_image()))
        }
    }
    .clone()
}

fn require_image() -> Option<Root> {
    let image = host::env::var(IMAGE_VARIABLE).filter(|image| !image.is_empty());
    if image.is_none() {
        missing(Part::Docker.name(), &format!("{IMAGE_VARIABLE} names no image"));
    }
    image.map(Root::Image)
}
