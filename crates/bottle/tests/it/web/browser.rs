//! The page in a real Chromium: by day and by night, on a phone and on a desk, with its buttons pressed.

use std::path::{Path, PathBuf};

use super::real::run_of;
use super::{HOSTILE, TOKEN, serving};
use testkit::browser::{Browser, Light};
use testkit::fake_forge::Room;
use testkit::part::require_folder;
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, SLUG};

/// Where pictures are kept, for whoever wants to look.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn log_in(browser: &Browser, serving: &Serving) {
    browser.open(&format!("http://{}/bottles/{SLUG}", serving.address));
    assert!(browser.url().contains("/login?next=/bottles/"), "{}", browser.url());
    browser.write("#admin-token", TOKEN);
    browser.click("button.primary");
    wait_for("the bottle's page", || browser.url().ends_with(SLUG).then_some(()));
}

/// The program that looks for what keeps people out; `None` after saying that it is missing.
fn axe() -> Option<String> {
    let remedy = "scripts/test-real installs it";
    let clients = require_folder("mcp_clients", "BOTTLEWORKS_TEST_MCP", remedy)?;
    let script = clients.join("node_modules/axe-core/axe.min.js");
    Some(std::fs::read_to_string(script).expect("axe is there"))
}

/// Looks at a page in every way, and finds what a person would complain about.
fn inspect(browser: &Browser, name: &str) {
    let (mut grounds, axe) = (Vec::new(), axe());
    for (width, light) in
        [(390, Light::Day), (390, Light::Night), (1280, Light::Day), (1280, Light::Night)]
    {
        browser.look(width, light);
        let beside =
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.script(beside), 0, "{name} is wider than {width} px");
        let ground = browser.script("return getComputedStyle(document.body).backgroundColor");
        grounds.push(ground.to_string());
        browser.picture(&pictures().join(format!("{name}-{width}-{light:?}.png")));
        let small = "return [...document.querySelectorAll('main button')].filter(it => it.offsetHeight && it.offsetHeight < 38).length";
        assert_eq!(browser.script(small), 0, "{name} has buttons that no thumb hits");
        if let Some(axe) = &axe {
            browser.script(&format!("{axe}; return true"));
            let found = browser.script("return axe.run().then(it => it.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' ')))");
            assert_eq!(found, serde_json::json!([]), "{name} at {width} px, {light:?}");
        }
    }
    assert_ne!(grounds[0], grounds[1], "{name} is as bright by night as by day");
    assert_eq!(browser.script("return window.hurt ?? null"), serde_json::Value::Null, "{name}");
}

#[test]
fn a_person_logs_in_watches_freezes_and_resumes_in_chromium() {
    let Some(browser) = Browser::start() else { return };
    let waits = "[[step]]\nrun = \"echo the first words; while ! test -f go; do sleep 0.2; done; echo the second words; sleep 600\"\n";
    let Some(serving) = serving(waits) else { return };
    serving.label();
    let run = run_of(&serving);
    wait_for("it to run", || serving.work().filter(|(state, _)| state == "running"));
    log_in(&browser, &serving);
    inspect(&browser, "bottle-running");

    browser.open(&format!("http://{}/runs/{SLUG}/{run}", serving.address));
    browser.wait_for_text(".steps", "the first words");
    // The agent's log names each step before it is done; the second time it is the step's own words.
    let told = || browser.text(".steps").matches("the second words").count();
    let before = told();
    let mark = "document.querySelector('.steps').dataset.mark = 'same page'; return true";
    assert_eq!(browser.script(mark), true);
    std::fs::write(serving.scene.person.bottle(SLUG).join("workspace/go"), "").expect("written");
    wait_for("the log to grow", || (told() > before).then_some(()));
    let mark = "return document.querySelector('.steps').dataset.mark";
    assert_eq!(browser.script(mark), "same page", "it grew where it was");
    inspect(&browser, "run-live");
    browser.open(&format!("http://{}/runs/{SLUG}/{run}?log=raw", serving.address));
    browser.wait_for_text("pre.log", "the second words");

    browser.open(&format!("http://{}/bottles/{SLUG}", serving.address));
    browser.click("form[action$='/freeze'] button");
    browser.wait_for_text(".notice.good", "Freeze requested");
    // The page shows by itself that it happened.
    wait_for("the page to show it", || {
        (browser.text(".head.big .badge") != "running").then_some(())
    });

    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    wait_for("the form", || {
        browser
            .script("return document.querySelector('#prompt') !== null")
            .as_bool()
            .filter(|it| *it)
    });
    browser.write("#prompt", "Finish it.");
    browser.click("form[action$='/resume'] button");
    browser.wait_for_text(".notice.good", "Resume requested");
    serving.wait("frozen");
    assert!(serving.scene.published().is_some(), "it went on and published");
    assert_eq!(browser.complaints(), [""; 0], "nothing was forbidden and nothing failed");
}

#[test]
fn pages_are_legible_by_day_and_night_on_phone_and_desk() {
    let Some(browser) = Browser::start() else { return };
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    browser.open(&format!("http://{}/login", serving.address));
    inspect(&browser, "login");
    serving.label();
    serving.wait("frozen");
    log_in(&browser, &serving);
    inspect(&browser, "bottle-frozen");
    browser.open(&format!("http://{}/", serving.address));
    inspect(&browser, "home");
    browser.open(&format!("http://{}/history", serving.address));
    inspect(&browser, "history");
    assert!(browser.text("main").contains("1 run in 30 days, 1 published"));
    browser.open(&format!("http://{}/bottles/nobody", serving.address));
    inspect(&browser, "bottle-missing");
    browser.open(&format!("http://{}/service", serving.address));
    inspect(&browser, "service");
    assert!(browser.text("main").contains("alice/hooks"));
    browser.open(&format!("http://{}/", serving.address));
    let title = browser.text("article.case h3");
    let shown = HOSTILE.replace('\u{202e}', r"\u{202e}").replace('\u{1b}', r"\x1b");
    assert_eq!(title, shown, "a hostile title is a text");
    browser.open(&format!("http://{}/runs/{SLUG}/{}", serving.address, run_of(&serving)));
    inspect(&browser, "run-closed");
    assert!(browser.text("pre.diff").contains("+work"));
    browser.write("#find", "work.txt");
    browser.click("form.tools button");
    browser.wait_for_text("main", "\u{201c}work.txt\u{201d}");
    inspect(&browser, "run-search");
    // A browser complains of the page that is not there.
    let complaints: Vec<String> =
        browser.complaints().into_iter().filter(|it| !it.contains("status of 404")).collect();
    assert_eq!(complaints, [""; 0], "nothing was forbidden and nothing failed");
}

/// Words that are typed while the server is away are there when it is back, and so is the login.
#[test]
fn an_open_page_goes_on_over_a_restart_and_gives_notice_where_that_was_asked_for() {
    let Some(browser) = Browser::start() else { return };
    let asks = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"Which one?\"]\n";
    let Some(mut serving) = serving(asks) else { return };
    serving.stay_at_address();
    serving.label();
    serving.wait("needs-attention");
    log_in(&browser, &serving);
    browser.write("#prompt", "The second");
    serving.restart();
    browser.write("#prompt", " one.");
    let typed = "return document.querySelector('#prompt').value";
    assert_eq!(browser.script(typed), "The second one.");
    wait_for("the page to be connected again", || {
        let told = browser.script("return document.querySelector('#connection') === null");
        told.as_bool().filter(|it| *it)
    });
    browser.open(&format!("http://{}/bottles/{SLUG}", serving.address));
    assert_eq!(browser.script(typed), "The second one.", "a draft outlives the page");
    browser.click("form[action$='/resume'] button");
    browser.wait_for_text(".notice.good", "Resume requested");

    browser.open(&format!("http://{}/", serving.address));
    // Headless, nobody sees a notice: the page's own call is what can be looked at.
    let watch = "window.told = []; window.Notification = class extends EventTarget { \
        static permission = 'granted'; static async requestPermission() { return 'granted'; } \
        constructor(words) { super(); window.told.push(words); } }; offerNotices(); return true";
    browser.script(watch);
    browser.click("[data-notify]");
    browser.wait_for_text("[data-notify]", "turn them off");
    let second = serving.scene.forge.add_issue("Also", "Well.", &["bot-bottle:worker"], &["bot1"]);
    serving.tell("issue_opened_labeled_assigned-label_updated", Room::Issue, second);
    wait_for("the notice", || {
        let told = browser.script("return window.told.join()").as_str()?.to_owned();
        told.contains("2 bottles need you").then_some(())
    });
    let icon = "return document.querySelector('link[rel=icon]').getAttribute('href')";
    let icon = browser.script(icon);
    assert!(icon.as_str().is_some_and(|it| it.ends_with("&calls=2")), "{icon}");
    assert!(browser.script("return document.title").to_string().contains("(2) Bottles"));
}
