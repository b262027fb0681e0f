//! Consistency levels that do not go with a statement (`ConsistencyLevel.validateForRead`, `validateForWrite`). One node
//! holds every replica, so that any other level is reached by the one answer.

use crate::error::{CqlError, Result};

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
