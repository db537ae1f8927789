//! Forms of a secret in output.

use crate::secret::Secret;
use std::collections::BTreeSet;

const MIN_CHARS: usize = 6;

/// Every text that must not be shown, longest first.
pub(super) fn all_forms(secrets: impl IntoIterator<Item = Secret>) -> Vec<String> {
    let mut forms = BTreeSet::new();
    for secret in secrets {
        let value = secret.expose();
        add_forms(&mut forms, value);
        add_forms(&mut forms, unquoted(value));
        // Tools print long values line by line, with a prefix on each.
        value.lines().for_each(|line| add_forms(&mut forms, line));
    }
    let mut forms: Vec<String> = forms.into_iter().collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

fn add_forms(forms: &mut BTreeSet<String>, value: &str) {
    if value.chars().count() < MIN_CHARS {
        return;
    }
    forms.insert(value.to_owned());
    forms.insert(json_string(value));
    forms.insert(percent_encode(value, b"0123456789ABCDEF"));
    forms.insert(percent_encode(value, b"0123456789abcdef"));
    forms.insert(hex_encode(value, b"0123456789ABCDEF"));
    forms.insert(hex_encode(value, b"0123456789abcdef"));
    forms.extend(base64_forms(value));
}

/// A secret in base64: alone, and the part that stays the same inside a longer text.
pub(super) fn base64_forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for alphabet in [STANDARD, URL_SAFE] {
        let encoded = base64_encode(value.as_bytes(), alphabet);
        let padding = "=".repeat((4 - encoded.len() % 4) % 4);
        forms.insert(format!("{encoded}{padding}"));
        forms.insert(encoded);
        for shift in 0..3 {
            let core = base64_core(value.as_bytes(), shift, alphabet);
            if core.len() >= MIN_CHARS {
                forms.insert(core);
            }
        }
    }
    forms
}

pub(super) fn hex_encode(value: &str, hex: &[u8; 16]) -> String {
    let digits = |byte: u8| [hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]];
    value.bytes().flat_map(digits).map(char::from).collect()
}

/// Strips quotes: secrets files are literal, yet many are written by hand as shell scripts.
fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

fn json_string(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent_encode(value: &str, hex: &[u8; 16]) -> String {
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(hex[usize::from(byte >> 4)]));
            encoded.push(char::from(hex[usize::from(byte & 15)]));
        }
    }
    encoded
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 without padding.
fn base64_encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).map_or(0, |&b| u32::from(b));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * digit)) & 63;
            encoded.push(char::from(alphabet[index as usize]));
        }
    }
    encoded
}

/// Characters that encode the value alone when `shift` (modulo 3) other bytes precede it and more follow, as with a
/// password in `user:password`.
fn base64_core(value: &[u8], shift: usize, alphabet: &[u8; 64]) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(value);
    let encoded = base64_encode(&bytes, alphabet);
    let first_own = (shift * 8).div_ceil(6);
    let first_shared = bytes.len() * 8 / 6;
    encoded[first_own..first_shared].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_examples_of_the_standard() {
        let encoded = |text: &str| base64_encode(text.as_bytes(), STANDARD);
        assert_eq!(
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(encoded),
            ["", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"]
        );
    }

    #[test]
    fn the_core_stays_the_same_whatever_surrounds_the_value() {
        for (before, after) in [("", ""), ("u:", "\n"), ("user:", "xyz"), ("abc:", "!!")] {
            let text = format!("{before}hunter22{after}");
            let core = base64_core(b"hunter22", before.len() % 3, STANDARD);
            assert!(base64_encode(text.as_bytes(), STANDARD).contains(&core), "{text}");
            assert!(core.len() >= 9, "{core}");
        }
    }
}
