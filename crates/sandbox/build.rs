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
    // profiles, so the guest is built once.
    let target_dir = shared_target_dir(&out).join("guest");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo
        .arg("build")
        .args(["--release", "--bin", "bottle-guest", "--target", &target])
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

    let built = target_dir.join(&target).join("release/bottle-guest");
    std::fs::copy(&built, out.join("bottle-guest")).expect("the built guest could not be copied");
}

/// The `target` folder above `OUT_DIR` (`target/<profile>/build/<crate>/out`).
fn shared_target_dir(out: &Path) -> PathBuf {
    out.ancestors().nth(4).map_or_else(|| out.to_path_buf(), Path::to_path_buf)
}
