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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::double::FrontDouble;
    use crate::mover::Mover;
    use crate::scripted_target::ScriptedMove;
    use crate::state::Cut;
    use std::sync::Arc;

    /// The server is killed right after clients are served here again: the next start sets back what the move has set.
    #[tokio::test]
    async fn what_a_move_has_set_is_set_back_though_the_server_is_killed_as_the_move_ends() {
        let create = [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, a int) WITH cdc = true",
        ];
        let of = ScriptedMove::new(&create, |_| None).await;
        let (file, front) = (&of.context.file, Arc::new(FrontDouble::default()));
        of.with_table(|table| table.sets_cdc = true);
        let cut = Some(Cut { at_us: 1, rollback_within_s: 60 });
        let state = MoveState { cut, ..of.context.state.lock().clone() };
        file.write(&state).unwrap();
        front.0.lock().fails = Some("to_local");
        assert!(serve_without_target(&*front, file, &state).is_err());
        assert_eq!(file.read().unwrap().unwrap().cut, cut);
        front.0.lock().fails = None;
        serve_without_target(&*front, file, &state).unwrap();
        assert!(of.table("t").options.cdc);
        let (backend, folder) = (Arc::clone(&of.context.backend), of.folder.path().to_owned());
        let opening = move || drop(Mover::open(&backend, Some(&folder), front));
        tokio::task::spawn_blocking(opening).await.unwrap();
        assert!(!of.table("t").options.cdc);
        assert!(file.read().unwrap().is_none());
    }
}
