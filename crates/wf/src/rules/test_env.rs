//! Variables of the environment that reach tests on the host: those that programs and toolchains need, and those that
//! the profile names. Logins and keys stay behind.

/// Variables that programs and compilers need to run at all.
const BASIC: [&str; 16] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR", "DISPLAY", "CI",
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS",
];
/// Variables that name the places of toolchains and libraries.
const TOOLCHAINS: [&str; 13] = [
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
        && (BASIC.contains(&name)
            || TOOLCHAINS.contains(&name)
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
