//! The judge is judged: histories that an order explains, made by running one, and histories that none explains.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use super::*;
use crate::draw::Draw;
use crate::partition::{Action, Kind, Partition, Request, State};

fn operation(client: u32, (began, ended): (u64, u64), action: Action) -> Operation<Action> {
    Operation { client, began, outcome: Outcome::Answered(ended), action }
}

fn did(request: Request) -> Action {
    Action::Did(request, Some(true))
}

fn saw(value: Option<i32>) -> Action {
    Action::Saw(State { rows: [value, None, None], ..State::default() })
}

fn saw_list(list: &[i32]) -> Action {
    Action::Saw(State { list: list.to_vec(), ..State::default() })
}

fn holds(operations: &[Operation<Action>]) -> bool {
    check(&Partition, operations).is_ok()
}

#[test]
fn a_deletion_that_a_condition_undoes_is_found() {
    // The condition was evaluated before the deletion, which was acknowledged and seen, and its write came after.
    let history = |last: Option<i32>| {
        [
            operation(1, (0, 1), did(Request::Write(0, 1))),
            operation(2, (2, 9), did(Request::WriteIf(1, 2))),
            operation(1, (3, 4), did(Request::Delete)),
            operation(1, (5, 6), saw(None)),
            operation(1, (10, 11), saw(last)),
        ]
    };
    assert!(!holds(&history(Some(2))));
    // The condition cannot have held behind the deletion either, but before it.
    assert!(holds(&history(None)));
}

#[test]
fn a_write_whose_outcome_is_unknown_may_come_late_or_never_and_may_not_go_again() {
    let unknown = Operation {
        client: 1,
        began: 0,
        outcome: Outcome::Unknown,
        action: Request::Write(0, 7).unanswered(),
    };
    let with = |reads: &[Option<i32>]| {
        let reads = reads.iter().enumerate().map(|(at, value)| {
            let at = 10 * at as u64;
            operation(2, (at + 1, at + 2), saw(*value))
        });
        holds(&[vec![unknown.clone()], reads.collect()].concat())
    };
    assert!(with(&[None, None]) && with(&[None, Some(7)]) && with(&[Some(7), Some(7)]));
    assert!(!with(&[Some(7), None]), "what was read has vanished");
}

#[test]
fn appends_stand_in_the_order_of_their_acknowledgements() {
    let (first, second) = (did(Request::Append(1)), did(Request::Append(2)));
    let one_after_the_other = |list: &[i32]| {
        holds(&[
            operation(1, (0, 1), first.clone()),
            operation(2, (2, 3), second.clone()),
            operation(1, (4, 5), saw_list(list)),
        ])
    };
    assert!(one_after_the_other(&[1, 2]) && !one_after_the_other(&[2, 1]));
    let at_once = |list: &[i32]| {
        holds(&[
            operation(1, (0, 2), first.clone()),
            operation(2, (1, 3), second.clone()),
            operation(1, (4, 5), saw_list(list)),
        ])
    };
    assert!(at_once(&[1, 2]) && at_once(&[2, 1]));
    // Seen alone, the second has come first.
    assert!(!holds(&[
        operation(1, (0, 9), first),
        operation(2, (1, 2), second),
        operation(3, (3, 4), saw_list(&[2])),
        operation(3, (10, 11), saw_list(&[1, 2])),
    ]));
}

#[test]
fn a_batch_is_seen_whole() {
    let saw_rows = |rows| Action::Saw(State { rows, ..State::default() });
    let of = |rows| {
        holds(&[operation(1, (0, 3), did(Request::WriteAll(5))), operation(2, (1, 2), saw_rows(rows))])
    };
    assert!(of([None; 3]) && of([Some(5); 3]) && !of([Some(5), None, None]));
}

/// A history of clients whose operations take effect at a drawn moment between beginning and end.
fn explained(kind: Kind, seed: u64) -> Vec<Operation<Action>> {
    let mut draw = Draw::new(seed);
    let (mut state, mut history, mut fresh) = (State::default(), Vec::new(), 0);
    // Of each client: when it began, its request, and its answer once it has taken effect.
    let mut clients: Vec<Option<(u64, Request, Option<Action>)>> = vec![None; 5];
    for time in 0..400 {
        let number = draw.below(clients.len() as u64) as usize;
        clients[number] = match clients[number].take() {
            None => {
                fresh += 2;
                let seen: Vec<i32> = state.values().collect();
                Some((time, Request::draw(kind, &mut draw, fresh, &seen), None))
            }
            Some((began, request, None)) => {
                let action = match &request {
                    Request::Read => Action::Saw(state.clone()),
                    other => {
                        let held = Partition.step(&state, &Action::Did(other.clone(), Some(true)));
                        let action = Action::Did(other.clone(), Some(held.is_some()));
                        state = held.unwrap_or(state);
                        action
                    }
                };
                Some((began, request, Some(action)))
            }
            Some((began, _, Some(action))) => {
                history.push(operation(number as u32, (began, time), action));
                None
            }
        };
    }
    for (number, client) in clients.into_iter().enumerate() {
        // Some have taken effect, some never will.
        if let Some((began, request, _)) = client.filter(|(_, request, _)| *request != Request::Read) {
            let action = request.unanswered();
            history.push(Operation { client: number as u32, began, outcome: Outcome::Unknown, action });
        }
    }
    history
}

#[test]
fn what_happened_in_some_order_is_explained_and_a_read_of_the_past_is_not() {
    for seed in 0..40 {
        for kind in Kind::ALL {
            let mut history = explained(kind, seed);
            check(&Partition, &history)
                .unwrap_or_else(|found| panic!("{kind:?}, seed {seed}: {}", found.text));
            // A read at the end that sees what has never been, and one that sees what was before a write that was seen.
            let never = State { rows: [Some(-1); 3], list: vec![-1], count: i64::MAX };
            history.push(operation(9, (1000, 1001), Action::Saw(never)));
            assert!(check(&Partition, &history).is_err(), "{kind:?}, seed {seed}");
            history.pop();
            let only = did(Request::Delete);
            let count = history.iter().filter(|operation| operation.outcome != Outcome::Unknown).count();
            if kind != Kind::Counter && history.len() == count {
                history.push(operation(9, (1000, 1001), only));
                history.push(operation(
                    9,
                    (1002, 1003),
                    Action::Saw(State { rows: [Some(2); 3], ..State::default() }),
                ));
                assert!(check(&Partition, &history).is_err(), "{kind:?}, seed {seed}");
            }
        }
    }
}
