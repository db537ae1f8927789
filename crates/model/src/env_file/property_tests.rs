//! Promises of the env-file grammar that hold for every file.

use super::EnvFile;
use proptest::prelude::*;

/// A legal line without its end, for the given key where it needs one.
fn line(key: String) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("   ".to_owned()),
        "[ \t]{0,2}#[^\n\r]{0,12}",
        "[a-z0-9/.:#=-]{0,8}".prop_map({
            let key = key.clone();
            move |value| format!("{key}={value}")
        }),
        ("[ \t]{0,2}", "[a-zé#' =.]{0,6}(&[a-z ]?)?", "([ \t]{1,2}#[^\n\r]{0,6})?").prop_map({
            let key = key.clone();
            move |(blanks, value, comment)| {
                format!("{blanks}{key}{blanks}={blanks}\"{value}\"{comment}")
            }
        }),
        "[a-z\"# ]{0,8}".prop_map(move |value| format!("{key}='{value}'")),
    ]
}

/// A legal file with the keys K0, K1 and so on, in both line-end styles, with or without the last end.
fn file() -> impl Strategy<Value = String> {
    let lines =
        (0..6_usize).prop_flat_map(|n| (0..n).map(|i| line(format!("K{i}"))).collect::<Vec<_>>());
    (lines, prop::sample::select(vec!["\n", "\r\n"]), any::<bool>()).prop_map(
        |(lines, end, last)| {
            let text = lines.join(end);
            if last && !text.is_empty() { text + end } else { text }
        },
    )
}

fn writable() -> impl Strategy<Value = String> {
    "[^\"`$;|&\\p{Cc}]{0,12}"
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        if let Ok(file) = EnvFile::parse(&text) {
            prop_assert_eq!(file.to_string(), text);
        }
    }

    #[test]
    fn no_env_like_text_makes_the_parser_panic(text in "([A-B ]{0,2}[=#\"' \t\r\n&$é]{0,3}){0,12}") {
        if let Ok(file) = EnvFile::parse(&text) {
            prop_assert_eq!(file.to_string(), text);
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in any::<Vec<u8>>()) {
        if let Ok(file) = EnvFile::parse_bytes(&bytes) {
            prop_assert_eq!(file.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn a_file_renders_as_it_was_read(text in file()) {
        let read = EnvFile::parse(&text).unwrap();
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn what_was_set_is_what_one_gets_also_after_reading_it_back(
        text in file(), at in 0..8_usize, value in writable(),
    ) {
        let key = format!("K{at}");
        let mut file = EnvFile::parse(&text).unwrap();
        file.set(&key, &value).unwrap();
        prop_assert_eq!(file.get(&key), Some(value.as_str()));
        let again = EnvFile::parse(&file.to_string()).unwrap();
        prop_assert_eq!(again, file);
    }

    #[test]
    fn setting_a_value_leaves_all_other_lines_alone(
        text in file(), at in 0..8_usize, value in writable(),
    ) {
        let key = format!("K{at}");
        let mut file = EnvFile::parse(&text).unwrap();
        let touched = file.position(&key);
        file.set(&key, &value).unwrap();
        let after = file.to_string();
        let before_lines: Vec<&str> = text.lines().collect();
        let after_lines: Vec<&str> = after.lines().collect();
        prop_assert!(after_lines.len() == before_lines.len() + usize::from(touched.is_none()));
        for (index, (old, new)) in before_lines.iter().zip(&after_lines).enumerate() {
            prop_assert!(Some(index) == touched || old == new, "line {}: {old:?} {new:?}", index + 1);
        }
    }

    #[test]
    fn what_set_accepts_reads_back_and_all_else_is_refused(value in any::<String>()) {
        let mut file = EnvFile::default();
        match file.set("KEY", &value) {
            Ok(()) => {
                let again = EnvFile::parse(&file.to_string()).unwrap();
                prop_assert_eq!(again.get("KEY"), Some(value.as_str()));
            }
            Err(_) => prop_assert_eq!(file.to_string(), ""),
        }
    }
}
