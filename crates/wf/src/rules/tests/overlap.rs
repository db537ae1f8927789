//! Overlaps between workstreams, expected paths and touched files.

use crate::rules::conflict::{
    WorkstreamPaths, contains, count_shared, find_overlaps, parse_expected,
};
use crate::rules::docs::{DocFile, judge_coverage};
use crate::rules::schema::render_json;
use crate::rules::touched::{parse_touched, render_touched};

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn every_kind_of_overlap_is_listed_by_workstream() {
    let (src, api, docs) = (list(&["src/"]), list(&["src/api", "docs"]), list(&["docs/"]));
    let target = WorkstreamPaths {
        id: "login",
        touched: b"docs/a.md\nsrc/login.rs\nsrc/main.rs\n",
        expected: &src,
    };
    let others = [
        WorkstreamPaths { id: "search", touched: b"src/main.rs\nsrc/search.rs\n", expected: &api },
        WorkstreamPaths { id: "manual", touched: b"docs/b.md\n", expected: &docs },
        WorkstreamPaths { id: "other", touched: b"lib/x\n", expected: &[] },
        WorkstreamPaths { id: "login", touched: b"src/main.rs\n", expected: &src },
    ];
    insta::assert_snapshot!(render_json(&find_overlaps(&target, &others)), @r#"
    [
      {
        "workstream": "manual",
        "actual": [],
        "predicted": {},
        "reverse": {
          "docs/": [
            "docs/a.md"
          ]
        },
        "expected": []
      },
      {
        "workstream": "search",
        "actual": [
          "src/main.rs"
        ],
        "predicted": {
          "src/": [
            "src/main.rs",
            "src/search.rs"
          ]
        },
        "reverse": {
          "docs": [
            "docs/a.md"
          ]
        },
        "expected": [
          [
            "src/",
            "src/api"
          ]
        ]
      }
    ]
    "#);
}

#[test]
fn a_list_that_a_person_edited_is_sorted_first() {
    let target = WorkstreamPaths { id: "a", touched: b"z\n\n b \na\n", expected: &[] };
    let others = [WorkstreamPaths { id: "b", touched: b"b\nz\ny\n", expected: &[] }];
    let found: Vec<String> =
        find_overlaps(&target, &others).into_iter().flat_map(|overlap| overlap.actual).collect();
    assert_eq!(found, ["b", "z"]);
    assert_eq!(count_shared(&[target, others[0].clone()], 5), [2, 2]);
}

#[test]
fn paths_are_compared_by_components() {
    let pairs = [
        ("src", "src/a.rs"),
        ("src/", "src/a.rs"),
        ("src", "src"),
        ("src/", "src"),
        ("src", "src2/a"),
        ("src/a", "src/ab"),
        ("", "anything"),
        ("a/b", "a"),
        ("docs/", "docs/x/"),
    ];
    let row = |(prefix, path): &(&str, &str)| {
        let word = if contains(prefix, path.as_bytes()) { "contains" } else { "does not contain" };
        format!("{prefix:?} {word} {path:?}\n")
    };
    insta::assert_snapshot!(pairs.iter().map(row).collect::<String>(), @r#"
    "src" contains "src/a.rs"
    "src/" contains "src/a.rs"
    "src" contains "src"
    "src/" contains "src"
    "src" does not contain "src2/a"
    "src/a" does not contain "src/ab"
    "" contains "anything"
    "a/b" does not contain "a"
    "docs/" contains "docs/x/"
    "#);
}

#[test]
fn expected_paths_are_normalised_or_refused() {
    let texts = [
        "",
        "  ",
        "src",
        "./src/ tests//unit src",
        "a/./b/",
        "src src/ src",
        "/etc",
        "../x",
        "a/../b",
        ".",
        "ok /no",
        "é/ü",
    ];
    let row = |text: &&str| match parse_expected(text) {
        Ok(paths) => format!("{text:?}: {paths:?}\n"),
        Err(error) => format!("{text:?}: {error}\n"),
    };
    insta::assert_snapshot!(texts.iter().map(row).collect::<String>(), @r#"
    "": []
    "  ": []
    "src": ["src"]
    "./src/ tests//unit src": ["src/", "tests/unit", "src"]
    "a/./b/": ["a/b/"]
    "src src/ src": ["src", "src/"]
    "/etc": the expected path '/etc' must name a file or folder inside the repository, without '..'
    "../x": the expected path '../x' must name a file or folder inside the repository, without '..'
    "a/../b": the expected path 'a/../b' must name a file or folder inside the repository, without '..'
    ".": the expected path '.' must name a file or folder inside the repository, without '..'
    "ok /no": the expected path '/no' must name a file or folder inside the repository, without '..'
    "é/ü": ["é/ü"]
    "#);
}

#[test]
fn touched_files_survive_odd_names() {
    let names: [&[u8]; 5] = [b"a b", "é".as_bytes(), b"x\ny", b"tab\there", b"\xff\xfe"];
    let text = render_touched(&names.map(<[u8]>::to_vec));
    let shown = String::from_utf8_lossy(&text).into_owned();
    insta::assert_snapshot!(format!("{shown}{} names", parse_touched(&text).count()), @r"
    a b
    é
    x\ny
    tab\there
    ��
    5 names
    ");
}

#[test]
fn pictures_without_a_page_are_orphaned() {
    let file = |path: &str, text: Option<&str>| DocFile {
        path: path.to_owned(),
        text: text.map(str::to_owned),
    };
    let files = [
        file("a.md", Some("![x](assets/my%20shot.png) <img src=\"used.svg\">")),
        file("assets/my shot.png", None),
        file("assets/used.svg", None),
        file("assets/old.PNG", None),
        file("clip.mp4", None),
        file("notes.txt", Some("")),
        file("Makefile", None),
    ];
    insta::assert_snapshot!(render_json(&judge_coverage(&files)), @r#"
    {
      "pages": 2,
      "assets": 4,
      "orphaned": [
        "assets/old.PNG",
        "clip.mp4"
      ]
    }
    "#);
}
