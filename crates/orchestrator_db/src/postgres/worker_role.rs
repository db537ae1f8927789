//! The login of a worker: what it is granted. What it sees is in the migration that makes the schema of its views.

/// Grants of a login, of which a name takes the place of `WORKER`.
const GRANTS: &str = include_str!("worker_role.sql");

/// Statements that make a login for workers: its rights are those of a worker, and no others. `None` for a name that would need
/// quotation marks.
pub fn worker_role_sql(name: &str) -> Option<String> {
    let mut chars = name.chars();
    let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_next = |c: char| is_first(c) || c.is_ascii_digit();
    let is_name =
        chars.next().is_some_and(is_first) && chars.all(is_next) && (1..=63).contains(&name.len());
    is_name.then(|| GRANTS.replace("WORKER", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_anything_else_makes_no_statements() {
        for bad in ["", "a b", "W1", "1a", "a;drop", "a\"b", "a'b", &"a".repeat(64)] {
            assert_eq!(worker_role_sql(bad), None, "{bad}");
        }
        let sql = worker_role_sql("worker_1").expect("a name");
        assert!(sql.contains("TO worker_1;") && !sql.contains("WORKER"), "{sql}");
    }
}
