//! Key stores of Java: finds out which of the two formats a file has, and reads it.
//!
//! Java reads both under either name (`keystore.type.compat`), so `store_type` decides nothing here either.

use crate::stored::{Store, StoreError};
use crate::{jks, pkcs12};

/// Reads a store. `password`: `None` if there is none, which leaves its integrity unchecked and private keys out.
pub fn read(bytes: &[u8], password: Option<&str>, iterations_max: u32) -> Result<Store, StoreError> {
    if bytes.starts_with(&jks::MAGIC) {
        jks::read(bytes, password)
    } else if bytes.starts_with(&jks::MAGIC_JCEKS) {
        Err(StoreError::Unsupported("JCEKS".to_owned()))
    } else {
        pkcs12::read(bytes, password, iterations_max)
    }
}
