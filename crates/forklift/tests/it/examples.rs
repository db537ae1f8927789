//! The examples for people who let a clock run forklift.

use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::part::missing;

/// Systemd's own word on the units, with the program where it is here.
#[test]
fn the_units_are_what_systemd_takes_for_units() {
    let hermetic = Hermetic::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    let mut units = Vec::new();
    for name in ["forklift.service", "forklift.timer"] {
        let text = std::fs::read_to_string(root.join(name)).expect("the unit");
        let text = text.replace("%h/.local/bin/forklift", env!("CARGO_BIN_EXE_forklift"));
        let path = hermetic.root().join(name);
        std::fs::write(&path, text).expect("written");
        units.push(path);
    }
    let mut command = hermetic.command("systemd-analyze");
    command.args(["--user", "--man=no", "verify"]).args(&units);
    let Ok(output) = command.output() else {
        missing("systemd", "systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
