//! One program, three names: by link, by first word, and in the hidden roles that a run starts.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::hermetic::{Hermetic, Output};
use testkit::part::{Part, require};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bottleworks");

fn run(hermetic: &Hermetic, program: &Path, args: &[&str]) -> Output {
    let mut command = hermetic.command(program.to_str().expect("UTF-8"));
    hermetic.run(command.current_dir(hermetic.work()).args(args))
}

/// The links that `bottleworks link` makes in a folder.
fn links(hermetic: &Hermetic) -> PathBuf {
    let folder = hermetic.work().join("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let output = run(hermetic, Path::new(PROGRAM), &["link", folder.to_str().expect("UTF-8")]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    folder
}

#[test]
fn each_name_is_its_command() {
    let hermetic = Hermetic::new();
    let folder = links(&hermetic);
    for name in ["forklift", "wf", "bot-bottle"] {
        let by_link = run(&hermetic, &folder.join(name), &["--help"]);
        let by_word = run(&hermetic, Path::new(PROGRAM), &[name, "--help"]);
        assert_eq!(by_link.status, Some(0), "{}", by_link.snapshot());
        assert!(by_link.stdout.contains(&format!("Usage: {name} ")), "{}", by_link.stdout);
        assert_eq!(by_link.stdout, by_word.stdout);
    }
}

#[test]
fn links_are_made_again_and_files_are_left_alone() {
    let hermetic = Hermetic::new();
    let folder = links(&hermetic);
    assert_eq!(links(&hermetic), folder);
    fs::remove_file(folder.join("wf")).expect("removed");
    fs::write(folder.join("wf"), "another program").expect("written");
    let output = run(&hermetic, Path::new(PROGRAM), &["link", folder.to_str().expect("UTF-8")]);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("could not make the link"), "{}", output.stderr);
    assert_eq!(fs::read_to_string(folder.join("wf")).expect("read"), "another program");
}

#[test]
fn packages_get_a_page_for_every_subcommand_and_completions() {
    let hermetic = Hermetic::new();
    let share = hermetic.work().join("share");
    let output = run(&hermetic, Path::new(PROGRAM), &["share", share.to_str().expect("UTF-8")]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for page in ["forklift", "forklift-agents-install", "wf-uat-pass", "bot-bottle-key-rotate"] {
        let text = fs::read_to_string(share.join(format!("man/man1/{page}.1")));
        let text = text.unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
    }
    for file in [
        "bash-completion/completions/wf",
        "zsh/site-functions/_bot-bottle",
        "fish/vendor_completions.d/forklift.fish",
    ] {
        let text = fs::read_to_string(share.join(file)).unwrap_or_else(|it| panic!("{file}: {it}"));
        assert!(text.contains("COMPLETE"), "{text}");
    }
}

#[test]
fn bare_it_says_what_it_is() {
    let hermetic = Hermetic::new();
    let output = run(&hermetic, Path::new(PROGRAM), &["--help"]);
    insta::assert_snapshot!(output.stdout, @"
    All of Bottleworks in one program: forklift, wf and bot-bottle

    It does the work of the command whose name it is called by. `bottleworks link` makes the three
    names.

    Usage: bottleworks [OPTIONS] <COMMAND>

    Commands:
      link         Make links named forklift, wf and bot-bottle to this program
      share        Write manual pages and completions of the three commands below a folder, as in
                   /usr/share
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Commands in this program, under their own names or as its first word:
      forklift    bring a fork up to date with its upstream
      wf          take planned work through micro-commits, with people at the gates
      bot-bottle  turn an issue into a pull request

    `bottleworks wf list` is `wf list`. Each has a demo: forklift demo, wf demo, bot-bottle demo
    ");
}

/// A run starts this program again as shim and sidecar, under its own name.
#[test]
fn demos_run_in_the_multi_call_program() {
    if require(Part::Bwrap).is_none() {
        return;
    }
    let hermetic = Hermetic::new();
    let folder = links(&hermetic);
    for name in ["forklift", "wf", "bot-bottle"] {
        let output = run(&hermetic, &folder.join(name), &["demo"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.contains("cleaned up"), "{}", output.snapshot());
    }
}
