//! The box of a run: its spec, the files that the agent finds in it, and what starts it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use engine::launch::Launcher;
use engine::place::Place;
use engine::shim::SHIM_WORD;
use engine::workspace::give;
use model::id::BoxName;
use model::verdict::ForkliftStatus;
use sandbox::backend::BackendKind;
use sandbox::spec::{Access, BoxSpec, BoxUser, Limits, MIB, Output, Root};

use super::observe::fork_key;
use super::plan::PROXY;
use super::run::Run;
use crate::exit::{Failure, OrExit};

/// The agent's log is cut after this much.
const LOG_CAP: u64 = 16 * MIB;

/// Between the polite signal and the final one.
const GRACE_MS: u64 = 5000;

impl Run<'_> {
    pub(super) fn agent_box(&self) -> Result<BoxSpec, Failure> {
        let settings = &self.meta.settings;
        let root = match (settings.backend, &settings.image) {
            (BackendKind::Docker, Some(image)) => Root::Image(image.clone()),
            _ => Root::HostUsr,
        };
        let name = BoxName::parse("agent").or_exit(ForkliftStatus::Internal)?;
        let mut env = base_env();
        if self.plan.egress.is_some() {
            env.extend(egress::proxy_env(PROXY));
        }
        env.extend(self.plan.env.clone());
        Ok(BoxSpec {
            run: self.dir.id().clone(),
            place: self.dir.box_place(&name),
            name,
            root,
            workspace: self.dir.workspace(),
            workspace_access: Access::ReadWrite,
            harness_state: self.dir.harness_state(),
            programs: self.plan.programs.clone(),
            argv: self.plan.argv.clone(),
            env,
            cwd: "/workspace".to_owned(),
            relays: self.plan.relays(),
            probe_addresses: probe_addresses(),
            user: self.owner(),
            limits: Limits::default(),
            output: Output::Log { cap: LOG_CAP },
            deadline_secs: settings.timeout_secs,
            silence_secs: self.plan.silence_secs,
            grace_ms: GRACE_MS,
        })
    }

    /// Puts the agent's files where it will find them: some that it can only read, some in its home.
    pub(super) fn write_files(&self, place: &Place) -> Result<(), Failure> {
        let folder = place.path().join("guest");
        std::fs::create_dir_all(&folder).or_exit(ForkliftStatus::Machine)?;
        for (name, text) in &self.plan.files {
            host::file::write_transient(&folder.join(name), text.as_bytes(), 0o644)
                .or_exit(ForkliftStatus::Machine)?;
        }
        let home = self.dir.harness_state().join("home");
        for (path, file) in &self.plan.home {
            let path = home.join(path);
            let parent = path.parent().unwrap_or(&home);
            std::fs::create_dir_all(parent).or_exit(ForkliftStatus::Machine)?;
            host::file::write_transient(&path, file.text.as_bytes(), file.mode)
                .or_exit(ForkliftStatus::Machine)?;
        }
        give(&home, self.owner()).or_exit(ForkliftStatus::Machine)
    }

    pub(super) fn launcher(&self) -> Result<Launcher, Failure> {
        Ok(Launcher {
            program: host::env::current_exe().or_exit(ForkliftStatus::Machine)?,
            words: vec![SHIM_WORD.to_owned()],
            backend: self.meta.settings.backend,
            secrets: self.secrets.clone(),
        })
    }

    pub(super) fn place(&self) -> Result<Place, Failure> {
        let name = BoxName::parse("agent").or_exit(ForkliftStatus::Internal)?;
        Ok(Place::new(self.dir.box_place(&name)))
    }

    /// A box is never run twice: an import that was interrupted is done again in the next one.
    pub(super) fn next_export(&self) -> u32 {
        let taken = |n: &u32| self.dir.path().join("boxes").join(format!("export-{n}")).exists();
        (1..).find(|n| !taken(n)).unwrap_or(1)
    }

    pub(super) fn owner(&self) -> BoxUser {
        BoxUser::for_caller(host::env::uid(), host::env::gid())
    }

    pub(super) fn mirror(&self) -> PathBuf {
        self.cache.join("mirrors").join(format!("{}.git", fork_key(&self.repo)))
    }
}

/// What every agent's process has.
fn base_env() -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/harness-state/home"),
        ("USER", "forklift"),
        ("LOGNAME", "forklift"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// This host, as the box must not be able to reach it.
fn probe_addresses() -> Vec<SocketAddr> {
    host::net::addresses().into_iter().map(|address| SocketAddr::new(address, 80)).collect()
}
