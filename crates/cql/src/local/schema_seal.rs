//! The first line of a `schema.cql` of ours: a digest of the statements behind it.
//!
//! What no checksum covers, a flipped bit would turn into another table: another column's name, another time to live. To
//! everybody else the line is a comment, and a text without it, as Cassandra writes it, is taken as it is.

use crate::error::{CqlError, Result};

/// Begins the line; the digest in hexadecimal digits follows.
const SEAL: &str = "-- MD5 of what follows: ";

/// Statements with the line before them.
pub fn seal_schema(statements: &str) -> String {
    format!("{SEAL}{:x}\n{statements}", md5::compute(statements))
}

/// The statements behind the line, if there is one.
///
/// # Errors
/// Statements that the line is not of.
pub fn unseal_schema(text: &str) -> Result<&str> {
    let Some(sealed) = text.strip_prefix(SEAL) else { return Ok(text) };
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
        let sealed = seal_schema(statements);
        assert_eq!(unseal_schema(&sealed).unwrap(), statements);
        assert_eq!(unseal_schema(statements).unwrap(), statements, "one without the line");
        let mut refused = 0;
        for at in 0..sealed.len() * 8 {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            // As the reader of the file makes a text of it.
            let text = String::from_utf8_lossy(&bytes);
            match unseal_schema(&text) {
                Ok(found) => assert!(found.ends_with(&format!("\n{statements}")), "bit {at}: {found}"),
                Err(_) => refused += 1,
            }
        }
        // All but those of the words that begin the line.
        assert_eq!(refused, (sealed.len() - SEAL.len()) * 8);
    }
}
