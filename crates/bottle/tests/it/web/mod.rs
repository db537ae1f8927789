//! The page and the API of `bot-bottle serve` as they are met: the real server over a real socket, a real browser, and
//! a fuzzer that has read the API's document.

mod browser;
mod client;
mod fuzz;
mod picture;
mod real;

use testkit::fake_forge::FakeGitea;

use crate::serving::Serving;
use crate::support::{Person, Scene};

/// The admin token of these tests.
const TOKEN: &str = "a-token-for-tests-that-nobody-guesses";

/// What a stranger writes into a title: markup that would act, an escape sequence, and a turn of the line.
const HOSTILE: &str = "Sort </title><script>window.hurt=1</script><img src=x onerror=window.hurt=2> \u{202e}\u{1b}[31mlists";

/// A server with a login, for one issue with a hostile title.
fn serving(script: &str) -> Option<Serving> {
    let person = Person::new()?;
    let forge = FakeGitea::start();
    forge.add_member("bot-bottle", "bot1");
    forge.add_member("bot-bottle", "alice");
    let issue = forge.add_issue(HOSTILE, "What is wanted.", &["bot-bottle:worker"], &["bot1"]);
    person.script(script);
    let token = person.home().join("admin-token");
    std::fs::write(&token, TOKEN).expect("written");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, private).expect("private");
    let more = format!("sweep_secs = 3600\nlog = \"json\"\nadmin_token_file = {token:?}\n");
    Some(Serving::start(Scene { person, forge, issue }, &more))
}
