//! CRC32 as Cassandra uses it (`java.util.zip.CRC32`): the ISO-HDLC polynomial.

/// CRC32 of some bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A CRC32 that is computed piece by piece.
#[derive(Default)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}
