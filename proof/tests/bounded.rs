//! The model and the crash test for some seconds; `cargo run --release -p proof` runs them for as long as it is told.

#[test]
fn every_answer_is_that_of_a_database_of_maps() {
    if let Err(failure) = proof::model(8_000, 1, |_, _| {}) {
        panic!("{failure}");
    }
}

#[test]
fn a_cut_at_every_sync_leaves_what_was_acknowledged_and_nothing_in_halves() {
    if let Err(failure) = proof::crash(150, 1, |_, _| {}) {
        panic!("{failure}");
    }
}

#[test]
fn a_call_of_the_disk_that_fails_is_reported_and_costs_nothing_acknowledged() {
    if let Err(failure) = proof::fault(60, 1, |_, _| {}) {
        panic!("{failure}");
    }
}
