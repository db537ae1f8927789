//! Attribution of commits: what an agent committed in its box is written again on the host under the user's name, with the
//! agent as co-author. Trees and dates stay, and so do commits that the box's own identity did not make: those are judged
//! as strangers' before anything is written again.

use std::collections::BTreeMap;

use host::git::{CommitChange, CommitFacts, GitError, GitIdentity, SealedRepo};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::evidence::Pins;
use crate::workspace::AGENT_IDENTITY;

/// Commits that are written again; a result with more keeps the box's own identity.
const MOST_COMMITS: usize = 500;

/// The user under whose name a run publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    pub name: String,
    pub email: String,
    #[serde(default)]
    pub sign_off: bool,
    /// True if the agent is named as co-author.
    #[serde(default)]
    pub agent_trailer: bool,
}

impl Attribution {
    pub fn identity(&self) -> GitIdentity {
        GitIdentity { name: self.name.clone(), email: self.email.clone() }
    }

    /// Trailers of a commit, made by this agent or without one.
    pub fn trailers(&self, agent: Option<&str>) -> Vec<String> {
        let agent = agent.filter(|_| self.agent_trailer);
        let co_author = agent.map(|agent| {
            format!("Co-authored-by: {agent} ({}) <{}>", AGENT_IDENTITY.0, AGENT_IDENTITY.1)
        });
        let sign_off =
            self.sign_off.then(|| format!("Signed-off-by: {} <{}>", self.name, self.email));
        co_author.into_iter().chain(sign_off).collect()
    }

    /// Writes the new commits below `tip` again and returns the new tip. The result depends on nothing else, so a process
    /// that continues after a killed one makes the same commits.
    pub async fn rewrite(
        &self,
        repo: &SealedRepo,
        pins: &Pins,
        tip: &Sha,
        agent: &str,
    ) -> Result<Sha, GitError> {
        let known = [pins.base.clone(), pins.upstream.clone()];
        let commits = repo.new_commits(tip, &known, MOST_COMMITS + 1).await?;
        if commits.len() > MOST_COMMITS {
            return Ok(tip.clone());
        }
        let (user, trailers) = (self.identity(), self.trailers(Some(agent)));
        let mut written: BTreeMap<&Sha, Sha> = BTreeMap::new();
        // Parents come before their children.
        for commit in commits.iter().rev() {
            let parents = map_parents(commit, &written);
            let by_agent = is_agent(&commit.committer);
            // A commit of one of the sides that was made again keeps its author and its message.
            let is_own = by_agent && is_agent(&commit.author);
            if !by_agent && parents == commit.parents {
                continue;
            }
            let change = CommitChange {
                parents: &parents,
                author: is_own.then_some(&user),
                committer: by_agent.then_some(&user),
                trailers: if is_own { &trailers } else { &[] },
            };
            written.insert(&commit.sha, repo.rewrite_commit(&commit.sha, change).await?);
        }
        Ok(written.get(tip).unwrap_or(tip).clone())
    }
}

fn map_parents(commit: &CommitFacts, written: &BTreeMap<&Sha, Sha>) -> Vec<Sha> {
    let parents = commit.parents.iter();
    parents.map(|parent| written.get(parent).unwrap_or(parent).clone()).collect()
}

fn is_agent(who: &GitIdentity) -> bool {
    (who.name.as_str(), who.email.as_str()) == AGENT_IDENTITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_co_author_and_the_user_signs_off_where_that_is_wanted() {
        let mut user = Attribution {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
            sign_off: true,
            agent_trailer: true,
        };
        assert_eq!(
            user.trailers(Some("claude")),
            [
                "Co-authored-by: claude (Bottleworks agent) <agent@bottle.invalid>",
                "Signed-off-by: Ada <ada@example.org>",
            ]
        );
        assert_eq!(user.trailers(None), ["Signed-off-by: Ada <ada@example.org>"]);
        (user.sign_off, user.agent_trailer) = (false, false);
        assert_eq!(user.trailers(Some("claude")), [""; 0]);
    }
}
