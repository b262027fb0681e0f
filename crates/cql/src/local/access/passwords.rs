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

/// The highest cost of a hash that a role may set which is no superuser. A check of cost 12 takes four times as long as one
/// of the server's own hashes, about half a second; a role that could set cost 16 would occupy all threads that check
/// logins with its own right password.
pub(super) const COST_OF_ROLES_MAX: u32 = 12;

/// The costs that are accepted. jBCrypt takes up to 30; a login with that cost would occupy a thread for days. Cost 16 takes
/// some seconds.
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

/// The cost of a hash that may be stored; `None` for another text. jBCrypt reads `$2a$`, and neither `$2b$` nor `$2y$`.
pub(super) fn cost(text: &str) -> Option<u32> {
    parts(text).map(|parts| parts.get_cost())
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
        assert_eq!(cost("$2a$04$JSEVJfVYJoYTzM7vKuVAO.dHKS9ZGjV7vrCPJqxRPbYxyyLHPzQUu"), Some(4));
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
            assert_eq!(cost(wrong), None, "{wrong}");
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
