//! The secrets of an ops directory: parsed as data, never executed, used to redact records and to serve listed names.

use model::secret::Secret;
use model::secrets_file::parse_secrets;

use super::project_dirs::ProjectDirs;
use super::{DiskError, names_in};
use crate::exit::{Failure, OrExit, WfExit, WfResult};

pub(crate) fn load_secrets(dirs: &ProjectDirs) -> WfResult<Vec<Secret>> {
    Ok(load_named(dirs)?.into_iter().map(|(_, secret)| secret).collect())
}

pub(crate) fn pick_secrets(
    dirs: &ProjectDirs,
    names: &[String],
) -> WfResult<Vec<(String, Secret)>> {
    let known = if names.is_empty() { Vec::new() } else { load_named(dirs)? };
    let find = |name: &String| {
        known.iter().rfind(|(known, _)| known == name).cloned().ok_or_else(|| {
            let dir = dirs.secrets_dir();
            Failure::usage(format!("the secret {name} is in no file of {}", dir.display()))
        })
    };
    names.iter().map(find).collect()
}

pub(crate) fn find_secret(dirs: &ProjectDirs, name: &str) -> WfResult<Option<Secret>> {
    let mut known = load_named(dirs)?;
    known.retain(|(known, _)| known == name);
    Ok(known.pop().map(|(_, secret)| secret))
}

fn load_named(dirs: &ProjectDirs) -> WfResult<Vec<(String, Secret)>> {
    let dir = dirs.secrets_dir();
    let mut secrets = Vec::new();
    for name in
        names_in(&dir)?.iter().filter(|name| name.ends_with(".env") || name.ends_with(".sh"))
    {
        let path = dir.join(name);
        let bytes = host::file::read_private(&path).or_exit(WfExit::Config)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| DiskError::invalid(&path, error.utf8_error()))?;
        let parsed = parse_secrets(&text).map_err(DiskError::in_file(&path))?;
        secrets.extend(parsed);
    }
    Ok(secrets)
}
