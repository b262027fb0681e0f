//! The values and limits of USING TIMESTAMP, TTL and TIMEOUT (`Attributes`, `ExpirationDateOverflowHandling`).

use crate::analysis::{Bindings, Bound, Markers, Receiver, Scope, Term};
use crate::error::{CqlError, Result};
use crate::plan::timeout::Timeout;
use crate::syntax::ast;
use helenus_engine::TIME_OF_DAY_MAX_S;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The greatest TTL: 20 years of 365 days.
pub(crate) const TTL_SECONDS_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// The latest time of expiry that files can hold, seconds.
pub(crate) const EXPIRY_SECONDS_MAX: i64 = TIME_OF_DAY_MAX_S;

/// The USING clause of a statement.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) timestamp: Option<Term>,
    pub(crate) ttl: Option<Term>,
    pub(crate) timeout: Option<Timeout>,
}

impl Attributes {
    /// Types the terms. For drivers, `names` are keyspace and table; for a batch the table is `[batch]`.
    pub(crate) fn prepare(
        using: &ast::Using<'_>,
        names: (&Arc<str>, &Arc<str>),
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Attributes> {
        let mut prepare = |term: Option<&ast::Term<'_>>, name: &str, ty: CqlType| {
            let receiver = Receiver {
                keyspace: names.0.clone(),
                table: names.1.clone(),
                name: name.into(),
                ty,
                key_position: None,
            };
            term.map(|term| Term::prepare(term, &receiver, scope, markers)).transpose()
        };
        let timestamp = prepare(using.timestamp.as_ref(), "[timestamp]", CqlType::BigInt)?;
        let ttl = prepare(using.ttl.as_ref(), "[ttl]", CqlType::Int)?;
        let timeout = prepare(using.timeout.as_ref(), Timeout::NAME, CqlType::Duration)?.map(Timeout);
        Ok(Attributes { timestamp, ttl, timeout })
    }

    /// The TTL of a write, seconds; 0 for none.
    pub(crate) fn ttl_s(&self, table: &Table, now_s: i64, bindings: &Bindings<'_>) -> Result<i32> {
        let default_s = table.options.default_time_to_live_s;
        let Some(term) = &self.ttl else {
            check_expiry(table, default_s, now_s, "default ")?;
            return Ok(default_s);
        };
        let ttl_s = match term.bind(bindings)? {
            Bound::Null => return Ok(0),
            Bound::Unset => return Ok(default_s),
            Bound::Bytes(bytes) => match bytes.first_chunk::<4>() {
                None => return Ok(0),
                Some(bytes) => i32::from_be_bytes(*bytes),
            },
        };
        if ttl_s < 0 {
            return Err(CqlError::Invalid(format!("A TTL must be greater or equal to 0, but was {ttl_s}")));
        }
        if ttl_s > TTL_SECONDS_MAX {
            return Err(CqlError::Invalid(format!(
                "ttl is too large. requested ({ttl_s}) maximum ({TTL_SECONDS_MAX})"
            )));
        }
        check_expiry(table, ttl_s, now_s, "")?;
        Ok(ttl_s)
    }
}

/// The timestamp of USING; `now_us` without one.
pub(crate) fn timestamp_of(term: Option<&Term>, now_us: i64, bindings: &Bindings<'_>) -> Result<i64> {
    let Some(term) = term else { return Ok(now_us) };
    let timestamp_us = match term.bind(bindings)? {
        Bound::Unset => now_us,
        Bound::Null => return Err(CqlError::Invalid("Invalid null value of timestamp".into())),
        Bound::Bytes(bytes) => match bytes.first_chunk::<8>() {
            Some(bytes) => i64::from_be_bytes(*bytes),
            None => return Err(CqlError::Invalid("Invalid empty value of timestamp".into())),
        },
    };
    Ok(timestamp_us)
}

/// Rejects `i64::MIN`, which means no timestamp (`UpdateParameters`).
pub(crate) fn check_timestamp(timestamp_us: i64) -> Result<()> {
    if timestamp_us == i64::MIN {
        return Err(CqlError::Invalid(format!(
            "Out of bound timestamp, must be in [{}, {}]",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(())
}

fn check_expiry(table: &Table, ttl_s: i32, now_s: i64, which: &str) -> Result<()> {
    if ttl_s == 0 || now_s.saturating_add(i64::from(ttl_s)) <= EXPIRY_SECONDS_MAX {
        return Ok(());
    }
    Err(CqlError::Invalid(format!(
        "Request on table {}.{} with {which}ttl of {ttl_s} seconds exceeds maximum supported expiration date of \
         2106-02-07T06:28:13+00:00. In order to avoid this use a lower TTL, change the expiration date overflow \
         policy or upgrade to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for \
         more details.",
        table.keyspace, table.name
    )))
}

/// The time at which data written at `now_s` with this TTL expires.
pub(crate) fn expires_s(now_s: i64, ttl_s: i32) -> i64 {
    now_s.saturating_add(i64::from(ttl_s)).min(EXPIRY_SECONDS_MAX)
}
