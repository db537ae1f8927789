//! Names of bottles.

use model::id::Slug;

/// Leaves room for a number and a run's stamp.
const BASE_MAX: usize = 40;

/// Makes a slug from a label: invalid characters become dashes. The second bottle of that name is number 2.
pub(crate) fn next_slug(label: &str, attempt: u32) -> Option<Slug> {
    let mut base = String::new();
    for c in label.chars().map(|c| c.to_ascii_lowercase()) {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if c != '-' || !(base.is_empty() || base.ends_with('-')) {
            base.push(c);
        }
        if base.len() == BASE_MAX {
            break;
        }
    }
    let base = base.trim_end_matches('-');
    let base = if base.is_empty() { "bottle" } else { base };
    let text = if attempt < 2 { base.to_owned() } else { format!("{base}-{attempt}") };
    Slug::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_becomes_a_slug() {
        let made = |label, attempt| next_slug(label, attempt).expect("a slug").to_string();
        assert_eq!(made("Fix: the Login!", 1), "fix-the-login");
        assert_eq!(made("Fix: the Login!", 3), "fix-the-login-3");
        assert_eq!(made("ä/..", 1), "bottle");
        assert!(made(&"x".repeat(500), u32::MAX).len() <= 64);
    }
}
