//! Hashes of passwords: bcrypt in jBCrypt's form, `$2a$`, as Cassandra stores them.
//!
//! Hashing takes tens of milliseconds by design, so it is called only where blocking is allowed. bcrypt reads the first
//! 72 bytes of a password with a NUL behind it, and begins again where it is shorter: `a` and `a\0a` have the same hashes. So no
//! password may contain a NUL, and no new one may be longer. A stored hash may be of a longer one, which Cassandra takes: whoever
//! knows its first 72 bytes logs in.

use crate::error::{CqlError, Result};
use bcrypt::{HashParts, Version};
use helenus_engine::Database;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The cost of new hashes, if none is chosen: that of Cassandra (`cassandra.auth_bcrypt_gensalt_log2_rounds`).
pub(super) const COST_DEFAULT: u32 = 10;

/// The costs that may be chosen. Each step doubles the time of a check: cost 10 takes some 60 ms, cost 14 a second, in which a
/// thread that checks logins does nothing else. Below 10 a stolen hash is guessed too fast.
pub const PASSWORD_COSTS: RangeInclusive<u32> = 10..=14;

/// The most bytes of a password: bcrypt does not read further.
const BYTES_MAX: usize = 72;

/// The highest cost of a hash that a role may set which is no superuser. A check of cost 12 takes four times as long as one
/// of cost 10, about half a second; a role that could set cost 16 would occupy all threads that check
/// logins with its own right password.
pub(super) const COST_OF_ROLES_MAX: u32 = 12;

/// The least cost of a hash that a role may set which is no superuser. Cassandra takes 4, which is guessed 64 times as fast.
pub(super) const COST_OF_ROLES_MIN: u32 = *PASSWORD_COSTS.start();

/// The costs that are accepted. jBCrypt takes up to 30; a login with that cost would occupy a thread for days. Cost 16 takes
/// some seconds.
const COSTS: RangeInclusive<u32> = 4..=16;

/// The hash of a password, with a new salt.
///
/// # Errors
/// `Invalid` for a password that cannot be hashed whole.
pub(super) fn hash(password: &str, cost: u32, database: &Database) -> Result<String> {
    if password.len() > BYTES_MAX {
        return Err(CqlError::Invalid(format!(
            "the password has {} bytes, and bcrypt reads {BYTES_MAX}: any other with the same beginning would be as good; give one of \
             at most {BYTES_MAX} bytes",
            password.len()
        )));
    }
    stored_form(password, cost, database).ok_or_else(|| {
        CqlError::Invalid("the password cannot be hashed: it contains the character NUL".to_owned())
    })
}

/// The hash of a password that has just been checked, with a new salt and another cost. It may be one that Cassandra cut.
pub(super) fn hash_again(password: &str, cost: u32, database: &Database) -> Option<String> {
    stored_form(password, cost, database)
}

fn stored_form(password: &str, cost: u32, database: &Database) -> Option<String> {
    if password.contains('\0') {
        return None;
    }
    let mut salt = [0; 16];
    database.host().random.fill(&mut salt);
    let parts = bcrypt::hash_with_salt(password, cost, salt).ok()?;
    Some(parts.format_for_version(Version::TwoA))
}

/// A hash with the cost of new ones, which belongs to no role.
pub(super) fn of_nobody(cost: u32) -> String {
    format!("$2a${cost:02}$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy")
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
        let long = "ä".repeat(36);
        for password in ["x", "", &long] {
            let stored = hash(password, COST_DEFAULT, &database).unwrap();
            assert!(stored.starts_with("$2a$10$") && stored.len() == 60, "{stored}");
            assert!(matches(password, &stored), "{password}");
            assert!(!matches("other", &stored), "{password}");
            assert_ne!(hash(password, COST_DEFAULT, &database).unwrap(), stored, "the salt is new each time");
        }
    }
    #[test]
    fn a_password_that_bcrypt_would_cut_is_refused_and_a_stored_hash_of_one_counts() {
        let machine = helenus_host::sim::Machine::new(1);
        let options = helenus_engine::DatabaseOptions::new("/db");
        let (database, _) = Database::open(machine.host(), options).unwrap();
        for (long, bytes) in [("a".repeat(73), "73"), ("ä".repeat(37), "74"), ("🔑".repeat(40), "160")] {
            let refused = hash(&long, COST_DEFAULT, &database).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("has {bytes} bytes")) && refused.contains("at most 72"),
                "{refused}"
            );
            assert!(!refused.contains(&long), "the password is not shown");
            let stored = hash_again(&long, 4, &database).unwrap();
            assert!(matches(&long, &stored));
        }
        assert!(hash("a\0b", COST_DEFAULT, &database).unwrap_err().to_string().contains("NUL"));
        assert_eq!(
            PASSWORD_COSTS.map(|new| cost(&of_nobody(new))).collect::<Vec<_>>(),
            PASSWORD_COSTS.map(Some).collect::<Vec<_>>()
        );
    }
}
