//! The decoders of files, by themselves: for the fuzz targets. `iterations_max` bounds the derivation of keys from passwords.

use crate::{pem, store};

/// The number of certificates in a text of PEM.
///
/// # Errors
/// A block is not Base64.
pub fn pem_certificates(text: &str) -> Result<usize, String> {
    pem::certificates(text).map(|found| found.len())
}

/// Whether a text of PEM has a private key.
///
/// # Errors
/// It is not Base64, or the password does not open it.
pub fn pem_private_key(text: &str, password: Option<&str>, iterations_max: u32) -> Result<bool, String> {
    pem::private_key_within(text, password, iterations_max).map(|key| key.is_some())
}

/// Whether a key store has a private key that the password opens, and the number of its certificates that may be trusted.
///
/// # Errors
/// It is no store, is damaged, or has another password.
pub fn store(bytes: &[u8], password: Option<&str>, iterations_max: u32) -> Result<(bool, usize), String> {
    let read = store::read(bytes, password, iterations_max);
    read.map(|store| (matches!(store.key, Ok(Some(_))), store.named.len() + store.unmarked.len()))
        .map_err(|error| error.reason("password"))
}
