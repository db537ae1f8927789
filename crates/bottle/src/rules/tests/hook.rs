//! Webhooks: which repository is meant, where the forge posts to, and which file keeps it.

use forge::ForgeKind;

use super::super::hook::{HookPlace, parse_repository, receiver_of, server_of};

fn lines(words: &[&str], show: impl Fn(&str) -> String) -> String {
    words
        .iter()
        .map(|word| format!("{}: {}", word.escape_debug(), show(word)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn either<T: std::fmt::Display>(result: Result<T, String>) -> String {
    match result {
        Ok(text) => text.to_string(),
        Err(error) => format!("refused: {error}"),
    }
}

#[test]
fn repositories_by_their_names() {
    let words = [
        "acme/widget",
        "widget",
        "a/b/c",
        "/widget",
        "acme/",
        "",
        "https://h.example/a/b",
        "a/\u{7}",
    ];
    let show = |word: &str| {
        either(parse_repository(word, Some("https://git.example/api/v1")).map(|it| it.remote))
    };
    insta::assert_snapshot!(lines(&words, show), @"acme/widget: https://git.example/acme/widget.git\nwidget: refused: 'widget' is not a repository: give owner/name, or its whole address\na/b/c: refused: 'a/b/c' is not a repository: give owner/name, or its whole address\n/widget: refused: '/widget' is not a repository: give owner/name, or its whole address\nacme/: refused: 'acme/' is not a repository: give owner/name, or its whole address\n: refused: '' is not a repository: give owner/name, or its whole address\nhttps://h.example/a/b: https://h.example/a/b\na/\\u{7}: https://git.example/a/\u{7}.git");
}

#[test]
fn repositories_by_the_variable() {
    let apis =
        ["https://git.example/api/v1/", " https://git.example/sub/api/v1 ", "git.example", ""];
    let show = |api: &str| either(parse_repository("acme/widget", Some(api)).map(|it| it.remote));
    insta::assert_snapshot!(lines(&apis, show), @"
    https://git.example/api/v1/: https://git.example/acme/widget.git
     https://git.example/sub/api/v1 : https://git.example/sub/acme/widget.git
    git.example: refused: FORGE_GITEA_API must be http(s)://host[:port][/path]/api/v1
    : refused: FORGE_GITEA_API must be http(s)://host[:port][/path]/api/v1
    ");
}

#[test]
fn a_short_name_needs_the_variable() {
    insta::assert_snapshot!(either(parse_repository("acme/widget", None).map(|it| it.remote)), @"refused: the forge of acme/widget is not known: set FORGE_GITEA_API, or give the repository's whole address");
}

#[test]
fn receivers_of_each_kind() {
    let show = |kind: ForgeKind| either(receiver_of("https://bottles.example", kind));
    let all = [ForgeKind::Gitea, ForgeKind::GitHub, ForgeKind::GitLab].map(show);
    insta::assert_snapshot!(all.join("\n"), @"
    https://bottles.example/webhooks/gitea
    https://bottles.example/webhooks/github
    https://bottles.example/webhooks/gitlab
    ");
}

#[test]
fn receivers_as_they_are_given() {
    let words = [
        "http://bottles.example:8473",
        "https://bottles.example/",
        "https://bottles.example/own/path?x=1",
        "https://[::1]:8473/",
        "bottles.example",
        "ftp://bottles.example",
        "https://",
        "https:///path",
        "https://u:p@bottles.example",
        "https://bottles.example/#x",
        "https://bottles.example/a b",
        "https://bottles.example/\u{202e}",
    ];
    insta::assert_snapshot!(lines(&words, |word| either(receiver_of(word, ForgeKind::Gitea))), @r"
    http://bottles.example:8473: http://bottles.example:8473/webhooks/gitea
    https://bottles.example/: https://bottles.example/webhooks/gitea
    https://bottles.example/own/path?x=1: https://bottles.example/own/path?x=1
    https://[::1]:8473/: https://[::1]:8473/webhooks/gitea
    bottles.example: refused: 'bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]
    ftp://bottles.example: refused: 'ftp://bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]
    https://: refused: 'https://' is not an address for a webhook: give http(s)://host[:port][/path]
    https:///path: refused: 'https:///path' is not an address for a webhook: give http(s)://host[:port][/path]
    https://u:p@bottles.example: refused: 'https://u:p@bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]
    https://bottles.example/#x: refused: 'https://bottles.example/#x' is not an address for a webhook: give http(s)://host[:port][/path]
    https://bottles.example/a b: refused: 'https://bottles.example/a b' is not an address for a webhook: give http(s)://host[:port][/path]
    https://bottles.example/\u{202e}: refused: 'https://bottles.example/\u{202e}' is not an address for a webhook: give http(s)://host[:port][/path]
    ");
}

#[test]
fn servers_and_their_ports() {
    let words = [
        "https://h.example",
        "http://h.example/path",
        "https://h.example:3000?x",
        "http://[::1]",
        "http://[::1]:8080#x",
        "http://[::1]x",
        "https://h.example:",
        "https://h.example:99999",
        "ftp://h.example",
        "h.example",
        "https://",
    ];
    let show = |word: &str| match server_of(word) {
        Some((host, port)) => format!("{host} port {port}"),
        None => "none".to_owned(),
    };
    insta::assert_snapshot!(lines(&words, show), @"
    https://h.example: h.example port 443
    http://h.example/path: h.example port 80
    https://h.example:3000?x: h.example port 3000
    http://[::1]: ::1 port 80
    http://[::1]:8080#x: ::1 port 8080
    http://[::1]x: none
    https://h.example:: none
    https://h.example:99999: none
    ftp://h.example: none
    h.example: none
    https://: none
    ");
}

#[test]
fn files_of_repositories() {
    let words = [
        "git.example acme/widget",
        "git.example:3000 acme/widget",
        "lab.example acme/tools/cli/widget",
        "git.example ../widget",
        "git.example acme/..",
        "git.example acme",
        "git.example acme//widget",
        ".. acme/widget",
        "[::1]:3000 acme/widget",
    ];
    let show = |word: &str| {
        let (host, repo) = word.split_once(' ').expect("two words");
        let (host, repo) = (host.to_owned(), repo.to_owned());
        let file = HookPlace { kind: ForgeKind::Gitea, host, repo }.file();
        file.unwrap_or_else(|| "none".to_owned())
    };
    insta::assert_snapshot!(lines(&words, show), @"
    git.example acme/widget: git.example/acme/widget.json
    git.example:3000 acme/widget: git.example_3000/acme/widget.json
    lab.example acme/tools/cli/widget: lab.example/acme/tools/cli/widget.json
    git.example ../widget: none
    git.example acme/..: none
    git.example acme: none
    git.example acme//widget: none
    .. acme/widget: none
    [::1]:3000 acme/widget: none
    ");
}
