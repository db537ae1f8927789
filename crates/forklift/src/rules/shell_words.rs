//! Commands as a person can type them from any folder.

use std::path::Path;

/// A path as one word of a shell.
pub(crate) fn quoted_path(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A command for a checkout as one for any folder. Commands about a run need no folder.
pub(crate) fn in_folder(command: &str, folder: &Path) -> String {
    let folder = quoted_path(folder);
    let mut text = String::new();
    let mut rest = command;
    loop {
        let end = ["; ", " && "].iter().filter_map(|mark| Some((rest.find(mark)?, mark))).min();
        let (part, mark) = match end {
            Some((at, mark)) => (&rest[..at], *mark),
            None => (rest, ""),
        };
        let placed = ["git", "forklift train"].iter().find_map(|program| {
            let (name, after) = program.split_once(' ').unwrap_or((program, ""));
            let words = part.strip_prefix(program)?;
            let words =
                if after.is_empty() { words.to_owned() } else { format!(" {after}{words}") };
            (words.is_empty() || words.starts_with(' '))
                .then(|| format!("{name} -C {folder}{words}"))
        });
        text.push_str(placed.as_deref().unwrap_or(part));
        text.push_str(mark);
        if mark.is_empty() {
            return text;
        }
        rest = &rest[part.len() + mark.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, expected) in [
            ("/home/me/fork", "/home/me/fork"),
            ("/home/me/my fork", "'/home/me/my fork'"),
            ("/a'b", "'/a'\\''b'"),
            ("/$HOME", "'/$HOME'"),
        ] {
            assert_eq!(quoted_path(Path::new(path)), expected);
        }
    }

    #[test]
    fn a_command_for_a_checkout_can_be_typed_anywhere() {
        for (command, expected) in [
            (
                "git fetch origin && git diff origin/main...origin/x",
                "git -C '/my fork' fetch origin && git -C '/my fork' diff origin/main...origin/x",
            ),
            ("forklift train", "forklift -C '/my fork' train"),
            (
                "forklift resume r1 --answer \"...\"; forklift train",
                "forklift resume r1 --answer \"...\"; forklift -C '/my fork' train",
            ),
            ("forklift publish r1", "forklift publish r1"),
        ] {
            assert_eq!(in_folder(command, Path::new("/my fork")), expected);
        }
    }
}
