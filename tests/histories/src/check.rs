//! The search for a linearization: an order of the operations in which each takes effect at one moment between its beginning
//! and its end, and answers what the model answers.
//!
//! Wing and Gong, "Testing and Verifying Concurrent Objects" (1993), with Lowe's memory of what was tried ("Testing for
//! linearizability", 2017): a set of operations done and the state that they left are looked at once, whatever the order.
//! Porcupine and Knossos do the same. Of an operation whose outcome nobody knows (an error that leaves it open, a client that
//! died) it is only known that it takes effect after its beginning, once or never.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What the operations are about.
pub trait Model {
    /// What it remembers.
    type State: Clone + Eq + Hash + Debug;
    /// What is done to it, with the answer that the client had.
    type Action: Debug;

    /// Before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after an operation; `None` if its answer cannot be had from this state.
    fn step(&self, state: &Self::State, action: &Self::Action) -> Option<Self::State>;
}

/// What is known of an operation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered at this time.
    Answered(u64),
    /// It may take effect at any time after its beginning, or never. Its action carries no answer.
    Unknown,
}

/// One operation of a history. Times are of one clock, on which no end has the time of a beginning.
#[derive(Clone, Debug)]
pub struct Operation<A> {
    /// Who did it; for people who read a violation.
    pub client: u32,
    /// When it was sent.
    pub began: u64,
    /// When it was answered.
    pub outcome: Outcome,
    /// What it was.
    pub action: A,
}

/// A history that no order explains.
#[derive(Debug)]
pub struct Violation {
    /// The operations, and which of them the longest explanation found takes in, in its order.
    pub text: String,
}

/// Looks for an order that explains the history.
///
/// # Errors
/// There is none.
pub fn check<M: Model>(model: &M, operations: &[Operation<M::Action>]) -> Result<(), Violation> {
    let mut search = Search::new(model, operations);
    if search.run() { Ok(()) } else { Err(search.violation()) }
}

/// An end of the list of events.
const NONE: usize = usize::MAX;

/// A beginning or an end, in a list of those that are not done yet, in the order of their times.
struct Event {
    operation: usize,
    is_end: bool,
    previous: usize,
    next: usize,
}

struct Search<'a, M: Model> {
    model: &'a M,
    operations: &'a [Operation<M::Action>],
    /// The first is a head without an operation. Beginnings come in the order of `begins`.
    events: Vec<Event>,
    /// The events of each operation: its beginning and, if it was answered, its end.
    of_operation: Vec<(usize, usize)>,
    done: Vec<u64>,
    order: Vec<(usize, M::State)>,
    tried: HashSet<(Vec<u64>, M::State)>,
    longest: Vec<usize>,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M, operations: &'a [Operation<M::Action>]) -> Self {
        let mut times: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * operations.len());
        for (number, operation) in operations.iter().enumerate() {
            times.push((operation.began, false, number));
            if let Outcome::Answered(ended) = operation.outcome {
                assert!(ended > operation.began, "an operation ends after it has begun: {number}");
                times.push((ended, true, number));
            }
        }
        // A beginning at the time of an end comes before it: the two may have been at once.
        times.sort_unstable();
        let mut events = vec![Event { operation: NONE, is_end: false, previous: NONE, next: NONE }];
        let mut of_operation = vec![(NONE, NONE); operations.len()];
        for (_, is_end, operation) in times {
            let at = events.len();
            match is_end {
                true => of_operation[operation].1 = at,
                false => of_operation[operation].0 = at,
            }
            events[at - 1].next = at;
            events.push(Event { operation, is_end, previous: at - 1, next: NONE });
        }
        Search {
            model,
            operations,
            events,
            of_operation,
            done: vec![0; operations.len().div_ceil(64)],
            order: Vec::new(),
            tried: HashSet::new(),
            longest: Vec::new(),
        }
    }

    fn run(&mut self) -> bool {
        let mut state = self.model.initial();
        let mut unanswered = self.of_operation.iter().filter(|(_, end)| *end != NONE).count();
        let mut at = self.events[0].next;
        while unanswered > 0 {
            // Behind the first end nothing can come before the operation that it ends.
            let event = (at != NONE).then(|| &self.events[at]).filter(|event| !event.is_end);
            if let Some(event) = event {
                let (operation, next) = (event.operation, event.next);
                if let Some(after) = self.model.step(&state, &self.operations[operation].action)
                    && self.is_new(operation, &after)
                {
                    unanswered -= usize::from(self.of_operation[operation].1 != NONE);
                    self.order.push((operation, std::mem::replace(&mut state, after)));
                    self.lift(operation);
                    at = self.events[0].next;
                } else {
                    at = next;
                }
                continue;
            }
            if self.order.len() > self.longest.len() {
                self.longest = self.order.iter().map(|(operation, _)| *operation).collect();
            }
            let Some((operation, before)) = self.order.pop() else { return false };
            state = before;
            unanswered += usize::from(self.of_operation[operation].1 != NONE);
            self.put_back(operation);
            at = self.events[self.of_operation[operation].0].next;
        }
        true
    }

    /// Whether nothing was tried yet behind these operations in this state.
    fn is_new(&mut self, operation: usize, after: &M::State) -> bool {
        let mut done = self.done.clone();
        done[operation / 64] |= 1 << (operation % 64);
        self.tried.insert((done, after.clone()))
    }

    fn lift(&mut self, operation: usize) {
        self.done[operation / 64] |= 1 << (operation % 64);
        let (begin, end) = self.of_operation[operation];
        for at in [begin, end].into_iter().filter(|at| *at != NONE) {
            let Event { previous, next, .. } = self.events[at];
            self.events[previous].next = next;
            if next != NONE {
                self.events[next].previous = previous;
            }
        }
    }

    fn put_back(&mut self, operation: usize) {
        self.done[operation / 64] &= !(1 << (operation % 64));
        let (begin, end) = self.of_operation[operation];
        for at in [end, begin].into_iter().filter(|at| *at != NONE) {
            let Event { previous, next, .. } = self.events[at];
            self.events[previous].next = at;
            if next != NONE {
                self.events[next].previous = at;
            }
        }
    }

    fn violation(&self) -> Violation {
        let mut text = String::from("no order of these operations gives their answers:\n");
        let mut by_time: Vec<usize> = (0..self.operations.len()).collect();
        by_time.sort_by_key(|number| self.operations[*number].began);
        for number in by_time {
            let Operation { client, began, outcome, action } = &self.operations[number];
            let place = self.longest.iter().position(|done| *done == number);
            let place = place.map_or_else(|| "-".to_owned(), |place| place.to_string());
            text.push_str(&format!("{place:>5}  client {client} from {began} {outcome:?}: {action:?}\n"));
        }
        text.push_str(
            "the numbers in front are the longest order found; - is what it cannot explain or comes later\n",
        );
        Violation { text }
    }
}

#[cfg(test)]
mod tests;
