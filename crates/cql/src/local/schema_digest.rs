//! The first line of a `schema.cql` written by this server: a digest of the statements after it.
//!
//! Without a checksum a flipped bit could change the schema: another column name, another TTL. For other programs the
//! line is a comment. A text without it, as Cassandra writes it, is accepted unchecked.

use crate::error::{CqlError, Result};

/// Begins the line; the digest follows in hexadecimal.
const DIGEST_LINE: &str = "-- MD5 of what follows: ";

/// Adds the line before the statements.
pub fn add_schema_digest(statements: &str) -> String {
    format!("{DIGEST_LINE}{:x}\n{statements}", md5::compute(statements))
}

/// The statements after the line, or the whole text without one.
///
/// # Errors
/// The digest does not match the statements.
pub fn check_schema_digest(text: &str) -> Result<&str> {
    let Some(sealed) = text.strip_prefix(DIGEST_LINE) else { return Ok(text) };
    match sealed.split_once('\n') {
        Some((digest, statements)) if digest == format!("{:x}", md5::compute(statements)) => Ok(statements),
        _ => Err(CqlError::Invalid(
            "the statements are not those that its first line was written for; if somebody changed them on purpose, \
             remove that line"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_in_sealed_statements_is_refused_or_leaves_them_as_they_were() {
        let statements = "CREATE TABLE k.t (k int PRIMARY KEY) WITH default_time_to_live = 60;\n";
        let sealed = add_schema_digest(statements);
        assert_eq!(check_schema_digest(&sealed).unwrap(), statements);
        assert_eq!(check_schema_digest(statements).unwrap(), statements, "one without the line");
        let mut refused = 0;
        for at in 0..sealed.len() * 8 {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            // The file's reader also decodes the bytes like this.
            let text = String::from_utf8_lossy(&bytes);
            match check_schema_digest(&text) {
                Ok(found) => assert!(found.ends_with(&format!("\n{statements}")), "bit {at}: {found}"),
                Err(_) => refused += 1,
            }
        }
        // All flips are detected except those in the fixed text that begins the line.
        assert_eq!(refused, (sealed.len() - DIGEST_LINE.len()) * 8);
    }
}
