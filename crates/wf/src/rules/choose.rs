//! Choice of the project for a command.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectCandidate {
    pub(crate) name: String,
    pub(crate) folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoProject {
    #[error("there is no project '{name}'{}", super::suggest::see(hint, "wf project list"))]
    Unknown { name: String, hint: String },
    #[error("no project is registered yet; in a checkout of your product run: wf init")]
    NoneRegistered,
    #[error(
        "several projects are registered ({names}); say which: --project NAME, or set AOS_PROJECT"
    )]
    Several { names: String },
}

/// Chooses by the flag, then the variable, then the current directory, then the only project.
pub(crate) fn choose_project(
    flag: Option<&str>,
    variable: Option<&str>,
    here: &Path,
    known: &[ProjectCandidate],
) -> Result<String, NoProject> {
    if let Some(name) = flag.or(variable.filter(|name| !name.is_empty())) {
        return known
            .iter()
            .find(|candidate| candidate.name == name)
            .map(|_| name.to_owned())
            .ok_or_else(|| NoProject::Unknown {
                name: name.to_owned(),
                hint: super::suggest::hint(
                    name,
                    known.iter().map(|candidate| candidate.name.as_str()),
                ),
            });
    }
    let by_place = known.iter().filter_map(|candidate| Some((depth(candidate, here)?, candidate)));
    if let Some((_, candidate)) = by_place.max_by_key(|(depth, _)| *depth) {
        return Ok(candidate.name.clone());
    }
    match known {
        [] => Err(NoProject::NoneRegistered),
        [only] => Ok(only.name.clone()),
        several => {
            let names: Vec<&str> =
                several.iter().map(|candidate| candidate.name.as_str()).collect();
            Err(NoProject::Several { names: names.join(", ") })
        }
    }
}

fn depth(candidate: &ProjectCandidate, here: &Path) -> Option<usize> {
    let around = candidate.folders.iter().filter(|folder| here.starts_with(folder));
    around.map(|folder| folder.components().count()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<ProjectCandidate> {
        let candidate = |name: &str, folders: &[&str]| ProjectCandidate {
            name: name.to_owned(),
            folders: folders.iter().map(PathBuf::from).collect(),
        };
        vec![
            candidate("a", &["/dev/a", "/flow/projects/a"]),
            candidate("b", &["/dev/a/vendor/b", "/ops/worktrees/x"]),
        ]
    }

    fn choose(flag: Option<&str>, variable: Option<&str>, here: &str) -> Result<String, NoProject> {
        choose_project(flag, variable, Path::new(here), &known())
    }

    #[test]
    fn flag_then_variable_then_place() {
        assert_eq!(choose(Some("a"), Some("b"), "/ops/worktrees/x").unwrap(), "a");
        assert_eq!(choose(None, Some("b"), "/dev/a").unwrap(), "b");
        assert_eq!(choose(None, None, "/dev/a/src").unwrap(), "a");
        assert_eq!(choose(None, None, "/dev/a/vendor/b/src").unwrap(), "b");
        assert_eq!(choose(None, None, "/ops/worktrees/x").unwrap(), "b");
        assert!(matches!(choose(None, None, "/dev/ab"), Err(NoProject::Several { .. })));
        assert!(matches!(choose(None, Some(""), "/"), Err(NoProject::Several { .. })));
    }

    #[test]
    fn the_only_project_needs_no_name() {
        let only = &known()[..1];
        let choose = |flag, known| choose_project(flag, None, Path::new("/"), known);
        assert_eq!(choose(None, only).unwrap(), "a");
        assert_eq!(choose(None, &[]), Err(NoProject::NoneRegistered));
        let error = choose(Some("aa"), only).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no project 'aa'; did you mean 'a'? See: wf project list"
        );
    }
}
