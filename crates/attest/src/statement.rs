//! in-toto statements, version 1: a typed predicate about subjects.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dsse::{EnvelopeFault, Verified};

const STATEMENT_V1: &str = "https://in-toto.io/Statement/v1";

/// A predicate with its own type, so that one is never parsed as another.
pub trait Predicate: Serialize + DeserializeOwned {
    const TYPE: &'static str;
}

/// A predicate about subjects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement<P> {
    /// Always `STATEMENT_V1`.
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<Resource>,
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: P,
}

/// A resource, by name and digest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Location or identity, as a URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its digests, by algorithm (`sha256`, `gitCommit`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digest: BTreeMap<String, String>,
    #[serde(default, rename = "mediaType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Value>,
}

impl Resource {
    pub fn new(name: &str, algorithm: &str, digest: &str) -> Self {
        let digest = BTreeMap::from([(algorithm.to_owned(), digest.to_owned())]);
        Self { name: Some(name.to_owned()), digest, ..Self::default() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.annotations.insert(name.to_owned(), value);
        self
    }

    pub fn sha256(&self) -> Option<&str> {
        self.digest.get("sha256").map(String::as_str)
    }
}

impl<P: Predicate> Statement<P> {
    pub fn new(subject: Vec<Resource>, predicate: P) -> Self {
        let (kind, predicate_type) = (STATEMENT_V1.to_owned(), P::TYPE.to_owned());
        Self { kind, subject, predicate_type, predicate }
    }

    /// Parses verified bytes as this kind of statement and no other.
    pub fn read(verified: &Verified) -> Result<Self, EnvelopeFault> {
        // The types are checked first: a wrong type explains more than the first field that does not fit.
        let names: StatementTypes = verified.parse()?;
        if (names.kind.as_str(), names.predicate_type.as_str()) != (STATEMENT_V1, P::TYPE) {
            return Err(EnvelopeFault::Payload(format!(
                "it is a '{}' about '{}', not a '{STATEMENT_V1}' about '{}'",
                names.kind.escape_debug(),
                names.predicate_type.escape_debug(),
                P::TYPE
            )));
        }
        let statement: Self = verified.parse()?;
        match statement.subject.is_empty() {
            true => Err(EnvelopeFault::Payload("it is about nothing".to_owned())),
            false => Ok(statement),
        }
    }

    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

#[derive(Deserialize)]
struct StatementTypes {
    #[serde(rename = "_type")]
    kind: String,
    #[serde(rename = "predicateType")]
    predicate_type: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsse::Envelope;
    use crate::key::SecretKey;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Colour(String);

    impl Predicate for Colour {
        const TYPE: &'static str = "https://example.com/colour";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Smell(String);

    impl Predicate for Smell {
        const TYPE: &'static str = "https://example.com/smell";
    }

    fn verified<P: Predicate>(statement: &Statement<P>) -> Verified {
        let key = SecretKey::generate().unwrap();
        let mut envelope = Envelope::unsigned(&statement.to_bytes().unwrap());
        envelope.sign(&key).unwrap();
        envelope.verify([&key.public()]).unwrap()
    }

    #[test]
    fn a_statement_is_not_read_as_one_of_another_kind_though_its_shape_fits() {
        let subject = vec![Resource::new("rose", "sha256", "00")];
        let said = Statement::new(subject, Colour("red".to_owned()));
        assert_eq!(Statement::<Colour>::read(&verified(&said)).unwrap(), said);
        let fault = Statement::<Smell>::read(&verified(&said)).unwrap_err().to_string();
        assert!(fault.contains("colour") && fault.contains("smell"), "{fault}");
    }

    #[test]
    fn a_statement_about_nothing_is_none() {
        let said = Statement::new(Vec::new(), Colour("red".to_owned()));
        assert!(Statement::<Colour>::read(&verified(&said)).is_err());
    }
}
