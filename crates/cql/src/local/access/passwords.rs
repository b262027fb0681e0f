//! Hashes of passwords: bcrypt in jBCrypt's form, `$2a$`, as Cassandra stores them.
//!
//! Hashing takes tens of milliseconds by design, so it is called only where blocking is allowed. bcrypt reads the first
//! 72 bytes of a password with a NUL behind it, and begins again where it is shorter: `a` and `a\0a` have the same hashes. So no
//! password may contain a NUL.

use bcrypt::{HashParts, Version};
use helenus_engine::Database;
use std::str::FromStr;

/// The cost of new hashes (`cassandra.auth_bcrypt_gensalt_log2_rounds`).
const COST: u32 = 10;

/// A hash with the cost of new ones, which belongs to no role.
pub(super) const OF_NOBODY: &str = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";

/// The costs that are accepted. jBCrypt takes up to 30; a login with that cost would occupy a thread for days, and a role
/// may set its own hash. Cost 16 takes some seconds.
const COSTS: std::ops::RangeInclusive<u32> = 4..=16;

/// What is said of a password that cannot be hashed.
pub(super) const NO_HASH: &str = "the password cannot be hashed: it contains the character NUL";

/// The hash of a password, with a new salt; `None` if it contains a NUL.
pub(super) fn hash(password: &str, database: &Database) -> Option<String> {
    if password.contains('\0') {
        return None;
    }
    let mut salt = [0; 16];
    database.host().random.fill(&mut salt);
    let parts = bcrypt::hash_with_salt(password, COST, salt).ok()?;
    Some(parts.format_for_version(Version::TwoA))
}

/// Whether a stored hash is that of a password. False for a text that is not a hash.
pub(super) fn matches(password: &str, stored: &str) -> bool {
    let Some(parts) = parts(stored).filter(|_| !password.contains('\0')) else { return false };
    let Ok(hashed) = bcrypt::hash_with_salt(password, parts.get_cost(), parts.get_salt_raw()) else {
        return false;
    };
    let (own, wanted) = (hashed.format_for_version(Version::TwoA), parts.format_for_version(Version::TwoA));
    // Compares all bytes, so that the time tells nothing.
    own.len() == wanted.len() && own.bytes().zip(wanted.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Whether a text is a hash that may be stored: jBCrypt reads `$2a$`, and neither `$2b$` nor `$2y$`.
pub(super) fn is_hash(text: &str) -> bool {
    parts(text).is_some()
}

fn parts(text: &str) -> Option<HashParts> {
    if !text.starts_with("$2a$") {
        return None;
    }
    HashParts::from_str(text).ok().filter(|parts| COSTS.contains(&parts.get_cost()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that Cassandra 5.0.9 stored or accepted.
    #[test]
    fn hashes_of_cassandra_are_read() {
        let stored = "$2a$10$mA7r0bdSvYSgg1Jh6Mu3/upOZp9.DPqYSKCP6q/Uq37In/yhiqLF2";
        assert!(matches("cassandra", stored));
        assert!(!matches("Cassandra", stored));
        assert!(!matches("", stored));
        assert!(is_hash("$2a$04$JSEVJfVYJoYTzM7vKuVAO.dHKS9ZGjV7vrCPJqxRPbYxyyLHPzQUu"));
        for wrong in [
            "",
            "cassandra",
            "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$2a$03$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$2a$17$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhW",
            "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWyy",
            "$2a$10$ä9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhW",
        ] {
            assert!(!is_hash(wrong), "{wrong}");
            assert!(!matches("x", wrong), "{wrong}");
        }
    }

    #[test]
    fn no_repetition_of_a_password_stands_for_it() {
        let stored = "$2a$10$mA7r0bdSvYSgg1Jh6Mu3/upOZp9.DPqYSKCP6q/Uq37In/yhiqLF2";
        for password in ["cassandra\0", "cassandra\0cassandra", "cassandra\0cassandra\0", "\0cassandra", "\0"]
        {
            assert!(!matches(password, stored), "{password:?}");
        }
    }

    #[test]
    fn a_hash_is_that_of_its_password_alone() {
        let machine = helenus_host::sim::Machine::new(1);
        let options = helenus_engine::DatabaseOptions::new("/db");
        let (database, _) = Database::open(machine.host(), options).unwrap();
        let long = "ä".repeat(100);
        for password in ["x", "", &long] {
            let stored = hash(password, &database).unwrap();
            assert!(stored.starts_with("$2a$10$") && stored.len() == 60, "{stored}");
            assert!(matches(password, &stored), "{password}");
            assert!(!matches("other", &stored), "{password}");
            assert_ne!(hash(password, &database).unwrap(), stored, "the salt is new each time");
        }
    }
}
