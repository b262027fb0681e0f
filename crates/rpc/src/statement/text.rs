//! Decompresses the text of a statement.

use crate::error::{Result, invalid};
use flate2::read::ZlibDecoder;
use helenus_wire::thrift::Compression;
use std::io::Read;

/// Maximum bytes of a decompressed statement, equal to the maximum of a message.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The text of a statement. The compression called GZIP is zlib's format.
pub(crate) fn text(query: &[u8], compression: Compression) -> Result<String> {
    let bytes = match compression {
        Compression::None => query.to_vec(),
        Compression::Gzip => {
            let mut bytes = Vec::new();
            let read = ZlibDecoder::new(query).take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
            if read.is_err() || bytes.len() as u64 > TEXT_BYTES_MAX {
                return invalid("Error deflating query string.");
            }
            bytes
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => invalid("Input length = 1"),
    }
}
