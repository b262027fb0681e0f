//! The way back from a target that is lost: this server answers by itself again, with its rows of the cut, and the move ends.

use crate::error::MoveError;
use crate::front::Front;
use crate::state::{MoveState, StateFile};

/// Lets clients be served here, without asking the target, and ends the move. A crash before the state says so leaves the truth at the
/// target. After it the file stays until what the move has set of its tables is set back (`Mover::finish`), by the next start at the latest.
///
/// # Errors
/// It cannot be done; clients are served by the target as before, if it answers.
pub(crate) fn serve_without_target(
    front: &dyn Front,
    file: &StateFile,
    state: &MoveState,
) -> Result<(), MoveError> {
    let ended = MoveState { cut: None, is_ended: true, ..state.clone() };
    if let Err(error) = file.write(&ended) {
        // It may be on the disk in spite of the error: then the file decides what is true.
        let restored = file.write(state);
        if restored.is_ok() || !matches!(file.read(), Ok(Some(found)) if found.is_ended) {
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
