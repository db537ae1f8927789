//! A remote whose pack comes in two parts: the second one when the test says so.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::hermetic::Hermetic;
use crate::repo::Repo;

/// Bytes that pass before the pause: the answers before the pack, and a part of it. They pass one by one, because a program
/// that collects them would keep the first answer back.
const BEFORE_THE_PAUSE: usize = 200_000;
/// Objects of [`SlowRemote::fill`], more than git unpacks one by one, and large enough that the pause is among them.
const FILES: u32 = 400;

pub struct SlowRemote {
    gate: PathBuf,
}

impl SlowRemote {
    /// Makes `remote` of the checkout serve its pack in two parts.
    pub fn new(hermetic: &Hermetic, checkout: &Repo, remote: &str) -> Self {
        let gate = hermetic.root().join("second-part");
        let program = hermetic.root().join("slow-upload-pack");
        let script = format!(
            "#!/bin/sh\ngit upload-pack \"$@\" | {{ dd bs=1 count={BEFORE_THE_PAUSE} status=none; \
             until [ -e '{}' ]; do sleep 0.05; done; cat; }}\n",
            gate.display()
        );
        std::fs::write(&program, script).expect("the program");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it is a program");
        let key = format!("remote.{remote}.uploadpack");
        checkout.git(&["config", &key, program.to_str().expect("UTF-8")]);
        Self { gate }
    }

    /// Adds files that do not compress to a bare repository, so that its pack is long.
    pub fn fill(hermetic: &Hermetic, bare: &Repo) {
        let folder = hermetic.root().join("filler");
        bare.git(&["clone", "--quiet", ".", folder.to_str().expect("UTF-8")]);
        let repo = Repo::open(folder);
        let mut seed = 1_u64;
        for number in 0..FILES {
            let words = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format!("{seed:016x}")
            });
            let text: String = words.take(150).collect();
            repo.write(&format!("filler/{number}"), &text);
        }
        repo.commit("filler");
        repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
    }

    /// Runs a command until it prints a line on standard error that `wanted` accepts, then sends the second part. Returns that
    /// line, and whether the command ended well.
    pub fn line_of(
        &self,
        command: &mut Command,
        wanted: impl Fn(&str) -> bool,
    ) -> (Option<String>, bool) {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut found = None;
        for line in stderr.lines().map_while(Result::ok) {
            if found.is_none() && wanted(&line) {
                std::fs::write(&self.gate, "").expect("the gate");
                found = Some(line);
            }
        }
        (found, child.wait().expect("it ends").success())
    }
}
