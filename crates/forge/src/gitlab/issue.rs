//! Issues that come before an issue, and its attachments.

use serde::Deserialize;

use super::Gitlab;
use crate::attachment::{ATTACHMENT_MAX_BYTES, Attachment, AttachmentPlace};
use crate::error::{ForgeError, ForgeResult};
use crate::http::HttpRequest;
use crate::provider::IssueProvider;
use crate::thread::{Blocker, Thread, ThreadState};

/// Issue that is linked to another one.
#[derive(Debug, Deserialize)]
struct WireLink {
    iid: u64,
    state: String,
    link_type: Option<String>,
    references: Option<WireReferences>,
}

#[derive(Debug, Deserialize)]
struct WireReferences {
    /// `group/project#3`.
    full: String,
}

impl WireLink {
    /// `None` for a link that is no order.
    fn into_blocker(self, own: &str) -> Option<Blocker> {
        let is_order = self.link_type.as_deref() == Some("is_blocked_by");
        let project =
            self.references.and_then(|it| it.full.split_once('#').map(|it| it.0.to_owned()));
        is_order.then(|| Blocker {
            number: self.iid,
            repository: project.filter(|project| !project.eq_ignore_ascii_case(own)),
            is_open: ThreadState::parse(&self.state) == ThreadState::Open,
        })
    }
}

impl IssueProvider for Gitlab {
    /// Lists the links of an issue that are an order. Only paid editions have them.
    async fn blockers(&self, number: u64) -> ForgeResult<Vec<Blocker>> {
        let url = self.thread_url(Thread::Issue(number), &["links"]);
        let request = HttpRequest::get(url, format!("read what comes before #{number}"));
        let links: Vec<WireLink> = match self.client.json(&request).await {
            Ok(links) => links,
            Err(ForgeError::NotFound { .. } | ForgeError::Forbidden { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(links.into_iter().filter_map(|link| link.into_blocker(&self.project)).collect())
    }

    /// Reads an upload through the API, which has it from GitLab 17.4 on.
    async fn attachment(&self, attachment: &Attachment) -> ForgeResult<Vec<u8>> {
        let action = format!("read the attachment {}", attachment.name);
        let AttachmentPlace::GitlabUpload { secret, file } = &attachment.place else {
            let request = HttpRequest::get(String::new(), action);
            let reason = "it is an attachment of another kind of forge";
            return Err(self.client.unreadable(&request, reason));
        };
        let url = self.project_url(&["uploads", secret, file]);
        let request = HttpRequest::get(url.clone(), action.as_str());
        let response = self.client.fetch_file(url, &action, ATTACHMENT_MAX_BYTES).await?;
        self.client.check_status(&request, &response)?;
        Ok(response.body.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_are_an_order_count() {
        let read = |text: &str| {
            serde_json::from_str::<WireLink>(text).unwrap().into_blocker("acme/widget")
        };
        let own = r#"{"iid":3,"state":"opened","link_type":"is_blocked_by","references":{"full":"acme/widget#3"}}"#;
        assert_eq!(read(own), Some(Blocker { number: 3, repository: None, is_open: true }));
        let other = r#"{"iid":4,"state":"closed","link_type":"is_blocked_by","references":{"full":"acme/x/y#4"}}"#;
        let repository = Some("acme/x/y".to_owned());
        assert_eq!(read(other), Some(Blocker { number: 4, repository, is_open: false }));
        assert_eq!(read(r#"{"iid":5,"state":"opened","link_type":"relates_to"}"#), None);
    }
}
