//! A live Gitea or Forgejo that the environment names, with the token of a site administrator. Everything is made for
//! one test, in an organisation of its own, and removed after it.

use std::hash::{BuildHasher, Hasher, RandomState};

use bytes::Bytes;
use forge::{Forge, RetryPolicy, Thread};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use model::secret::Secret;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{BASE, Place};
use crate::world::{address, options};

const URL: &str = "BOTTLEWORKS_TEST_GITEA_URL";
const TOKEN: &str = "BOTTLEWORKS_TEST_GITEA_TOKEN";
const PASSWORD: &str = "Only-for-1-test!";

pub(crate) struct LivePlace {
    server: Server,
    forge: Forge,
    org: String,
    /// The account under test, and another one.
    login: String,
    other: String,
}

/// The server, for what a test does behind the forge's back.
struct Server {
    /// `host:port`; such a server is on loopback and speaks plain HTTP.
    authority: String,
    token: String,
}

impl Server {
    fn from_env() -> Option<Self> {
        let url = host::env::var(URL)?;
        let authority = url.strip_prefix("http://")?.trim_end_matches('/').to_owned();
        Some(Self { authority, token: host::env::var(TOKEN)? })
    }

    async fn call(&self, auth: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let stream = TcpStream::connect(&self.authority).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("host", &self.authority)
            .header("authorization", auth)
            .header("content-type", "application/json")
            .body(Full::<Bytes>::from(body.to_string()))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// As the administrator.
    async fn admin(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) =
            self.call(&format!("token {}", self.token), method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Makes an account. Returns its token.
    async fn add_account(&self, login: &str) -> String {
        let account = json!({
            "username": login, "email": format!("{login}@example.test"), "password": PASSWORD,
            "must_change_password": false,
        });
        self.admin("POST", "/admin/users", account).await;
        let body = json!({ "name": "test", "scopes": ["all"] });
        let path = format!("/users/{login}/tokens");
        // A token is made with the password, which the header wants in another spelling.
        let basic = format!("Basic {}", base64(&format!("{login}:{PASSWORD}")));
        let (status, answer) = self.call(&basic, "POST", &path, body).await;
        assert_eq!(status, 201, "{answer}");
        answer["sha1"].as_str().unwrap().to_owned()
    }
}

impl LivePlace {
    fn repo(&self, path: &str) -> String {
        format!("/repos/{}/hooks{path}", self.org)
    }

    /// The ids of labels, which are made if need be.
    async fn label_ids(&self, names: &[&str]) -> Vec<u64> {
        let there = self.server.admin("GET", &self.repo("/labels"), Value::Null).await;
        let mut ids = Vec::new();
        for name in names {
            let found = there.as_array().unwrap().iter().find(|label| label["name"] == *name);
            let label = match found {
                Some(label) => label.clone(),
                None => {
                    let label = json!({ "name": name, "color": "#00aabb" });
                    self.server.admin("POST", &self.repo("/labels"), label).await
                }
            };
            ids.push(label["id"].as_u64().unwrap());
        }
        ids
    }
}

impl Place for LivePlace {
    async fn make() -> Option<Self> {
        let Some(server) = Server::from_env() else {
            testkit::part::missing("live_gitea", &format!("set {URL} and {TOKEN}"));
            return None;
        };
        let mark = RandomState::new().build_hasher().finish() & 0xffff_ffff;
        let [org, login, other] = ["org", "bot", "other"].map(|word| format!("{word}-{mark:08x}"));
        let token = server.add_account(&login).await;
        server.add_account(&other).await;
        server.admin("POST", "/orgs", json!({ "username": org })).await;
        let repo = json!({ "name": "hooks", "auto_init": true, "default_branch": BASE });
        server.admin("POST", &format!("/orgs/{org}/repos"), repo).await;
        for user in [&login, &other] {
            let path = format!("/repos/{org}/hooks/collaborators/{user}");
            server.admin("PUT", &path, json!({ "permission": "write" })).await;
        }
        let url = format!("http://{}/{org}/hooks.git", server.authority);
        let patient = forge::ForgeOptions { retry: RetryPolicy::default(), ..options() };
        let forge = Forge::open(&address(&url), &Secret::new(token), &patient).await.unwrap();
        Some(Self { server, forge, org, login, other })
    }

    fn forge(&self) -> &Forge {
        &self.forge
    }

    fn login(&self) -> String {
        self.login.clone()
    }

    fn other(&self) -> String {
        self.other.clone()
    }

    async fn add_issue(&self, title: &str, labels: &[&str], assignees: &[&str]) -> u64 {
        let labels = self.label_ids(labels).await;
        let issue = json!({
            "title": title, "body": "What is wanted.", "labels": labels, "assignees": assignees,
        });
        let made = self.server.admin("POST", &self.repo("/issues"), issue).await;
        made["number"].as_u64().unwrap()
    }

    async fn push_branch(&self, name: &str) {
        let file = format!("/contents/{}.txt", name.replace('/', "-"));
        let body = json!({ "content": "eA==", "message": name, "new_branch": name });
        self.server.admin("POST", &self.repo(&file), body).await;
    }

    async fn merge(&self, pull: u64) {
        // While the server still checks, it says "try again later".
        for _ in 0..40 {
            let path = self.repo(&format!("/pulls/{pull}/merge"));
            let auth = format!("token {}", self.server.token);
            let body = json!({ "Do": "merge" });
            if self.server.call(&auth, "POST", &path, body).await.0 == 200 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
        panic!("#{pull} could not be merged");
    }

    async fn comment(&self, thread: Thread, body: &str) {
        let path = self.repo(&format!("/issues/{}/comments", thread.number()));
        self.server.admin("POST", &path, json!({ "body": body })).await;
    }

    async fn own_org(&self) -> String {
        let teams = format!("/orgs/{}/teams", self.org);
        let there = self.server.admin("GET", &teams, Value::Null).await;
        let is_ours = |team: &&Value| team["name"] == "bots";
        let team = match there.as_array().and_then(|list| list.iter().find(is_ours)) {
            Some(team) => team.clone(),
            None => {
                let team = json!({ "name": "bots", "permission": "write", "units": ["repo.code"] });
                self.server.admin("POST", &teams, team).await
            }
        };
        for user in [&self.login, &self.other] {
            let path = format!("/teams/{}/members/{user}", team["id"]);
            self.server.admin("PUT", &path, Value::Null).await;
        }
        self.org.clone()
    }

    async fn foreign_org(&self) -> (Forge, String) {
        self.own_org().await;
        let token = self.server.add_account(&format!("x{}", self.login)).await;
        let url = format!("http://{}/{}/hooks.git", self.server.authority, self.org);
        let forge = Forge::open(&address(&url), &Secret::new(token), &options()).await.unwrap();
        (forge, self.org.clone())
    }

    async fn clear(self) {
        self.server.admin("DELETE", &self.repo(""), Value::Null).await;
        self.server.admin("DELETE", &format!("/orgs/{}", self.org), Value::Null).await;
        for user in [self.login.clone(), self.other.clone(), format!("x{}", self.login)] {
            let auth = format!("token {}", self.server.token);
            let path = format!("/admin/users/{user}?purge=true");
            self.server.call(&auth, "DELETE", &path, Value::Null).await;
        }
    }
}

/// Enough of it for a header.
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let three = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    encoded
}
