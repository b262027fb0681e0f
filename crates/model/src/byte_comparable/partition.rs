//! Positions of partitions: the token, then the whole key, because keys may share a token (`DecoratedKey`).

use super::source::Source;
use super::{GT_NEXT_COMPONENT, LT_NEXT_COMPONENT, NEXT_COMPONENT, TERMINATOR, escape};
use crate::token::Token;
use crate::types::TypeError;

/// Appends the position of a partition.
pub fn decorated_key(token: Token, key: &[u8], out: &mut Vec<u8>) {
    token_and_key(token, key, out);
    out.push(TERMINATOR);
}

/// Appends the position just before or after a partition.
pub fn decorated_key_bound(token: Token, key: &[u8], before: bool, out: &mut Vec<u8>) {
    token_and_key(token, key, out);
    out.push(if before { LT_NEXT_COMPONENT } else { GT_NEXT_COMPONENT });
}

/// Appends the position before or after all partitions of a token (`Token.KeyBound`). The smallest token has only the
/// position before it (`Token.maxKeyBound`). As the end of a range it means the end of the ring, which the caller must
/// handle itself.
pub fn token_bound(token: Token, before: bool, out: &mut Vec<u8>) {
    let before = before || token == Token::MIN;
    out.push(NEXT_COMPONENT);
    put_token(token, out);
    out.push(if before { LT_NEXT_COMPONENT } else { GT_NEXT_COMPONENT });
}

fn token_and_key(token: Token, key: &[u8], out: &mut Vec<u8>) {
    out.reserve(12 + key.len());
    out.push(NEXT_COMPONENT);
    put_token(token, out);
    out.push(NEXT_COMPONENT);
    escape::encode(key, out);
}

fn put_token(token: Token, out: &mut Vec<u8>) {
    out.extend_from_slice(&(token.0 ^ i64::MIN).to_be_bytes());
}

/// Decodes the position of a partition: returns its token and appends its key to `key`.
///
/// # Errors
/// [`TypeError::Ordered`] if `encoded` is not the whole position of a partition.
pub fn decode_decorated_key(encoded: &[u8], key: &mut Vec<u8>) -> Result<Token, TypeError> {
    let mut source = Source::new(encoded, 0);
    let expect = |byte, source: &mut Source<'_>| match source.next()? {
        found if found == byte => Ok(()),
        _ => Err(source.error("no position of a partition")),
    };
    expect(NEXT_COMPONENT, &mut source)?;
    let token = Token(i64::from_be_bytes(source.array()?) ^ i64::MIN);
    expect(NEXT_COMPONENT, &mut source)?;
    escape::decode(&mut source, key)?;
    expect(TERMINATOR, &mut source)?;
    if source.is_at_end() {
        Ok(token)
    } else {
        Err(source.error("bytes after the end of a partition's position"))
    }
}
