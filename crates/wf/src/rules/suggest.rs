//! "Did you mean": the known name that is nearest to an unknown one.

const ALIKE: f64 = 0.72;

/// End of an error message: the nearest of the known names, or nothing if none is near.
pub(crate) fn hint<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let scored = known.into_iter().map(|name| (strsim::jaro_winkler(wanted, name), name));
    let near = scored.filter(|(score, _)| *score >= ALIKE);
    let nearest = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, name)| format!("; did you mean '{name}'?")).unwrap_or_default()
}

/// End of an error message: the hint, and the command that lists the known names.
pub(crate) fn see(hint: &str, list: &str) -> String {
    match hint {
        "" => format!("; see: {list}"),
        hint => format!("{hint} See: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = ["test_framework", "user_auth"];
        assert_eq!(hint("test_framwork", known), "; did you mean 'test_framework'?");
        assert_eq!(hint("user_auht", known), "; did you mean 'user_auth'?");
        assert_eq!(hint("zzz", known), "");
    }
}
