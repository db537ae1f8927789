//! Addresses of submodules: a changed one makes everybody who updates submodules fetch from elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use host::git::{GitError, SealedRepo};
use model::escape::escape_line;
use model::sensitive_path::fold_path;

use super::MadeEntry;

/// Lists the submodules of a result, as `path: address`, that neither side has with this address.
pub(crate) async fn find_changed(
    repo: &SealedRepo,
    made: &[MadeEntry],
) -> Result<Vec<String>, GitError> {
    let mut changed = Vec::new();
    for entry in made.iter().filter(|entry| fold_path(&entry.path) == [".gitmodules"]) {
        let Some(settings) = repo.read_config_blob(&entry.id).await? else {
            changed.push(format!("git cannot read {}", entry.shown()));
            continue;
        };
        let mut known = BTreeSet::new();
        for side in &entry.sides {
            let settings = repo.read_config_blob(&side.id).await?.unwrap_or_default();
            known.extend(parse_submodules(&settings));
        }
        let new = parse_submodules(&settings).into_iter().filter(|it| !known.contains(it));
        changed.extend(new.map(|submodule| submodule.shown()));
    }
    Ok(changed)
}

/// Settings of a submodule that decide from where and how it is fetched.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SubmoduleSource {
    path: Option<String>,
    url: Option<String>,
    update: Option<String>,
}

impl SubmoduleSource {
    fn shown(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_else(|| "(none)".to_owned());
        let mut text = format!("{}: {}", part(&self.path), part(&self.url));
        text.extend(self.update.iter().map(|update| format!(" (update = {update})")));
        escape_line(&text).into_owned()
    }
}

/// Reads `submodule.<name>.<variable>`. The last value of a variable counts; a name may contain dots.
fn parse_submodules(settings: &[(String, String)]) -> BTreeSet<SubmoduleSource> {
    let mut by_name: BTreeMap<&str, SubmoduleSource> = BTreeMap::new();
    for (key, value) in settings {
        let Some((name, variable)) =
            key.strip_prefix("submodule.").and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        let submodule = by_name.entry(name).or_default();
        match variable {
            "path" => submodule.path = Some(value.clone()),
            "url" => submodule.url = Some(value.clone()),
            "update" => submodule.update = Some(value.clone()),
            _ => {}
        }
    }
    by_name.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Vec<String> {
        let owned: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        parse_submodules(&owned).iter().map(SubmoduleSource::shown).collect()
    }

    #[test]
    fn the_last_address_of_a_path_counts() {
        let settings = [
            ("submodule.lib.v1.path", "vendor/lib"),
            ("submodule.lib.v1.url", "https://good"),
            ("submodule.lib.v1.url", "https://evil"),
            ("core.bare", "false"),
            ("submodule.b.path", "b"),
        ];
        assert_eq!(read(&settings), ["b: (none)", "vendor/lib: https://evil"]);
    }
}
