//! Refuses consistency levels that a statement does not allow (`ConsistencyLevel.validateForRead`, `validateForWrite`).
//! The node has every replica, so its answer satisfies every other level.

use crate::error::{CqlError, Result};
use helenus_model::schema::Table;

const ANY: u16 = 0x00;
const SERIAL: u16 = 0x08;
const LOCAL_SERIAL: u16 = 0x09;

/// Checks the level of a SELECT.
pub(super) fn check_read(consistency: u16) -> Result<()> {
    match consistency {
        ANY => Err(CqlError::Invalid("ANY ConsistencyLevel is only supported for writes".to_owned())),
        _ => Ok(()),
    }
}

/// Checks the level of an INSERT, UPDATE or DELETE without conditions.
pub(super) fn check_write(consistency: u16) -> Result<()> {
    match consistency {
        SERIAL | LOCAL_SERIAL => {
            Err(CqlError::Invalid("You must use conditional updates for serializable writes".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Checks the level of a counter update (`validateCounterForWrite`).
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

/// Checks the level of a write that reads first (`readRequiredLists`).
pub(super) fn check_read_before_write(consistency: u16) -> Result<()> {
    match consistency {
        ANY => Err(CqlError::Invalid(
            "Write operation require a read but consistency ANY is not supported on reads".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Checks the levels of a conditional write: the serial one for its condition, SERIAL by default, and the one for its
/// commit (`validateForCas`, `validateForCasCommit`).
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
