//! Contents: of a path in a commit, and of many objects at once.

use std::ffi::OsString;

use model::id::Sha;

use super::GitError;
use super::call::{Git, GitCall, GitOutput, argv, argv_with};
use super::parse::{filled_fields, lines_of};

/// Bytes cut at a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    pub bytes: Vec<u8>,
    /// True if there were more.
    pub truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub bytes: Vec<u8>,
    pub size: u64,
}

/// Number of bytes requested in one batch.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_COUNT: usize = 5000;

impl Git {
    /// Reads the first `cap` bytes of a regular file in a commit, if it exists. A directory, a link or a
    /// submodule has no content of its own.
    pub async fn read_blob(
        &self,
        commit: &Sha,
        path: &str,
        cap: usize,
    ) -> Result<Option<Capped>, GitError> {
        let found = self.read_first_blob(commit, &[path], cap).await?;
        Ok(found.map(|(_, content)| content))
    }

    /// Same as [`read_blob`](Self::read_blob) for the first of several paths that is a regular file, with its
    /// path.
    pub async fn read_first_blob<'a>(
        &self,
        commit: &Sha,
        paths: &[&'a str],
        cap: usize,
    ) -> Result<Option<(&'a str, Capped)>, GitError> {
        let answer = self.query(argv_find(commit, paths)).await?;
        for path in paths {
            if let Some(blob) = read_regular_file(&answer, path)? {
                return Ok(Some((path, self.read_start(&blob, cap).await?)));
            }
        }
        Ok(None)
    }

    /// Returns the sizes of blobs in the order given; `None` for an object that is missing or not a blob.
    pub async fn blob_sizes(&self, ids: &[Sha]) -> Result<Vec<Option<u64>>, GitError> {
        let input = lines_of(ids);
        let call = GitCall::new(argv("cat-file --batch-check --buffer")).reading(input.as_bytes());
        read_sizes(&self.query(call).await?, ids.len())
    }

    /// Reads the first `cap` bytes of each blob in the order given; `None` for an object that is missing or
    /// not a blob. Sizes come first, so that a blob of gigabytes is read alone and no further than `cap`, and
    /// small ones are batched.
    pub async fn read_blobs(&self, ids: &[Sha], cap: usize) -> Result<Vec<Option<Blob>>, GitError> {
        let sizes = self.blob_sizes(ids).await?;
        self.read_sized(ids, &sizes, cap).await
    }

    /// Reads blobs of at most `cap` bytes, each with its id. Larger ones, and what is missing or not a blob, are left out.
    pub async fn read_small_blobs(
        &self,
        ids: Vec<Sha>,
        cap: usize,
    ) -> Result<Vec<(Sha, Vec<u8>)>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sizes = self.blob_sizes(&ids).await?;
        let fits = |size: &Option<u64>| size.is_some_and(|size| size <= cap as u64);
        let (small, sizes): (Vec<Sha>, Vec<Option<u64>>) =
            ids.into_iter().zip(sizes).filter(|(_, size)| fits(size)).unzip();
        let blobs = self.read_sized(&small, &sizes, cap).await?;
        Ok(small.into_iter().zip(blobs).filter_map(|(id, blob)| Some((id, blob?.bytes))).collect())
    }

    async fn read_sized(
        &self,
        ids: &[Sha],
        sizes: &[Option<u64>],
        cap: usize,
    ) -> Result<Vec<Option<Blob>>, GitError> {
        let mut blobs = Vec::with_capacity(ids.len());
        for step in plan(sizes, cap) {
            match step {
                ReadStep::Missing => blobs.push(None),
                ReadStep::Large { at, size } => {
                    let start = self.read_start(&ids[at], cap).await?;
                    blobs.push(Some(Blob { bytes: start.bytes, size }));
                }
                ReadStep::Batch { from, to } => {
                    blobs.extend(self.read_batch(&ids[from..to]).await?);
                }
            }
        }
        Ok(blobs)
    }

    async fn read_start(&self, blob: &Sha, cap: usize) -> Result<Capped, GitError> {
        let call = GitCall::new(argv_with("cat-file blob", [blob.as_str()])).cut_after(cap);
        self.query(call).await.map(Capped::from)
    }

    async fn read_batch(&self, ids: &[Sha]) -> Result<Vec<Option<Blob>>, GitError> {
        let input = lines_of(ids);
        let call = GitCall::new(argv("cat-file --batch --buffer")).reading(input.as_bytes());
        let answer = self.query(call).await?;
        let blobs =
            answer.parse(|bytes| parse_objects(bytes, "blob"), "an object that ends too early")?;
        answer.all_of(blobs, ids.len())
    }
}

impl From<GitOutput> for Capped {
    fn from(answer: GitOutput) -> Self {
        Self { bytes: answer.stdout, truncated: answer.truncated }
    }
}

/// The next read; steps follow the order of the ids.
#[derive(Debug, PartialEq, Eq)]
enum ReadStep {
    Missing,
    Large { at: usize, size: u64 },
    Batch { from: usize, to: usize },
}

fn plan(sizes: &[Option<u64>], cap: usize) -> Vec<ReadStep> {
    let cap = u64::try_from(cap).unwrap_or(u64::MAX).min(BATCH_BYTES);
    let mut steps = Vec::new();
    let mut batch_bytes = 0;
    for (at, size) in sizes.iter().enumerate() {
        match (*size, steps.last_mut()) {
            (None, _) => steps.push(ReadStep::Missing),
            (Some(size), _) if size > cap => steps.push(ReadStep::Large { at, size }),
            (Some(size), Some(ReadStep::Batch { from, to }))
                if batch_bytes + size <= BATCH_BYTES && at - *from < BATCH_COUNT =>
            {
                batch_bytes += size;
                *to = at + 1;
            }
            (Some(size), _) => {
                batch_bytes = size;
                steps.push(ReadStep::Batch { from: at, to: at + 1 });
            }
        }
    }
    steps
}

fn argv_find(commit: &Sha, paths: &[&str]) -> Vec<OsString> {
    argv_with("ls-tree -z --full-tree", [commit.as_str(), "--"].iter().chain(paths))
}

/// Reads entries of the form `mode type id`, tab, path, NUL. For a directory with a trailing slash git lists
/// its content, so the path is compared.
fn read_regular_file(answer: &GitOutput, path: &str) -> Result<Option<Sha>, GitError> {
    for entry in filled_fields(&answer.stdout) {
        let text = String::from_utf8_lossy(entry);
        let Some((header, found)) = text.split_once('\t') else {
            return Err(answer.unreadable("an entry without a path"));
        };
        let parts: Vec<&str> = header.split(' ').collect();
        if let ["100644" | "100755", "blob", id] = parts[..]
            && found == path
        {
            return Sha::parse(id).map(Some).map_err(|error| answer.unreadable(error));
        }
    }
    Ok(None)
}

fn read_sizes(answer: &GitOutput, count: usize) -> Result<Vec<Option<u64>>, GitError> {
    let parse = |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let blob_size =
            |line| Some(parse_header(line)?.filter(|it| it.kind == "blob").map(|it| it.size));
        text.lines().map(blob_size).collect()
    };
    answer.all_of(answer.parse(parse, "an object without a size")?, count)
}

/// Parses objects of one kind: each is a header line, as many bytes as it announces, and a newline.
pub(super) fn parse_objects(mut bytes: &[u8], wanted: &str) -> Option<Vec<Option<Blob>>> {
    let mut blobs = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let header = parse_header(std::str::from_utf8(&bytes[..end]).ok()?)?;
        bytes = &bytes[end + 1..];
        let Some(ObjectHeader { size, kind }) = header else {
            blobs.push(None);
            continue;
        };
        let content = bytes.get(..usize::try_from(size).ok()?)?;
        bytes = bytes[content.len()..].strip_prefix(b"\n")?;
        blobs.push((kind == wanted).then(|| Blob { bytes: content.to_vec(), size }));
    }
    Some(blobs)
}

struct ObjectHeader<'a> {
    size: u64,
    kind: &'a str,
}

/// Parses `id type size`; the inner `None` is a missing object.
fn parse_header(line: &str) -> Option<Option<ObjectHeader<'_>>> {
    let parts: Vec<&str> = line.split(' ').collect();
    match parts[..] {
        [_, "missing"] => Some(None),
        [_, kind, size] => Some(Some(ObjectHeader { size: size.parse().ok()?, kind })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::call::tests::answer;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn a_path_is_asked_for_literally() {
        let argv = argv_find(&Sha::parse(A).unwrap(), &["-FORK.md"]).join(" ".as_ref());
        insta::assert_snapshot!(argv.into_string().unwrap(), @"ls-tree -z --full-tree aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -- -FORK.md");
    }

    #[test]
    fn only_a_regular_file_has_content() {
        let find = |text: String| read_regular_file(&answer(0, &text), "F").unwrap();
        assert!(find(format!("100644 blob {A}\tF\0")).is_some());
        assert!(find(format!("100755 blob {A}\tF\0")).is_some());
        assert!(find(format!("120000 blob {A}\tF\0")).is_none());
        assert!(find(format!("160000 commit {A}\tF\0")).is_none());
        assert!(find(format!("100644 blob {A}\tF/inner\0")).is_none());
        assert!(find(String::new()).is_none());
    }

    #[test]
    fn sizes_come_in_the_order_asked() {
        let text = format!("{A} blob 12\n{A} missing\n{A} tree 30\n");
        assert_eq!(read_sizes(&answer(0, &text), 3).unwrap(), [Some(12), None, None]);
        assert!(read_sizes(&answer(0, &text), 4).is_err());
        assert!(read_sizes(&answer(0, "what?\n"), 1).is_err());
    }

    #[test]
    fn contents_may_look_like_headers() {
        let text = format!("{A} blob 10\nx blob 99\n\n{A} missing\n{A} blob 0\n\n{A} tree 2\nab\n");
        let blobs = parse_objects(text.as_bytes(), "blob").unwrap();
        assert_eq!(blobs.len(), 4);
        assert_eq!(blobs[0].as_ref().unwrap().bytes, b"x blob 99\n");
        assert_eq!(blobs[1], None);
        assert_eq!(blobs[2].as_ref().unwrap().size, 0);
        assert_eq!(blobs[3], None);
    }

    #[test]
    fn a_content_that_ends_too_early_is_no_content() {
        for text in ["x blob 9\nabc", "x blob 3\nabc", "x blob", "x blob 3\nabcd\n"] {
            assert!(parse_objects(text.as_bytes(), "blob").is_none(), "{text:?}");
        }
    }

    #[test]
    fn large_blobs_are_read_alone_and_small_ones_together() {
        let sizes = [Some(1), Some(2), None, Some(100), Some(3), Some(4)];
        let steps = plan(&sizes, 50);
        let expected = [
            ReadStep::Batch { from: 0, to: 2 },
            ReadStep::Missing,
            ReadStep::Large { at: 3, size: 100 },
            ReadStep::Batch { from: 4, to: 6 },
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes() {
        let half = Some(BATCH_BYTES / 2);
        let steps = plan(&[half, half, half, Some(BATCH_BYTES + 1)], usize::MAX);
        assert_eq!(
            steps,
            [
                ReadStep::Batch { from: 0, to: 2 },
                ReadStep::Batch { from: 2, to: 3 },
                ReadStep::Large { at: 3, size: BATCH_BYTES + 1 },
            ]
        );
    }
}
