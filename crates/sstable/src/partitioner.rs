//! The partitioners, which define the order of a table's partitions. Statistics.db names a file's partitioner.
//!
//! Reads and writes support only Murmur3Partitioner. The file tools also read tables of the others, from start to end,
//! and scrub writes them in Murmur3's order. Sources: `RandomPartitioner`, `ByteOrderedPartitioner`,
//! `OrderPreservingPartitioner`.

use helenus_model::byte_comparable::decorated_key;
use helenus_model::token::KeyHash;

const PACKAGE: &str = "org.apache.cassandra.dht.";

/// A partitioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// Orders by the Murmur3 hash of the key, as in every table of Helenus.
    Murmur3,
    /// Orders by the MD5 of the key.
    Random,
    /// Orders by the key's bytes.
    ByteOrdered,
    /// Orders by the key as text.
    OrderPreserving,
    /// Another: that of a secondary index, which orders by the indexed values, or one that Cassandra does not have.
    Other,
}

impl Partitioner {
    /// The partitioner with this class name.
    pub fn of(class: &str) -> Partitioner {
        match class.strip_prefix(PACKAGE).unwrap_or(class) {
            "Murmur3Partitioner" => Partitioner::Murmur3,
            "RandomPartitioner" => Partitioner::Random,
            "ByteOrderedPartitioner" => Partitioner::ByteOrdered,
            "OrderPreservingPartitioner" => Partitioner::OrderPreserving,
            _ => Partitioner::Other,
        }
    }

    /// The bytes by which a partition with this key is ordered; `None` if that is not known.
    pub fn position(self, key: &[u8]) -> Option<Vec<u8>> {
        match self {
            Partitioner::Murmur3 => {
                let mut position = Vec::new();
                decorated_key(KeyHash::of(key).token, key, &mut position);
                Some(position)
            }
            Partitioner::Random => Some([&random_token(key).to_be_bytes(), key].concat()),
            Partitioner::ByteOrdered => Some(key.to_vec()),
            // Java compares strings by their UTF-16 units.
            Partitioner::OrderPreserving => {
                let text = std::str::from_utf8(key).ok()?;
                Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
            }
            Partitioner::Other => None,
        }
    }

    /// The token of a key as tools print it; `None` if that is not known.
    pub fn token_text(self, key: &[u8]) -> Option<String> {
        match self {
            Partitioner::Murmur3 => Some(KeyHash::of(key).token.0.to_string()),
            Partitioner::Random => Some(random_token(key).to_string()),
            Partitioner::ByteOrdered => Some(key.iter().map(|byte| format!("{byte:02x}")).collect()),
            Partitioner::OrderPreserving => std::str::from_utf8(key).ok().map(str::to_owned),
            Partitioner::Other => None,
        }
    }
}

/// The absolute value of the MD5 as a signed number (`FBUtilities.hashToBigInteger`).
fn random_token(key: &[u8]) -> u128 {
    i128::from_be_bytes(md5::compute(key).0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cassandras() {
        // RandomPartitioner.instance.getToken of "a" and "abc" in Cassandra 5.0.9, by their MD5.
        assert_eq!(Partitioner::Random.token_text(b"a").unwrap(), random_token(b"a").to_string());
        assert_eq!(random_token(b"a"), 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661);
        assert_eq!(random_token(b"abc"), 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.wrapping_neg());
        assert_eq!(Partitioner::ByteOrdered.token_text(b"\x01\xff").unwrap(), "01ff");
        assert_eq!(Partitioner::of("org.apache.cassandra.dht.LocalPartitioner"), Partitioner::Other);
    }
}
