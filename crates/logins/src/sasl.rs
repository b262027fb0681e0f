//! The SASL PLAIN token of the native protocol.

/// Name and password of a token (`PasswordAuthenticator.PlainTextSaslAuthenticator.decodeCredentials`): the token is
/// read from its end, and a name before the first NUL is ignored.
///
/// # Errors
/// Cassandra's text for BAD_CREDENTIALS.
pub fn sasl_plain(token: &[u8]) -> Result<(String, String), String> {
    let (mut user, mut password) = (None, None);
    let mut end = token.len();
    for (at, _) in token.iter().enumerate().rev().filter(|(_, byte)| **byte == 0) {
        let part = token.get(at + 1..end).unwrap_or_default();
        if password.is_none() {
            password = Some(part);
        } else if user.is_none() {
            user = Some(part);
        } else {
            return Err(
                "Credential format error: username or password is empty or contains NUL(\\0) character"
                    .to_owned(),
            );
        }
        end = at;
    }
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    let missing = |what: &str| format!("{what} must not be null");
    let password = password.filter(|part| !part.is_empty()).ok_or_else(|| missing("Password"))?;
    let user = user.filter(|part| !part.is_empty()).ok_or_else(|| missing("Authentication ID"))?;
    Ok((text(user), text(password)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens and answers of Cassandra 5.0.9.
    #[test]
    fn tokens_are_read_from_their_end() {
        let good = Ok(("cassandra".to_owned(), "pw".to_owned()));
        let format =
            || Err("Credential format error: username or password is empty or contains NUL(\\0) character");
        for (token, expected) in [
            (&b"\0cassandra\0pw"[..], good.clone()),
            (b"other\0cassandra\0pw", good),
            (b"cassandra\0pw", Err("Authentication ID must not be null")),
            (b"\0cassandra\0pw\0", format()),
            (b"\0\0cassandra\0pw", format()),
            (b"", Err("Password must not be null")),
            (b"cassandra", Err("Password must not be null")),
            (b"\0\0pw", Err("Authentication ID must not be null")),
            (b"\0cassandra\0", Err("Password must not be null")),
            (b"\0\xff\0\xfe", Ok(("\u{fffd}".to_owned(), "\u{fffd}".to_owned()))),
        ] {
            let decoded = sasl_plain(token);
            assert_eq!(decoded, expected.map_err(str::to_owned), "{token:?}");
        }
    }
}
