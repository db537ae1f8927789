//! Which variables of a person's environment reach tests that run on their machine: what programs need to run at all and to
//! find their toolchains, and what the profile names. Logins and keys stay behind.

/// Variables that programs need to run at all, and places of common toolchains.
const PASSED: [&str; 29] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "CI",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];
/// Families of which every member is passed.
const FAMILIES: [&str; 2] = ["LC_", "XDG_"];

/// Reports whether tests get a variable. The caller sets `LC_ALL`, so that messages are in English.
pub(crate) fn is_passed(name: &str, named: &[String]) -> bool {
    name != "LC_ALL"
        && (PASSED.contains(&name)
            || FAMILIES.iter().any(|family| name.starts_with(family))
            || named.iter().any(|wanted| wanted == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_stay_behind_unless_the_profile_names_them() {
        let named = ["DATABASE_URL".to_owned()];
        for name in ["PATH", "HOME", "LC_CTYPE", "XDG_RUNTIME_DIR", "CARGO_HOME", "DATABASE_URL"] {
            assert!(is_passed(name, &named), "{name}");
        }
        for name in [
            "GH_TOKEN",
            "AOS_FORGE_TOKEN",
            "OPENAI_API_KEY",
            "SSH_AUTH_SOCK",
            "MAKEFLAGS",
            "LC_ALL",
        ] {
            assert!(!is_passed(name, &named), "{name}");
        }
    }
}
