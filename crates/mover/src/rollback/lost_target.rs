//! The way back from a target that is lost: this server answers by itself again, with its rows of the cut, and the move ends.

use crate::error::MoveError;
use crate::front::Front;
use crate::state::{MoveState, StateFile};

/// Lets clients be served here, without asking the target. A crash before the state is removed leaves the truth at the target.
///
/// # Errors
/// It cannot be done; clients are served by the target as before, if it answers.
pub(crate) fn serve_without_target(
    front: &dyn Front,
    file: &StateFile,
    state: &MoveState,
) -> Result<(), MoveError> {
    if let Err(error) = file.remove() {
        // It may be gone from the disk in spite of the error: then the disk decides what is true.
        let restored = file.write(state);
        if restored.is_ok() || !matches!(file.read(), Ok(None)) {
            return Err(error);
        }
    }
    if let Err(error) = front.to_local() {
        // Nobody was served here yet, so the truth is at the target still.
        file.write(state)?;
        return Err(error.into());
    }
    Ok(())
}
