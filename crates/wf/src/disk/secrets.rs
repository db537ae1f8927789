//! The secrets of an ops directory: read as data, never run, and known only so that no record holds them (D6, D7).

use model::secret::Secret;
use model::secrets_file::parse_secrets;
use model::verdict::WfStatus;

use super::site::Site;
use super::{DiskError, names_in};
use crate::exit::{Failure, OrExit};

/// Every value in the secrets folder.
pub(crate) fn load_secrets(site: &Site) -> Result<Vec<Secret>, Failure> {
    let dir = site.secrets_dir();
    let mut secrets = Vec::new();
    for name in
        names_in(&dir)?.iter().filter(|name| name.ends_with(".env") || name.ends_with(".sh"))
    {
        let path = dir.join(name);
        let bytes = host::file::read_private(&path).or_exit(WfStatus::Config)?;
        let text =
            String::from_utf8(bytes).map_err(|_| DiskError::invalid(&path, "it is not UTF-8"))?;
        let parsed = parse_secrets(&text).map_err(|error| DiskError::invalid(&path, error))?;
        secrets.extend(parsed.into_iter().map(|(_, secret)| secret));
    }
    Ok(secrets)
}
