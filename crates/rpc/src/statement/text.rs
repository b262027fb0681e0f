//! Decompresses the text of a statement.

use crate::error::{Result, invalid};
use flate2::read::ZlibDecoder;
use helenus_cql::CqlError;
use helenus_engine::account;
use helenus_wire::thrift::Compression;
use std::io::Read;

/// Maximum bytes of a decompressed statement, equal to the maximum of a message.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// The bytes that are decompressed at a time.
const STEP_BYTES: usize = 64 << 10;

/// The text of a statement. The compression called GZIP is zlib's format.
pub(crate) fn text(query: &[u8], compression: Compression) -> Result<String> {
    let bytes = match compression {
        Compression::None => query.to_vec(),
        Compression::Gzip => inflated(query)?,
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => invalid("Input length = 1"),
    }
}

/// Decompresses zlib's format. Its length stands nowhere, and a short text may become a thousand times as long, so memory is asked for
/// step by step.
fn inflated(query: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = ZlibDecoder::new(query);
    let mut bytes = Vec::new();
    loop {
        account::reserve(&mut bytes, STEP_BYTES).map_err(CqlError::from)?;
        let read = decoder.by_ref().take(STEP_BYTES as u64 - 1).read_to_end(&mut bytes);
        match read {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() <= TEXT_BYTES_MAX => {}
            Ok(_) | Err(_) => return invalid("Error deflating query string."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::ZlibEncoder;
    use helenus_engine::account::{Scope, Share, Waits};

    use super::*;
    use crate::error::RpcError;

    fn deflated(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Level::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_deflated_comes_back_up_to_the_limit() {
        for length in [0, 1, STEP_BYTES - 1, STEP_BYTES, 3 * STEP_BYTES, TEXT_BYTES_MAX] {
            let text = vec![b' '; length];
            assert_eq!(inflated(&deflated(&text)).unwrap().len(), length);
        }
        assert!(inflated(&deflated(&vec![b' '; TEXT_BYTES_MAX + 1])).is_err());
        assert!(inflated(b"not deflated").is_err());
        assert!(inflated(&deflated(&[b' '; 100])[..8]).is_err());
    }

    #[test]
    fn a_text_that_becomes_long_is_not_inflated_where_nothing_may_wait() {
        let long = deflated(&vec![b' '; TEXT_BYTES_MAX]);
        assert!(long.len() < 20_000);
        let _scope = Scope::begin(Share::Requests, Waits::Never);
        assert!(matches!(inflated(&long), Err(RpcError::WouldBlock)));
        assert!(inflated(&deflated(&[b' '; 1000])).is_ok());
    }
}
