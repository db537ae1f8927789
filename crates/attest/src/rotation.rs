//! Rotation from one key to the next: a statement that both sign. The old key's signature extends trust in it
//! to the new one; the new key's extends trust in the other direction. With one signature alone a stranger
//! could put a key of their own before or after ours.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dsse::{Envelope, EnvelopeFault};
use crate::key::{KeyFault, KeyId, PublicKey, SecretKey};
use crate::statement::{Predicate, Resource, Statement};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// The previous key, as PEM.
    pub old: String,
    /// The new key, as PEM.
    pub new: String,
    pub rotated_at: Timestamp,
}

impl Predicate for Rotation {
    const TYPE: &'static str = "https://bottleworks.dev/key-rotation/v1";
}

#[derive(Debug, thiserror::Error)]
pub enum RotationFault {
    #[error(transparent)]
    Key(#[from] KeyFault),
    #[error(transparent)]
    Envelope(#[from] EnvelopeFault),
    #[error("the statement could not be written: {0}")]
    Json(#[from] serde_json::Error),
}

pub fn rotate(old: &SecretKey, new: &SecretKey, now: Timestamp) -> Result<Envelope, RotationFault> {
    let rotation = Rotation { old: old.public().pem()?, new: new.public().pem()?, rotated_at: now };
    let subject = Resource::new("signing key", "sha256", new.public().id().as_str());
    let mut envelope = Envelope::unsigned(&Statement::new(vec![subject], rotation).to_bytes()?);
    envelope.sign(old)?;
    envelope.sign(new)?;
    Ok(envelope)
}

/// The trusted keys, with the times at which some were retired.
#[derive(Debug, Clone)]
pub struct TrustedKeys {
    keys: BTreeMap<KeyId, PublicKey>,
    retired: BTreeMap<KeyId, Timestamp>,
}

impl TrustedKeys {
    /// Starts with a key that is trusted independently (pinned, or this host's), and follows rotations from
    /// it in both directions. Rotations that do not verify are ignored.
    pub fn from_root(root: PublicKey, rotations: &[Envelope]) -> Self {
        let mut trust =
            Self { keys: BTreeMap::from([(root.id(), root)]), retired: BTreeMap::new() };
        while rotations.iter().any(|envelope| trust.follow(envelope)) {}
        trust
    }

    /// Follows a rotation, and returns whether it added anything.
    fn follow(&mut self, envelope: &Envelope) -> bool {
        let Some((old, new, at)) = self.read(envelope) else { return false };
        let before = (self.keys.len(), self.retired.len());
        self.retired.entry(old.id()).or_insert(at);
        self.keys.insert(old.id(), old);
        self.keys.insert(new.id(), new);
        before != (self.keys.len(), self.retired.len())
    }

    /// Verifies and parses a rotation. A trusted key must have signed the bytes; only then are they parsed,
    /// and the other key must have signed them as well.
    fn read(&self, envelope: &Envelope) -> Option<(PublicKey, PublicKey, Timestamp)> {
        let verified = envelope.verify(self.keys.values()).ok()?;
        let rotation = Statement::<Rotation>::read(&verified).ok()?.predicate;
        let old = PublicKey::parse_pem(&rotation.old).ok()?;
        let new = PublicKey::parse_pem(&rotation.new).ok()?;
        let known = [&old, &new].iter().any(|key| *verified.keyid() == key.id());
        let both = [&old, &new].into_iter().all(|key| envelope.verify([key]).is_ok());
        (known && both).then_some((old, new, rotation.rotated_at))
    }

    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.values()
    }

    /// Returns the time at which a key was replaced. Its signatures about later runs are not trusted.
    pub fn retired_at(&self, key: &KeyId) -> Option<Timestamp> {
        self.retired.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SecretKey {
        SecretKey::generate().unwrap()
    }

    fn hand_over(old: &SecretKey, new: &SecretKey) -> Envelope {
        rotate(old, new, "2025-01-15T12:00:00Z".parse().unwrap()).unwrap()
    }

    fn trusts(trust: &TrustedKeys, key: &SecretKey) -> bool {
        trust.keys().any(|known| *known == key.public())
    }

    #[test]
    fn rotations_are_followed_forwards_and_backwards_in_any_order() {
        let (a, b, c) = (key(), key(), key());
        let list = [hand_over(&b, &c), hand_over(&a, &b)];
        for root in [&a, &b, &c] {
            let trust = TrustedKeys::from_root(root.public(), &list);
            assert!([&a, &b, &c].into_iter().all(|key| trusts(&trust, key)));
            assert!(trust.retired_at(&a.public().id()).is_some());
            assert!(trust.retired_at(&c.public().id()).is_none());
        }
    }

    #[test]
    fn a_stranger_cannot_put_a_key_before_or_behind_ours() {
        let (ours, stranger) = (key(), key());
        for (old, new) in [(&stranger, &ours), (&ours, &stranger)] {
            let mut forged = hand_over(old, new);
            forged.signatures.retain(|line| line.keyid == stranger.public().id());
            let trust = TrustedKeys::from_root(ours.public(), &[forged]);
            assert!(!trusts(&trust, &stranger));
        }
    }

    #[test]
    fn a_key_that_is_trusted_cannot_speak_for_two_others() {
        let (ours, one, two) = (key(), key(), key());
        let mut forged = hand_over(&one, &two);
        forged.sign(&ours).unwrap();
        let trust = TrustedKeys::from_root(ours.public(), &[forged]);
        assert!(!trusts(&trust, &one) && !trusts(&trust, &two));
    }
}
