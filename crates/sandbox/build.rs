//! Builds the guest program as a static binary, so that this crate can carry it inside itself: whoever has a
//! Bottleworks command has the guest too, and no installation step can be forgotten.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script speaks with cargo by environment and standard output"
)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let target = env::var("TARGET").expect("cargo sets it");
    let guest = manifest.join("../guest");
    println!("cargo::rerun-if-changed={}", guest.join("src").display());
    println!("cargo::rerun-if-changed={}", guest.join("Cargo.toml").display());
    println!("cargo::rerun-if-changed=build.rs");

    // A target folder of its own: cargo holds a lock on the one that this very build uses. It is shared by all
    // profiles, so the guest is built once; only `make install` has a quicker profile for it.
    let target_dir = shared_target_dir(&out).join("guest");
    let profile = if is_local(&out) { LOCAL } else { "release" };
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo
        .arg("build")
        .args(["--profile", profile, "--bin", "bottle-guest", "--target", &target])
        .arg("--manifest-path")
        .arg(guest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static")
        // Clippy and coverage set these for the outer build; the guest is an artifact, not a subject.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER");
    let status = cargo.status().expect("cargo could not be started to build the guest");
    assert!(status.success(), "the guest program did not build");

    let built = target_dir.join(&target).join(profile).join("bottle-guest");
    std::fs::copy(&built, out.join("bottle-guest")).expect("the built guest could not be copied");
}

/// Profile of `make install`.
const LOCAL: &str = "local";

/// Returns whether this is a build by the profile of `make install`. Cargo tells a build script only which profile that one
/// inherits from, but names a folder above `OUT_DIR` after it.
fn is_local(out: &Path) -> bool {
    out.ancestors().nth(3).and_then(Path::file_name).is_some_and(|name| name == LOCAL)
}

/// The `target` folder above `OUT_DIR` (`target/<profile>/build/<crate>/out`).
fn shared_target_dir(out: &Path) -> PathBuf {
    out.ancestors().nth(4).map_or_else(|| out.to_path_buf(), Path::to_path_buf)
}
