//! Names of files in the texts of a check: in its line, in a Makefile, in a script.
//!
//! A shell resolves a name by variables and by the current folder, and neither is known here. So a name means every file
//! whose path is that name, or ends with it.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{NamedBy, file_name, is_check_file, is_check_script};
use crate::pattern::PathPatterns;

/// Most names that are taken from one text.
const MOST_NAMES: usize = 2_000;

/// Most names that are taken from all texts, and patterns among them: each pattern is compared with every path.
const MOST_IN_ALL: usize = 100_000;
pub(super) const MOST_GLOBS: usize = 200;

/// Bytes of the longest name.
const MOST_BYTES: usize = 1_000;

/// Words before the name of a file that a shell or make reads as a part of the text itself, or runs as a script.
const READERS: [&str; 10] =
    [".", "source", "include", "-include", "sinclude", "sh", "bash", "zsh", "dash", "ksh"];

/// Endings of programs that import others by their names without the ending.
const PROGRAMS: [&str; 8] = ["py", "js", "mjs", "cjs", "ts", "rb", "pl", "php"];

/// Text in which files are named.
#[derive(Debug, Clone, Copy)]
pub(super) struct MentioningText<'a> {
    pub(super) text: &'a str,
    pub(super) by: NamedBy,
    /// Path of the file that holds the text.
    pub(super) path: Option<&'a str>,
}

/// Way in which a file is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mention {
    in_line: bool,
    /// After a word that makes a shell or make read or run it.
    is_read: bool,
    /// In a program, which may import it by its name without the ending.
    in_program: bool,
}

/// Part that a changed file has in a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It decides what the check does.
    Defines,
    /// A file that defines the check names it. It may be a part of the check, or what the check is about.
    Named,
}

#[derive(Debug)]
struct NamedGlob {
    name: String,
    patterns: PathPatterns,
    mention: Mention,
}

/// Files that the texts of a check name.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// By the last part of the name.
    names: BTreeMap<String, Vec<(String, Mention)>>,
    globs: Vec<NamedGlob>,
    /// Folders in which programs are looked for.
    program_folders: BTreeSet<String>,
    /// Names in programs, without folders, packages and endings.
    modules: BTreeSet<String>,
    /// Number of names and patterns so far.
    count: usize,
}

impl Mentions {
    /// Adds the names in a text, and returns them.
    pub(super) fn add(&mut self, text: MentioningText<'_>) -> Vec<String> {
        let extension = text.path.and_then(extension_of);
        let in_program = extension.is_some_and(|it| PROGRAMS.contains(&it));
        let mut added = Vec::new();
        for line in text.text.lines() {
            let sets_path = sets_path(line);
            let mut reading = Reading::default();
            for word in words(line) {
                let is_read = reading.next(word);
                let Some(name) = normal_name(word) else { continue };
                if added.len() == MOST_NAMES || self.count == MOST_IN_ALL {
                    return added;
                }
                let in_line = text.by == NamedBy::Line;
                self.insert(&name, Mention { in_line, is_read, in_program });
                if sets_path {
                    self.program_folders.insert(name.clone());
                }
                added.push(name);
            }
        }
        added
    }

    fn insert(&mut self, name: &str, mention: Mention) {
        let merge = |into: &mut Mention| {
            into.in_line |= mention.in_line;
            into.is_read |= mention.is_read;
            into.in_program |= mention.in_program;
        };
        self.count += 1;
        if is_glob(name) {
            if let Some(glob) = self.globs.iter_mut().find(|glob| glob.name == name) {
                merge(&mut glob.mention);
            } else if self.globs.len() < MOST_GLOBS {
                let patterns = PathPatterns::new([format!("**/{name}")]);
                self.globs.push(NamedGlob { name: name.to_owned(), patterns, mention });
            }
            return;
        }
        if mention.in_program {
            let last = file_name(name);
            // In Python a dot stands for a slash.
            self.modules.extend([last, last.rsplit('.').next().unwrap_or(last)].map(str::to_owned));
        }
        let same = self.names.entry(file_name(name).to_owned()).or_default();
        match same.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => merge(known),
            None => same.push((name.to_owned(), mention)),
        }
    }

    /// Says how a file takes part in the check, if it does.
    pub(super) fn part_of(&self, path: &[u8], is_executable: bool) -> Option<Part> {
        if is_check_file(path) {
            return Some(Part::Defines);
        }
        let path = std::str::from_utf8(path).ok()?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if self.program_folders.iter().any(|it| ends_with_path(folder, it)) {
            return Some(Part::Defines);
        }
        let mut part = None;
        for mention in self.mentions_of(path, is_executable) {
            let by = if mention.in_line { NamedBy::Line } else { NamedBy::File };
            if mention.is_read || is_check_script(path, is_executable, by) {
                return Some(Part::Defines);
            }
            part = Some(Part::Named);
        }
        part.or_else(|| self.is_imported(path).then_some(Part::Named))
    }

    fn mentions_of(&self, path: &str, is_executable: bool) -> impl Iterator<Item = Mention> {
        // A bare word that is no name of a file elsewhere is a name only if it can be started.
        let is_meant = move |name: &str| {
            path == name
                || (ends_with_path(path, name) && (name.contains(['/', '.']) || is_executable))
        };
        let named = self.names.get(file_name(path)).into_iter().flatten();
        let named = named.filter(move |(name, _)| is_meant(name)).map(|(_, mention)| *mention);
        let globs = self.globs.iter().filter(move |glob| glob.patterns.matches(path.as_bytes()));
        named.chain(globs.map(|glob| glob.mention))
    }

    /// Returns whether a program of the check may import a file.
    fn is_imported(&self, path: &str) -> bool {
        let Some((stem, extension)) = path.rsplit_once('.') else { return false };
        if !PROGRAMS.contains(&extension) {
            return false;
        }
        let module = stem.strip_suffix("/__init__").or_else(|| stem.strip_suffix("/index"));
        let module = module.unwrap_or(stem);
        self.modules.contains(file_name(module))
    }
}

/// Returns whether a name is a pattern of a shell.
pub(super) fn is_glob(name: &str) -> bool {
    name.contains(['*', '?'])
}

fn extension_of(path: &str) -> Option<&str> {
    file_name(path).rsplit_once('.').map(|(_, extension)| extension)
}

fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns whether a line says where programs are looked for.
fn sets_path(line: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices("PATH=").any(|(at, _)| !line[..at].ends_with(is_name))
}

/// The argument of a word that reads or runs files: `"$(dirname "$0")/env"` is one.
#[derive(Debug, Default)]
struct Reading {
    /// The word before was one that reads.
    begins: bool,
    is_open: bool,
    /// Command substitutions that are open.
    depth: usize,
}

impl Reading {
    /// Returns whether a word is a part of such an argument.
    fn next(&mut self, word: Word<'_>) -> bool {
        let mut ends = false;
        for c in word.gap.chars() {
            match c {
                '(' => self.depth += 1,
                ')' => self.depth = self.depth.saturating_sub(1),
                '`' => self.depth = usize::from(self.depth == 0),
                c => ends |= self.depth == 0 && (c.is_whitespace() || ";&|<>".contains(c)),
            }
        }
        self.is_open = self.begins || (self.is_open && !ends);
        if self.begins {
            self.depth = word.gap.matches(['(', '`']).count();
        }
        // A flag stands before the file.
        let is_flag = self.is_open && word.text.starts_with('-');
        self.begins = READERS.contains(&word.text) || is_flag;
        self.is_open
    }
}

/// Word of a line that may be a path.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    /// Text between it and the word before.
    gap: &'a str,
    /// It begins with the name of a variable.
    is_variable: bool,
}

fn words(line: &str) -> impl Iterator<Item = Word<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || "._-/*?+@~".contains(c);
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.find(is_part)?;
        let gap = &rest[..start];
        let found = &rest[start..];
        let end = found.find(|c: char| !is_part(c)).unwrap_or(found.len());
        rest = &found[end..];
        Some(Word { text: &found[..end], gap, is_variable: gap.ends_with('$') })
    })
}

/// The name in a word: without the variable or the folders above that it begins with.
fn normal_name(word: Word<'_>) -> Option<String> {
    let text = match word.is_variable {
        true => word.text.split_once('/')?.1,
        false => word.text,
    };
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let name = parts.collect::<Vec<_>>().join("/");
    // A pattern that matches everything names nothing.
    let is_name = !name.starts_with('-') && name.contains(char::is_alphanumeric);
    (is_name && name.len() <= MOST_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(by: NamedBy, path: Option<&str>, text: &str) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.add(MentioningText { text, by, path });
        mentions
    }

    fn check(text: &str, path: &str, expected: Option<Part>) {
        let named = mentions(NamedBy::File, Some("ci/run"), text);
        assert_eq!(named.part_of(path.as_bytes(), false), expected, "{text}: {path}");
    }

    #[test]
    fn names_are_found_behind_variables_and_folders() {
        let mut mentions = Mentions::default();
        let text = "./a/test.sh --fast && . \"$(dirname \"$0\")/env.inc\" | tee $PWD/out/x ../y ${ROOT}/z/w d/";
        let names = mentions.add(MentioningText { text, by: NamedBy::Line, path: None });
        assert_eq!(
            names,
            ["a/test.sh", "dirname", "env.inc", "tee", "out/x", "y", "ROOT", "z/w", "d"]
        );
    }

    #[test]
    fn what_a_shell_reads_or_runs_defines_the_check_whatever_it_is_called() {
        let defines = Some(Part::Defines);
        check(". ./env.inc", "env.inc", defines);
        check("source lib/common", "lib/common", defines);
        check("set -a; . ./.env; make", ".env", defines);
        check(". \"$(dirname \"$0\")/env.cfg\"", "ci/env.cfg", defines);
        check(". `dirname $0`/env.cfg", "ci/env.cfg", defines);
        check("source \"${BASH_SOURCE%/*}/lib/common\"", "ci/lib/common", defines);
        check("include build/flags", "sub/build/flags", defines);
        check("sh ../x/run", "x/run", defines);
        check("sh -e x/run", "x/run", defines);
        check("for f in tests/*.sh; do sh $f; done", "tests/a.sh", defines);
        check("export PATH=$PWD/bin:$PATH", "bin/mytest", defines);
        check("execv('tools/runner.py')", "tools/runner.py", defines);
    }

    #[test]
    fn what_is_only_named_may_be_what_the_check_is_about() {
        check("cc -o app src/main.c", "src/main.c", Some(Part::Named));
        check("sh compile.sh src/main.c", "src/main.c", Some(Part::Named));
        check(". ./env; cc src/main.c", "src/main.c", Some(Part::Named));
        check("PY := $(shell cat py.txt)", "py.txt", Some(Part::Named));
        check("echo $PYTHONPATH=src", "src/auth.py", None);
        check("echo hello", "src/main.c", None);
        check("make all", "docs/all", None);
    }

    #[test]
    fn a_program_imports_by_names_without_endings() {
        let named = |path: &str, text: &str, changed: &str| {
            mentions(NamedBy::Line, Some(path), text).part_of(changed.as_bytes(), false)
        };
        assert_eq!(named("run.py", "import helper", "helper.py"), Some(Part::Named));
        assert_eq!(
            named("run.py", "from tools.helper import x", "tools/helper.py"),
            Some(Part::Named)
        );
        assert_eq!(named("t.js", "require(\"./lib/h\")", "lib/h.js"), Some(Part::Named));
        assert_eq!(named("t.js", "require('./lib')", "lib/index.js"), Some(Part::Named));
        assert_eq!(named("run.sh", "echo helper", "helper.py"), None);
    }

    #[test]
    fn many_names_and_patterns_end_somewhere() {
        let text: String = (0..3_000).map(|n| format!("d{n}/*.sh d{n}/x\n")).collect();
        let mut mentions = Mentions::default();
        for _ in 0..200 {
            mentions.add(MentioningText { text: &text, by: NamedBy::File, path: Some("a.py") });
        }
        assert_eq!((mentions.count, mentions.globs.len()), (MOST_IN_ALL, MOST_GLOBS));
        assert_eq!(mentions.part_of(b"d1/x", true), Some(Part::Defines));
    }

    #[test]
    fn a_script_that_can_be_started_is_found_in_any_folder() {
        let named = mentions(NamedBy::File, Some("ci/run.sh"), "cd \"$(dirname \"$0\")\"; ./real");
        assert_eq!(named.part_of(b"ci/real", true), Some(Part::Defines));
        assert_eq!(named.part_of(b"docs/real", false), None);
    }
}
