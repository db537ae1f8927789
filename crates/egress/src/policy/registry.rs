//! The registries of profile `packages`, as data.
//!
//! A host is listed if it serves packages, accepts no uploads from strangers under the same name, and serves
//! no arbitrary content: object stores and code forges are left out on purpose, and can be allowed by name.

use super::host::HostName;

/// One ecosystem and the hosts that its tools contact.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    pub name: &'static str,
    /// Names, or `*.` and a suffix.
    pub hosts: &'static [&'static str],
}

pub const REGISTRIES: &[Registry] = &[
    Registry { name: "npm", hosts: &["registry.npmjs.org", "nodejs.org", "npm.jsr.io", "jsr.io"] },
    Registry { name: "yarn", hosts: &["registry.yarnpkg.com", "repo.yarnpkg.com"] },
    Registry { name: "deno", hosts: &["deno.land", "dl.deno.land"] },
    Registry { name: "pypi", hosts: &["pypi.org", "files.pythonhosted.org"] },
    Registry { name: "conda", hosts: &["conda.anaconda.org", "repo.anaconda.com"] },
    Registry {
        name: "rust",
        hosts: &["index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"],
    },
    Registry { name: "go", hosts: &["proxy.golang.org", "sum.golang.org", "go.dev"] },
    Registry {
        name: "maven",
        hosts: &["repo.maven.apache.org", "repo1.maven.org", "maven.google.com", "dl.google.com"],
    },
    Registry {
        name: "gradle",
        hosts: &["plugins.gradle.org", "plugins-artifacts.gradle.org", "services.gradle.org"],
    },
    Registry { name: "rubygems", hosts: &["rubygems.org", "index.rubygems.org"] },
    Registry { name: "nuget", hosts: &["api.nuget.org", "www.nuget.org", "globalcdn.nuget.org"] },
    Registry { name: "packagist", hosts: &["packagist.org", "repo.packagist.org"] },
    Registry { name: "hex", hosts: &["hex.pm", "repo.hex.pm", "builds.hex.pm"] },
    Registry { name: "hackage", hosts: &["hackage.haskell.org", "downloads.haskell.org"] },
    Registry { name: "opam", hosts: &["opam.ocaml.org"] },
    Registry { name: "pub", hosts: &["pub.dev", "pub.dartlang.org"] },
    Registry { name: "cocoapods", hosts: &["cdn.cocoapods.org"] },
    Registry { name: "cran", hosts: &["cran.r-project.org", "cloud.r-project.org"] },
    Registry { name: "cpan", hosts: &["www.cpan.org", "cpan.metacpan.org"] },
    Registry { name: "luarocks", hosts: &["luarocks.org"] },
    Registry { name: "julia", hosts: &["pkg.julialang.org", "*.pkg.julialang.org"] },
    Registry {
        name: "debian",
        hosts: &["deb.debian.org", "security.debian.org", "ftp.debian.org"],
    },
    Registry {
        name: "ubuntu",
        hosts: &[
            "archive.ubuntu.com",
            "*.archive.ubuntu.com",
            "security.ubuntu.com",
            "ports.ubuntu.com",
        ],
    },
    Registry { name: "alpine", hosts: &["dl-cdn.alpinelinux.org"] },
    Registry {
        name: "fedora",
        hosts: &["mirrors.fedoraproject.org", "dl.fedoraproject.org", "download.fedoraproject.org"],
    },
];

pub(super) fn is_registry(host: &HostName) -> bool {
    let is_named = |pattern: &&str| match pattern.strip_prefix('*') {
        Some(suffix) => host.as_str().len() > suffix.len() && host.as_str().ends_with(suffix),
        None => host.as_str() == *pattern,
    };
    REGISTRIES.iter().flat_map(|registry| registry.hosts).any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::AllowRule;

    #[test]
    fn every_entry_is_a_rule_in_its_one_spelling() {
        for host in REGISTRIES.iter().flat_map(|registry| registry.hosts) {
            assert_eq!(AllowRule::parse(host).unwrap().to_string(), **host);
        }
    }

    #[test]
    fn a_suffix_covers_mirrors_and_nothing_that_merely_ends_alike() {
        let is = |text: &str| is_registry(&HostName::parse(text).unwrap());
        assert!(is("de.archive.ubuntu.com") && is("archive.ubuntu.com") && is("pypi.org"));
        assert!(!is("fakearchive.ubuntu.com") && !is("x.pypi.org") && !is("ubuntu.com"));
    }
}
