//! Promises about statements, keys and bundles, from outside.

mod bundle;
mod openssl;
mod sample;
mod schema;
mod ssh_keygen;
