//! Names of holders: `host/process`. Versions before hosts had names wrote the process alone.

/// The host of a holder; `None` for a holder of a version that knew one host only.
pub(crate) fn host_of(holder: &str) -> Option<&str> {
    holder.split_once('/').map(|(host, _)| host)
}

/// True if two holders are processes of one host. A holder without a host was one of the host that has the database.
pub(crate) fn are_of_one_host(one: &str, other: &str) -> bool {
    match (host_of(one), host_of(other)) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_host_are_known_by_its_name() {
        for (one, other, same) in [
            ("a/1", "a/2", true),
            ("a/1", "b/1", false),
            ("a/1", "ab/1", false),
            ("4711-20261115_080000", "a/1", true),
        ] {
            assert_eq!(are_of_one_host(one, other), same, "{one} {other}");
        }
        assert_eq!(host_of("a/1"), Some("a"));
        assert_eq!(host_of("4711-20261115_080000"), None);
    }
}
