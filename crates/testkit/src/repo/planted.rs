//! Forks with a planted break: an upstream of many commits, of which exactly one changes a function that only the fork's own file
//! calls. Nothing conflicts, and the fork does not build or run any more.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Fork;
use crate::hermetic::Hermetic;
use crate::program::{self, SYSTEM_PATH};

/// Language of a made fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Compiled with `cc`.
    C,
    /// Run with `python3`.
    Python,
    /// Compiled with `rustc`.
    Rust,
    /// Compiled with `go tool compile`.
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::C, Self::Python, Self::Rust, Self::Go];
}

/// A fork, and the commit of upstream that breaks it.
#[derive(Debug)]
pub struct PlantedFork {
    /// The fork; upstream is ahead of it.
    pub fork: Fork,
    /// The commit that breaks the fork.
    pub planted: String,
}

/// Change of the function that the fork calls.
#[derive(Debug, Clone, Copy)]
enum Change {
    Renamed,
    OneMoreParameter,
    Removed,
}

/// Text of upstream's file, of the fork's file, and the fork's check.
struct Sources {
    name: &'static str,
    before: &'static str,
    fork_name: &'static str,
    fork: &'static str,
    check: &'static str,
}

fn sources(language: Language) -> Sources {
    match language {
        Language::C => Sources {
            name: "core.h",
            before: "static int area(int w, int h) { return w * h; }\n",
            fork_name: "feature.c",
            fork: "#include \"core.h\"\nint main(void) { return area(2, 3) == 6 ? 0 : 1; }\n",
            check: "cc -Werror=implicit-function-declaration -o /tmp/feature feature.c && /tmp/feature",
        },
        Language::Python => Sources {
            name: "core.py",
            before: "def area(w, h):\n    return w * h\n",
            fork_name: "feature.py",
            fork: "import core\nassert core.area(2, 3) == 6\n",
            check: "python3 feature.py",
        },
        Language::Rust => Sources {
            name: "shapes.rs",
            before: "pub fn area(w: i32, h: i32) -> i32 { w * h }\n",
            fork_name: "feature.rs",
            fork: "#![allow(dead_code)]\nmod shapes;\nfn main() { assert_eq!(shapes::area(2, 3), 6); }\n",
            check: "${BOX_RUSTC:-rustc} -o /tmp/feature feature.rs && /tmp/feature",
        },
        Language::Go => Sources {
            name: "core.go",
            before: "package main\n\nfunc area(w, h int) int { return w * h }\n",
            fork_name: "feature.go",
            fork: "package main\n\nfunc main() {\n\tif area(2, 3) != 6 {\n\t\tpanic(\"area\")\n\t}\n}\n",
            check: "PATH=$PATH:/usr/local/go/bin go tool compile -p main -o /tmp/feature.o core.go feature.go",
        },
    }
}

/// Upstream's file after the change.
fn changed(language: Language, change: Change, before: &str) -> String {
    let (few, more) = match language {
        Language::C => ("int w, int h", "int w, int h, int d"),
        Language::Python => ("w, h)", "w, h, d)"),
        Language::Rust => ("h: i32)", "h: i32, _d: i32)"),
        Language::Go => ("w, h int", "w, h, d int"),
    };
    let remark = match language {
        Language::Python => "#",
        Language::C | Language::Rust | Language::Go => "//",
    };
    match change {
        Change::Renamed => before.replace("area", "surface"),
        Change::OneMoreParameter => before.replace(few, more),
        Change::Removed => match language {
            Language::Go => format!("package main\n\n{remark} area is gone\n"),
            Language::C | Language::Python | Language::Rust => format!("{remark} area is gone\n"),
        },
    }
}

impl PlantedFork {
    /// Makes a fork whose upstream has `commits` new commits, with a break in the one at `position`, from 1. `rustc` is the
    /// compiler as the box has it.
    ///
    /// # Panics
    /// When git cannot do it.
    pub fn make(
        hermetic: &Hermetic,
        language: Language,
        (commits, position): (usize, usize),
        rustc: Option<&str>,
    ) -> Self {
        let fork = Fork::new(hermetic);
        let Sources { name, before, fork_name, fork: own, check } = sources(language);
        let check = check.replace("${BOX_RUSTC:-rustc}", rustc.unwrap_or("rustc"));
        fork.upstream_commit(name, before, "core: area");
        fork.checkout.git(&["pull", "--quiet", "--no-rebase", "--no-edit", "upstream", "main"]);
        fork.checkout.write(fork_name, own);
        fork.checkout.write("FORK.md", format!("---\ncheck: '{check}'\n---\n"));
        fork.fork_commit("the fork's feature");
        let change = match position % 3 {
            0 => Change::Renamed,
            1 => Change::OneMoreParameter,
            _ => Change::Removed,
        };
        let after = changed(language, change, before);
        import(&fork, commits, position, (name, before, &after));
        let planted = fork.upstream.sha(&format!("main~{}", commits - position));
        Self { fork, planted }
    }
}

/// Adds commits to upstream's main branch: each changes a file of its own or upstream's file beside the function.
fn import(fork: &Fork, commits: usize, position: usize, (name, before, after): (&str, &str, &str)) {
    let mut stream = String::new();
    for number in 1..=commits {
        let from = if number == 1 { "from refs/heads/main^0\n" } else { "" };
        let message = format!("change {number}\n\nPart of a long series.\n");
        write!(
            stream,
            "commit refs/heads/main\ncommitter Ada <ada@example.invalid> {} +0000\ndata {}\n{message}{from}",
            1_800_000_000 + number,
            message.len()
        )
        .expect("text");
        let text = format!("note {number}\n");
        write!(stream, "M 100644 inline notes/{}.txt\ndata {}\n{text}\n", number % 17, text.len())
            .expect("text");
        if number == position {
            write!(stream, "M 100644 inline {name}\ndata {}\n{after}\n", after.len())
                .expect("text");
        } else if number % 40 == 0 && number < position {
            let text = format!("{before}\n");
            write!(stream, "M 100644 inline {name}\ndata {}\n{text}\n", text.len()).expect("text");
        }
    }
    stream.push_str("done\n");
    let mut import: Command = program::command("git");
    import.env("PATH", SYSTEM_PATH).arg("-C").arg(fork.upstream.dir());
    import.args(["fast-import", "--quiet", "--done"]).stdin(Stdio::piped());
    let mut child = import.spawn().expect("git starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(stream.as_bytes()).expect("git reads");
    drop(input);
    assert!(child.wait().expect("git ends").success(), "fast-import failed");
}
