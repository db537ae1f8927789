//! Attachments: files on a forge that a text names. Their addresses are composed from checked parts below the forge's own
//! front page, so that no text can send a request, or the token, to another server.

use serde::{Deserialize, Serialize};

use crate::kind::ForgeKind;

/// Attachments that are found in the texts of one issue.
const FOUND_MAX: usize = 20;
const NAME_MAX_CHARS: usize = 80;
/// Size limit of one attachment.
pub const ATTACHMENT_MAX_BYTES: usize = 4 * 1024 * 1024;

/// File that a text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Name for a file: letters, digits, `.`, `-` and `_`, and unique among the attachments of an issue.
    pub name: String,
    pub place: AttachmentPlace,
}

/// Place of an attachment on its forge, in checked parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AttachmentPlace {
    Gitea { uuid: String },
    GithubAsset { uuid: String },
    GithubFile { id: u64, file: String },
    GitlabUpload { secret: String, file: String },
}

/// Repository whose texts are searched.
#[derive(Debug, Clone, Copy)]
pub struct AttachmentScope<'a> {
    pub kind: ForgeKind,
    /// Front page of the forge, without a slash at its end.
    pub web: &'a str,
    /// The repository with its owner or groups.
    pub full_name: &'a str,
}

impl AttachmentScope<'_> {
    /// Finds the attachments that these texts name, each once and in their order. Addresses of other servers, of other
    /// repositories and of other forms are left out.
    pub fn find<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Vec<Attachment> {
        let mut found: Vec<Attachment> = Vec::new();
        for text in texts {
            for (place, label) in self.places(text) {
                if found.len() < FOUND_MAX && !found.iter().any(|known| known.place == place) {
                    let name = format!("{}-{}", found.len() + 1, safe_name(place.file(), label));
                    found.push(Attachment { name, place });
                }
            }
        }
        found
    }

    /// Places in a text, each with the text of its link.
    fn places<'t>(&self, text: &'t str) -> Vec<(AttachmentPlace, &'t str)> {
        let mark = match self.kind {
            ForgeKind::Gitea => "attachments/",
            ForgeKind::GitHub => "/user-attachments/",
            ForgeKind::GitLab => "/uploads/",
            ForgeKind::Folder => return Vec::new(),
        };
        let place = |(at, _)| {
            let begin = text[..at].rfind(is_delimiter).map_or(0, |end| end + width_at(text, end));
            let rest = &text[at + mark.len()..];
            let rest = &rest[..rest.find(is_delimiter).unwrap_or(rest.len())];
            let place = self.read_place(rest)?;
            self.is_own(&text[begin..at]).then(|| (place, label_before(text, begin)))
        };
        text.match_indices(mark).filter_map(place).collect()
    }

    /// Reads what follows the mark of an address.
    fn read_place(&self, rest: &str) -> Option<AttachmentPlace> {
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let rest = rest.trim_end_matches(['.', ',', ';', ':', '!', '*']);
        match self.kind {
            ForgeKind::Gitea => read_uuid(rest).map(|uuid| AttachmentPlace::Gitea { uuid }),
            ForgeKind::GitHub => match rest.split_once('/')? {
                ("assets", uuid) => {
                    read_uuid(uuid).map(|uuid| AttachmentPlace::GithubAsset { uuid })
                }
                ("files", rest) => {
                    let (id, file) = rest.split_once('/')?;
                    let id = id.parse().ok()?;
                    read_file(file).map(|file| AttachmentPlace::GithubFile { id, file })
                }
                _ => None,
            },
            ForgeKind::GitLab => {
                let (secret, file) = rest.split_once('/')?;
                let is_secret = secret.len() == 32 && is_hex(secret);
                let file = read_file(file).filter(|_| is_secret)?;
                Some(AttachmentPlace::GitlabUpload { secret: secret.to_owned(), file })
            }
            ForgeKind::Folder => None,
        }
    }

    /// Returns whether the part of an address before its mark leads to the forge, or within it to the repository.
    fn is_own(&self, before: &str) -> bool {
        let web = self.web.trim_end_matches('/');
        let below = before.strip_prefix(web).unwrap_or(before);
        let is_absolute = below.len() < before.len();
        let below = below.trim_end_matches('/').trim_start_matches("/-");
        let is_here = below.is_empty() || below.strip_prefix('/') == Some(self.full_name);
        match self.kind {
            ForgeKind::GitHub => is_absolute && below.is_empty(),
            ForgeKind::Gitea | ForgeKind::GitLab => is_here,
            ForgeKind::Folder => false,
        }
    }
}

impl AttachmentPlace {
    fn file(&self) -> Option<&str> {
        match self {
            Self::Gitea { .. } | Self::GithubAsset { .. } => None,
            Self::GithubFile { file, .. } | Self::GitlabUpload { file, .. } => Some(file),
        }
    }
}

/// Type of a file by its bytes; `None` for a file that is not handed to agents. Pages and scripts are text like any other.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let starts = |head: &[u8]| bytes.starts_with(head);
    match bytes {
        _ if starts(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if starts(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if starts(b"GIF87a") || starts(b"GIF89a") => Some("image/gif"),
        _ if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some("image/webp"),
        _ if starts(b"%PDF-") => Some("application/pdf"),
        _ => {
            let text = std::str::from_utf8(bytes).ok()?;
            let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}');
            (!text.contains(is_odd)).then_some("text/plain")
        }
    }
}

/// Returns whether GitHub itself keeps attachments at this address, which it names for a few minutes.
pub(crate) fn is_github_storage(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_bucket = host
        .strip_suffix(".s3.amazonaws.com")
        .is_some_and(|bucket| bucket.starts_with("github-production-") && !bucket.contains('.'));
    let known = ["objects.githubusercontent.com", "private-user-images.githubusercontent.com"];
    is_bucket || known.contains(&host)
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || "()<>\"'[]`|\\".contains(c)
}

fn width_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn read_uuid(text: &str) -> Option<String> {
    let is_group = |(part, len): (&str, usize)| part.len() == len && is_hex(part);
    let lens = [8, 4, 4, 4, 12];
    let is_uuid = text.split('-').count() == lens.len() && text.split('-').zip(lens).all(is_group);
    is_uuid.then(|| text.to_ascii_lowercase())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// File name in an address, decoded. One that leads elsewhere is none.
fn read_file(text: &str) -> Option<String> {
    let file = percent_encoding::percent_decode_str(text).decode_utf8().ok()?;
    let is_name =
        !file.is_empty() && !matches!(&*file, "." | "..") && !file.contains(['/', '\\', '\0']);
    (is_name && file.chars().count() <= 2 * NAME_MAX_CHARS).then(|| file.into_owned())
}

/// Text of the Markdown link whose address begins at `begin`.
fn label_before(text: &str, begin: usize) -> &str {
    let Some(before) = text[..begin].strip_suffix("](") else { return "" };
    before.rfind('[').map_or("", |open| &before[open + 1..])
}

/// Name for a file from the address, or else from the text of the link.
fn safe_name(file: Option<&str>, label: &str) -> String {
    let wanted = file.unwrap_or(label);
    let safe: String = wanted
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' })
        .take(NAME_MAX_CHARS)
        .collect();
    let safe = safe.trim_start_matches(['.', '-', '_']);
    if safe.is_empty() { "attachment".to_owned() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0d2e1f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6";
    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn names(kind: ForgeKind, web: &str, text: &str) -> Vec<String> {
        let scope = AttachmentScope { kind, web, full_name: "acme/widget" };
        scope.find([text]).into_iter().map(|attachment| attachment.name).collect()
    }

    #[test]
    fn attachments_of_the_own_forge_are_found_once() {
        let gitea = |text: &str| names(ForgeKind::Gitea, "https://git.example", text);
        assert_eq!(gitea(&format!("![shot.png](/attachments/{UUID})")), ["1-shot.png"]);
        assert_eq!(gitea(&format!("see [a b](attachments/{UUID}).")), ["1-a_b"]);
        assert_eq!(gitea(&format!("https://git.example/attachments/{UUID}.")), ["1-attachment"]);
        let own = format!("![x](https://git.example/acme/widget/attachments/{UUID})");
        assert_eq!(gitea(&format!("{own}\n{own}")), ["1-x"], "each once");
        let github = |text: &str| names(ForgeKind::GitHub, "https://github.com", text);
        let asset = format!("<img src=\"https://github.com/user-attachments/assets/{UUID}\">");
        let file = "[l](https://github.com/user-attachments/files/12/log%20a.txt)";
        assert_eq!(github(&format!("{asset} {file}")), ["1-attachment", "2-log_a.txt"]);
        let gitlab = |text: &str| names(ForgeKind::GitLab, "https://gl.example/sub", text);
        assert_eq!(gitlab(&format!("![image](/uploads/{SECRET}/shot.png)")), ["1-shot.png"]);
        let whole = format!("https://gl.example/sub/acme/widget/uploads/{SECRET}/a.txt");
        assert_eq!(gitlab(&whole), ["1-a.txt"]);
    }

    #[test]
    fn addresses_elsewhere_are_no_attachments() {
        for (kind, web, text) in [
            (
                ForgeKind::Gitea,
                "https://git.example",
                format!("https://evil.example/attachments/{UUID}"),
            ),
            (
                ForgeKind::Gitea,
                "https://git.example",
                format!("https://git.example.evil/attachments/{UUID}"),
            ),
            (
                ForgeKind::Gitea,
                "https://git.example",
                format!("https://git.example@evil/attachments/{UUID}"),
            ),
            (ForgeKind::Gitea, "https://git.example", format!("/other/repo/attachments/{UUID}")),
            (ForgeKind::Gitea, "https://git.example", format!("/attachments/{UUID}/../../api")),
            (ForgeKind::Gitea, "https://git.example", "/attachments/../api/v1/user".to_owned()),
            (ForgeKind::GitHub, "https://github.com", format!("/user-attachments/assets/{UUID}")),
            (
                ForgeKind::GitHub,
                "https://github.com",
                format!("https://evil/user-attachments/assets/{UUID}"),
            ),
            (
                ForgeKind::GitHub,
                "https://github.com",
                "https://github.com/user-attachments/files/1/..".to_owned(),
            ),
            (ForgeKind::GitLab, "https://gl.example", format!("/uploads/{SECRET}/..%2f..%2fuser")),
            (ForgeKind::GitLab, "https://gl.example", "/uploads/abc/shot.png".to_owned()),
            (ForgeKind::GitLab, "https://gl.example", format!("//evil.example/uploads/{SECRET}/a")),
            (ForgeKind::Folder, "file:///x", format!("/attachments/{UUID}")),
        ] {
            assert_eq!(names(kind, web, &text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn names_are_safe_for_files() {
        assert_eq!(safe_name(None, "../../.ssh/id"), "ssh_id");
        assert_eq!(safe_name(Some("-rf *"), ""), "rf__");
        assert_eq!(safe_name(None, "é\u{202e}gnp.exe\n"), "gnp.exe_");
        assert_eq!(safe_name(None, "..."), "attachment");
        assert_eq!(safe_name(None, &"x".repeat(300)).len(), NAME_MAX_CHARS);
    }

    #[test]
    fn types_are_told_by_bytes_and_others_are_refused() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"<svg onload=x>"), Some("text/plain"));
        assert_eq!(media_type("grüße\n".as_bytes()), Some("text/plain"));
        for other in
            [&b"PK\x03\x04\0"[..], b"\x7fELF\x02\x01\0", b"MZ\x90\0", b"\xff\xfe\0a", b"a\0b"]
        {
            assert_eq!(media_type(other), None, "{other:?}");
        }
    }

    #[test]
    fn only_githubs_own_storage_is_followed_to() {
        assert!(is_github_storage("https://objects.githubusercontent.com/x?sig=1"));
        assert!(is_github_storage(
            "https://github-production-user-asset-6210df.s3.amazonaws.com/1"
        ));
        for url in [
            "http://objects.githubusercontent.com/x",
            "https://objects.githubusercontent.com.evil/x",
            "https://evil/objects.githubusercontent.com",
            "https://github-production-x.evil.s3.amazonaws.com/1",
            "https://user@objects.githubusercontent.com/x",
            "https://169.254.169.254/",
        ] {
            assert!(!is_github_storage(url), "{url}");
        }
    }
}
