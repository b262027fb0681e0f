//! CRC32 as Cassandra uses it (`java.util.zip.CRC32`): the ISO-HDLC polynomial.

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;

/// CRC32 of some bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32IsoHdlc, bytes) as u32
}

/// A CRC32 over pieces.
pub struct Crc32(crc_fast::Digest);

impl Default for Crc32 {
    fn default() -> Crc32 {
        Crc32(crc_fast::Digest::new(Crc32IsoHdlc))
    }
}

impl Crc32 {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}
