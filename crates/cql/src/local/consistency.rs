//! Consistency levels that do not go with a statement (`ConsistencyLevel.validateForRead`, `validateForWrite`). One node
//! holds every replica, so that any other level is reached by the one answer.

use crate::error::{CqlError, Result};
use helenus_model::schema::Table;

const ANY: u16 = 0x00;
const SERIAL: u16 = 0x08;
const LOCAL_SERIAL: u16 = 0x09;

/// Of a SELECT.
pub(super) fn check_read(consistency: u16) -> Result<()> {
    match consistency {
        ANY => Err(CqlError::Invalid("ANY ConsistencyLevel is only supported for writes".to_owned())),
        _ => Ok(()),
    }
}

/// Of an INSERT, UPDATE or DELETE without a condition.
pub(super) fn check_write(consistency: u16) -> Result<()> {
    match consistency {
        SERIAL | LOCAL_SERIAL => {
            Err(CqlError::Invalid("You must use conditional updates for serializable writes".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Of an update of counters (`validateCounterForWrite`).
pub(super) fn check_counting(consistency: u16, table: &Table) -> Result<()> {
    match consistency {
        ANY => Err(CqlError::Invalid(format!(
            "Consistency level ANY is not yet supported for counter table {}",
            table.name
        ))),
        SERIAL | LOCAL_SERIAL => {
            Err(CqlError::Invalid("Counter operations are inherently non-serializable".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Of a write that must read what it changes (`readRequiredLists`).
pub(super) fn check_read_before_write(consistency: u16) -> Result<()> {
    match consistency {
        ANY => Err(CqlError::Invalid(
            "Write operation require a read but consistency ANY is not supported on reads".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Of a conditional write: of its condition, SERIAL if none was given, and of its writing (`validateForCas`,
/// `validateForCasCommit`).
pub(super) fn check_conditional(consistency: u16, serial: Option<u16>) -> Result<()> {
    if !matches!(serial.unwrap_or(SERIAL), SERIAL | LOCAL_SERIAL) {
        return Err(CqlError::Invalid(
            "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL".to_owned(),
        ));
    }
    let name = match consistency {
        SERIAL => "SERIAL",
        LOCAL_SERIAL => "LOCAL_SERIAL",
        _ => return Ok(()),
    };
    Err(CqlError::Invalid(format!(
        "{name} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted \
         but I don't care how many replicas commit it for non-SERIAL reads\""
    )))
}
