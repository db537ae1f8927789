//! The published shape of the project's own predicate is the shape that is written.

use serde_json::{Value, json};

use crate::sample::bottle_run;

fn validator() -> jsonschema::Validator {
    let text = include_str!("../../../../schemas/bottle-run.v1.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).expect("JSON")).expect("a schema")
}

#[test]
fn a_run_fits_its_schema_and_every_field_of_it_is_described() {
    let document = json!(bottle_run().predicate);
    let faults: Vec<String> = validator()
        .iter_errors(&document)
        .map(|fault| format!("{}: {fault}", fault.instance_path))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_run_with_a_field_less_or_more_or_of_another_kind_does_not_fit() {
    let validator = validator();
    let whole = json!(bottle_run().predicate);
    let names: Vec<String> = whole.as_object().expect("an object").keys().cloned().collect();
    for name in names {
        let mut less = whole.clone();
        less.as_object_mut().expect("an object").remove(&name);
        assert!(!validator.is_valid(&less), "without {name}");
        let mut odd = whole.clone();
        odd[&name] = json!(0.5);
        assert!(!validator.is_valid(&odd), "an odd {name}");
    }
    let mut more: Value = whole;
    more["more"] = json!(1);
    assert!(!validator.is_valid(&more));
}
