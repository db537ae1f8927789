//! One webhook for each address: made with its secret, replaced and never doubled, removed, whatever is lost on the way.

use forge::{Forge, ForgeError, NewWebhook};
use model::secret::Secret;
use testkit::fake_forge::{
    FakeForge, Flavour, GiteaFlavour, GithubFlavour, GitlabFlavour, Mishap, TOKEN,
};

use crate::place::{FolderPlace, Place};
use crate::world::{address, options};

const URL: &str = "https://bottles.example/webhooks/forge";

fn hook(secret: &str) -> NewWebhook {
    NewWebhook { url: URL.to_owned(), secret: Secret::new(secret) }
}

async fn place<F: Flavour>() -> (FakeForge<F>, Forge) {
    let server = FakeForge::start();
    let opened = Forge::open(&address(&server.remote_url()), &Secret::new(TOKEN), &options()).await;
    (server, opened.unwrap())
}

macro_rules! on_every_server {
    ($($promise:ident)*) => {
        on_every_server!(@ gitea GiteaFlavour: $($promise)*);
        on_every_server!(@ github GithubFlavour: $($promise)*);
        on_every_server!(@ gitlab GitlabFlavour: $($promise)*);
    };
    (@ $name:ident $flavour:ty: $($promise:ident)*) => {
        mod $name {
            use super::*;
            $(
                #[tokio::test]
                async fn $promise() {
                    let (server, forge) = place::<$flavour>().await;
                    super::$promise(&server, &forge).await;
                }
            )*
        }
    };
}

on_every_server! {
    a_webhook_is_made_with_its_secret_and_shown_without_it
    a_second_one_for_the_same_address_replaces_the_first
    one_that_was_made_twice_by_somebody_becomes_one
    an_answer_that_was_lost_makes_no_second_one
    removing_takes_away_those_of_the_address_and_no_others
    whoever_may_not_is_told_so
}

async fn a_webhook_is_made_with_its_secret_and_shown_without_it<F: Flavour>(
    server: &FakeForge<F>,
    forge: &Forge,
) {
    let made = forge.set_webhook(&hook("s1")).await.unwrap();
    assert_eq!((made.url.as_str(), made.active), (URL, true));
    assert_eq!(server.hooks()[0].secret, "s1");
    let events = &server.hooks()[0].events;
    assert!(events.iter().any(|event| event.starts_with("issues")), "{events:?}");
    assert!(!events.iter().any(|event| event.contains("push")), "{events:?}");
    assert_eq!(forge.webhooks().await.unwrap(), std::slice::from_ref(&made));
    assert!(!format!("{made:?}{:?}", hook("s1")).contains("s1"));
}

async fn a_second_one_for_the_same_address_replaces_the_first<F: Flavour>(
    server: &FakeForge<F>,
    forge: &Forge,
) {
    forge.set_webhook(&hook("s1")).await.unwrap();
    forge.set_webhook(&hook("s2")).await.unwrap();
    let secrets: Vec<String> = server.hooks().into_iter().map(|hook| hook.secret).collect();
    assert_eq!(secrets, ["s2"]);
}

async fn one_that_was_made_twice_by_somebody_becomes_one<F: Flavour>(
    server: &FakeForge<F>,
    forge: &Forge,
) {
    server.add_hook(URL);
    server.add_hook(URL);
    server.add_hook("https://elsewhere.example/");
    forge.set_webhook(&hook("s3")).await.unwrap();
    let urls: Vec<String> = server.hooks().into_iter().map(|hook| hook.url).collect();
    assert_eq!(urls.iter().filter(|url| *url == URL).count(), 1, "{urls:?}");
    assert_eq!(urls.len(), 2);
}

async fn an_answer_that_was_lost_makes_no_second_one<F: Flavour>(
    server: &FakeForge<F>,
    forge: &Forge,
) {
    server.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    forge.set_webhook(&hook("s1")).await.unwrap();
    assert_eq!(server.hooks().len(), 1);
}

async fn removing_takes_away_those_of_the_address_and_no_others<F: Flavour>(
    server: &FakeForge<F>,
    forge: &Forge,
) {
    server.add_hook("https://elsewhere.example/");
    forge.set_webhook(&hook("s1")).await.unwrap();
    assert_eq!(forge.remove_webhooks(URL).await.unwrap(), 1);
    assert_eq!(forge.remove_webhooks(URL).await.unwrap(), 0);
    assert_eq!(server.hooks().len(), 1);
}

async fn whoever_may_not_is_told_so<F: Flavour>(server: &FakeForge<F>, forge: &Forge) {
    server.fail_next_on("POST", 1, &Mishap::status(403, "user should be the owner of the repo"));
    let error = forge.set_webhook(&hook("s1")).await.unwrap_err();
    assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
    assert!(error.to_string().contains("make the webhook"), "{error}");
}

#[tokio::test]
async fn a_folder_has_none_and_says_so() {
    let place = FolderPlace::make().await.unwrap();
    assert_eq!(place.forge().webhooks().await.unwrap(), []);
    let error = place.forge().set_webhook(&hook("s1")).await.unwrap_err();
    assert!(error.to_string().contains("delivers no webhooks"), "{error}");
}
