//! Issues that come before an issue, and its attachments.

use hyper::StatusCode;
use serde::Deserialize;

use super::{Flavour, GithubLike};
use crate::attachment::{ATTACHMENT_MAX_BYTES, Attachment, AttachmentPlace, is_github_storage};
use crate::error::{ForgeError, ForgeResult};
use crate::http::HttpRequest;
use crate::provider::IssueProvider;
use crate::thread::{Blocker, Thread, ThreadState};

#[derive(Debug, Deserialize)]
struct WireBlocker {
    number: u64,
    state: String,
    repository: Option<WireRepositoryName>,
    /// GitHub's, where it names no repository.
    repository_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireRepositoryName {
    full_name: String,
}

impl WireBlocker {
    fn into_blocker(self, own: &str) -> Blocker {
        let of_url = || {
            let url = self.repository_url.as_deref()?;
            let mut parts = url.rsplit('/');
            let (name, owner) = (parts.next()?, parts.next()?);
            Some(format!("{owner}/{name}"))
        };
        let named = self.repository.map(|it| it.full_name).or_else(of_url);
        Blocker {
            number: self.number,
            repository: named.filter(|name| !name.eq_ignore_ascii_case(own)),
            is_open: ThreadState::parse(&self.state) == ThreadState::Open,
        }
    }
}

impl IssueProvider for GithubLike {
    async fn blockers(&self, number: u64) -> ForgeResult<Vec<Blocker>> {
        let segments: &[&str] = match self.flavour {
            Flavour::Gitea => &["dependencies"],
            Flavour::GitHub => &["dependencies", "blocked_by"],
        };
        let url = self.thread_url(Thread::Issue(number), segments);
        let request = HttpRequest::get(url, format!("read what comes before #{number}"));
        let found: Option<Vec<WireBlocker>> = match self.client.json(&request).await {
            Ok(found) => found,
            // Older servers, and repositories in which the feature is off.
            Err(ForgeError::NotFound { .. } | ForgeError::Forbidden { .. }) => None,
            Err(error) => return Err(error),
        };
        let own = format!("{}/{}", self.owner, self.repo);
        Ok(found.into_iter().flatten().map(|wire| wire.into_blocker(&own)).collect())
    }

    async fn attachment(&self, attachment: &Attachment) -> ForgeResult<Vec<u8>> {
        let action = format!("read the attachment {}", attachment.name);
        let url = match (self.flavour, &attachment.place) {
            (Flavour::Gitea, AttachmentPlace::Gitea { uuid }) => {
                self.web.url(&["attachments", uuid])
            }
            (Flavour::GitHub, AttachmentPlace::GithubAsset { uuid }) => {
                self.web.url(&["user-attachments", "assets", uuid])
            }
            (Flavour::GitHub, AttachmentPlace::GithubFile { id, file }) => {
                self.web.url(&["user-attachments", "files", &id.to_string(), file])
            }
            _ => {
                let request = HttpRequest::get(String::new(), action);
                return Err(self
                    .client
                    .unreadable(&request, "it is an attachment of another kind of forge"));
            }
        };
        let request = HttpRequest::get(url.clone(), action.as_str());
        let response = self.client.fetch_file(url, &action, ATTACHMENT_MAX_BYTES).await?;
        let is_moved = [StatusCode::FOUND, StatusCode::TEMPORARY_REDIRECT, StatusCode::SEE_OTHER]
            .contains(&response.status);
        let to = response.headers.get("location").and_then(|to| to.to_str().ok());
        match to.filter(|to| is_moved && self.flavour == Flavour::GitHub && is_github_storage(to)) {
            Some(to) => self.client.fetch_unsigned(to, &action, Some(ATTACHMENT_MAX_BYTES)).await,
            None => {
                self.client.check_status(&request, &response)?;
                Ok(response.body.to_vec())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blockers_of_both_dialects_name_their_repository_if_it_is_another() {
        let read = |text: &str| {
            serde_json::from_str::<WireBlocker>(text).unwrap().into_blocker("acme/widget")
        };
        let gitea =
            r#"{"number":3,"state":"open","repository":{"id":1,"full_name":"Acme/Widget"}}"#;
        assert_eq!(read(gitea), Blocker { number: 3, repository: None, is_open: true });
        let github = r#"{"number":4,"state":"closed","repository_url":"https://api.github.com/repos/acme/other"}"#;
        let other = Some("acme/other".to_owned());
        assert_eq!(read(github), Blocker { number: 4, repository: other, is_open: false });
    }
}
