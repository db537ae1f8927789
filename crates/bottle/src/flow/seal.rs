//! Digests of the agent's box, observed just before it is started, because a later observation may differ.

use std::path::Path;

use agent::Provider;
use engine::run::Product;
use host::digest::sha256_file;
use model::digest::sha256;
use model::exit::BottleExit;
use sandbox::backend::BackendKind;
use sandbox::spec::Root;

use super::run::BottleRun;
use super::run_record::{ImageSeal, ProgramSeal, Seal};
use crate::exit::{Failure, OrExit};

/// npm's list of installed packages, with the digest of each.
const NPM_LOCK: &str = "node_modules/.package-lock.json";

impl BottleRun<'_> {
    pub(super) async fn seal(&self) -> Result<Seal, Failure> {
        let spec = self.run.agent_run().map_err(Self::failure)?.spec();
        let json = |bytes: serde_json::Result<Vec<u8>>| {
            bytes.map(|bytes| sha256(&bytes)).or_exit(BottleExit::Internal)
        };
        let policy = self.run.plan.egress.as_ref().map(|egress| serde_json::to_vec(&egress.policy));
        Ok(Seal {
            orchestrator: env!("CARGO_PKG_VERSION").to_owned(),
            profile_sha256: json(serde_json::to_vec(&spec))?,
            seccomp_sha256: self.run.record.backend.seccomp_digest(),
            egress_policy_sha256: policy.map(json).transpose()?,
            guest_sha256: sha256(sandbox::guest_program()),
            image: image_seal(self.run.record.backend, &spec.root).await,
            program: program_seal(&self.run.record.manifest.provider, &self.context.home.programs),
        })
    }
}

async fn image_seal(backend: BackendKind, root: &Root) -> Option<ImageSeal> {
    let Root::Image(name) = root else { return None };
    Some(ImageSeal { name: name.clone(), id: backend.image_digest(root).await })
}

fn program_seal(provider: &str, agents: &Path) -> Option<ProgramSeal> {
    let program = Provider::parse(provider).ok()?.program()?;
    let lock = engine::install::folder_of(agents, &program).join(NPM_LOCK);
    Some(ProgramSeal {
        package: program.package.to_owned(),
        version: program.version.to_owned(),
        lock_sha256: sha256_file(&lock).ok().map(|(digest, _)| digest),
    })
}
