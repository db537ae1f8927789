//! Import of a bundle, with every object checked before it counts.
//!
//! Not every supported git checks what it fetches from a bundle: 2.39 accepts a tree with an entry named
//! `.git`, whatever `fetch.fsckObjects` says. So the pack inside goes through `index-pack --strict` first;
//! then the fetch finds all objects present and only sets the ref.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use super::call::{GitCall, argv, argv_with};
use super::{GitError, RefName, SealedRepo};

/// Time limit of the check, which grows with size.
const LIMIT: Duration = Duration::from_secs(600);
/// Size limit of the header, which has a line for each ref and each prerequisite commit; ours have a few.
const HEADER_LIMIT: u64 = 1 << 20;

impl SealedRepo {
    /// Imports `src` from a bundle as `dst`, checking every object. The bundle's prerequisites must be
    /// reachable from a ref here, so pin them with [`update_ref`](Self::update_ref) first.
    pub async fn fetch_bundle(
        &self,
        bundle: &Path,
        src: &RefName,
        dst: &RefName,
    ) -> Result<(), GitError> {
        let pack = open_pack(bundle)
            .map_err(|source| GitError::Bundle { path: bundle.to_path_buf(), source })?;
        let check = GitCall::new(argv("index-pack --stdin --fix-thin --strict"));
        self.git.run(check.within(LIMIT).reading_file(pack)).await?;
        self.git.run(GitCall::new(argv_fetch_bundle(bundle, src, dst)).within(LIMIT)).await
    }
}

fn argv_fetch_bundle(bundle: &Path, src: &RefName, dst: &RefName) -> Vec<OsString> {
    let words = "fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance \
        --no-recurse-submodules --end-of-options";
    argv_with(words, [bundle.as_os_str(), format!("+{src}:{dst}").as_ref()])
}

/// Opens a bundle at the beginning of its pack.
fn open_pack(bundle: &Path) -> io::Result<File> {
    let mut file = File::open(bundle)?;
    let mut header = Vec::new();
    (&file).take(HEADER_LIMIT).read_to_end(&mut header)?;
    let start = parse_header(&header)
        .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?;
    file.seek(SeekFrom::Start(start as u64))?;
    Ok(file)
}

/// Finds the start of the pack: the first line and the ref lines end with an empty line. A bundle filtered by
/// object would have gaps, so it is refused.
fn parse_header(bytes: &[u8]) -> Result<usize, &'static str> {
    let signed = |line: &&[u8]| bytes.starts_with(line);
    let signature =
        [b"# v2 git bundle\n".as_slice(), b"# v3 git bundle\n"].into_iter().find(signed);
    let mut at = signature.ok_or("it does not begin like a bundle")?.len();
    loop {
        let rest = &bytes[at..];
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or("its header has no end")?;
        match &rest[..end] {
            b"" => return Ok(at + 1),
            line if line.starts_with(b"@") && !line.starts_with(b"@object-format=") => {
                return Err("it asks for something other than an object format");
            }
            _ => at += end + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_fetched_by_an_explicit_refspec() {
        let name = |text| RefName::parse(text).unwrap();
        let (src, dst) = (name("refs/heads/main"), name("refs/bottle/r1/main"));
        let argv = argv_fetch_bundle(Path::new("/r/out.bundle"), &src, &dst).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance --no-recurse-submodules --end-of-options /r/out.bundle +refs/heads/main:refs/bottle/r1/main");
    }

    #[test]
    fn the_pack_begins_after_the_empty_line() {
        for header in [
            "# v2 git bundle\n-aaaa base\nbbbb refs/heads/main\n\n",
            "# v3 git bundle\n@object-format=sha256\nbbbb refs/heads/main\n\n",
        ] {
            let bytes = format!("{header}PACK\n\nmore");
            assert_eq!(parse_header(bytes.as_bytes()), Ok(header.len()), "{header}");
        }
    }

    #[test]
    fn what_is_no_whole_bundle_is_refused() {
        for text in ["", "PACK", "# v9 git bundle\n\n", "# v2 git bundle\nbbbb refs/heads/main\n"] {
            assert!(parse_header(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse_header(b"# v3 git bundle\n@filter=blob:none\n\nPACK").is_err());
    }
}
