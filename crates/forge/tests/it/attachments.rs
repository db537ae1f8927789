//! Attachments are read from the forge's own server with the token, and from nowhere else.

use forge::{
    ATTACHMENT_MAX_BYTES, Attachment, AttachmentScope, Forge, ForgeError, ForgeKind, WebBase,
};
use model::secret::Secret;
use testkit::fake_forge::{
    FakeFile, FakeForge, Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour, TOKEN,
};

use crate::world::{address, kind, options};

const UUID: &str = "0d2e1f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6";
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand more";

/// A forge of one kind, with the attachments that a text names.
async fn open<F: Flavour>(
    server: &FakeForge<F>,
    forge_kind: ForgeKind,
    text: &str,
) -> (Forge, Vec<Attachment>) {
    let web = server.url();
    let options =
        forge::ForgeOptions { kind: Some(forge_kind), web: WebBase::parse(&web), ..options() };
    let remote = address(&server.remote_url());
    let forge = Forge::open(&remote, &Secret::new(TOKEN), &options).await.unwrap();
    let scope = AttachmentScope { kind: forge_kind, web: &web, full_name: "alice/hooks" };
    (forge, scope.find([text]))
}

/// Reads the one attachment of a text, which the server has at this path.
async fn read<F: Flavour>(
    forge_kind: ForgeKind,
    text: impl Fn(&str) -> String,
    path: &str,
    file: FakeFile,
) -> (Result<Vec<u8>, ForgeError>, FakeForge<F>) {
    let server = FakeForge::<F>::start();
    server.add_file(path, file);
    let (forge, found) = open(&server, forge_kind, &text(&server.url())).await;
    assert_eq!(found.len(), 1, "{found:?}");
    (forge.read_attachment(&found[0]).await, server)
}

fn gitea_text(_: &str) -> String {
    format!("![shot.png](/attachments/{UUID})")
}

#[tokio::test]
async fn each_kind_has_its_own_place_for_them() {
    let file = || FakeFile::Bytes(PNG.to_vec());
    let gitea_path = format!("/attachments/{UUID}");
    let (found, server) =
        read::<GiteaFlavour>(ForgeKind::Gitea, gitea_text, &gitea_path, file()).await;
    assert_eq!(found.unwrap(), PNG);
    assert_eq!(server.requests().len(), 1);
    let text = |web: &str| format!("<img src=\"{web}/user-attachments/assets/{UUID}\">");
    let path = format!("/user-attachments/assets/{UUID}");
    let (found, _) = read::<GithubFlavour>(ForgeKind::GitHub, text, &path, file()).await;
    assert_eq!(found.unwrap(), PNG);
    let text = |web: &str| format!("[l]({web}/user-attachments/files/12/a%20log.txt)");
    let path = "/user-attachments/files/12/a%20log.txt";
    let (found, _) = read::<GithubFlavour>(ForgeKind::GitHub, text, path, file()).await;
    assert_eq!(found.unwrap(), PNG);
    let text = |_: &str| format!("![image](/uploads/{SECRET}/shot.png)");
    let path = format!("/api/v4/projects/alice%2Fhooks/uploads/{SECRET}/shot.png");
    let (found, _) = read::<GitlabFlavour>(ForgeKind::GitLab, text, &path, file()).await;
    assert_eq!(found.unwrap(), PNG);
}

#[tokio::test]
async fn no_redirect_is_followed_to_another_server() {
    let other = FakeForge::<GiteaFlavour>::start();
    let path = format!("/attachments/{UUID}");
    for to in [format!("{}/stolen", other.url()), "https://attacker.example/".to_owned()] {
        let to = FakeFile::Elsewhere(to);
        let (found, _) =
            read::<GiteaFlavour>(ForgeKind::Gitea, gitea_text, &path, to.clone()).await;
        assert_eq!(kind(&found.unwrap_err()), "Moved");
        let text = |web: &str| format!("{web}/user-attachments/assets/{UUID}");
        let path = format!("/user-attachments/assets/{UUID}");
        let (found, _) = read::<GithubFlavour>(ForgeKind::GitHub, text, &path, to).await;
        assert_eq!(kind(&found.unwrap_err()), "Moved");
    }
    assert!(other.requests().is_empty(), "nothing was sent there");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused() {
    let path = format!("/attachments/{UUID}");
    let bytes = |more| FakeFile::Bytes(vec![b'x'; ATTACHMENT_MAX_BYTES + more]);
    let (found, _) = read::<GiteaFlavour>(ForgeKind::Gitea, gitea_text, &path, bytes(0)).await;
    assert_eq!(found.unwrap().len(), ATTACHMENT_MAX_BYTES);
    let (found, _) = read::<GiteaFlavour>(ForgeKind::Gitea, gitea_text, &path, bytes(1)).await;
    assert!(found.unwrap_err().to_string().contains("far too large"));
}

#[tokio::test]
async fn an_attachment_of_another_kind_of_forge_sends_nothing() {
    let server = FakeForge::<GitlabFlavour>::start();
    let (forge, _) = open(&server, ForgeKind::GitLab, "").await;
    let scope =
        AttachmentScope { kind: ForgeKind::Gitea, web: "https://x.example", full_name: "a/b" };
    let foreign = scope.find([gitea_text("").as_str()]);
    forge.read_attachment(&foreign[0]).await.unwrap_err();
    assert!(server.requests().is_empty());
}
