//! Makes the requests of a user-defined workload.
//!
//! A round has as many requests as the sum of the weights. Each statement occurs as often as its weight, spread evenly
//! over the round. So each statement has its exact share, and its requests can be numbered, so that sequences have no
//! gaps.

use super::value::Generator;
use crate::commands::client::{AnswerBody, PreparedStatement};
use crate::commands::stress::content::mix;
use crate::commands::stress::workload::{Extent, Workload, Wrong};
use helenus_wire::native::{
    Execute, QueryParameters, Request as WireRequest, RequestHead, ResultMessage, Value, Values, Version,
};

/// A statement and the generators of its values.
pub(super) struct Request {
    pub name: String,
    pub prepared: PreparedStatement,
    pub values: Vec<Generator>,
    /// The number of rows that each answer must have.
    pub rows: Option<u64>,
}

/// A user-defined workload.
pub(super) struct Work {
    name: String,
    version: Version,
    requests: Vec<Request>,
    names: Vec<String>,
    round: Round,
}

/// The order of statements in a round: for each request, the statement and the number of its earlier requests in the
/// round.
#[derive(Clone, Debug)]
struct Round {
    turns: Vec<(usize, u64)>,
    weights: Vec<u64>,
}

impl Round {
    fn new(weights: &[u64]) -> Round {
        // Each request is placed in the middle of its share of the round.
        let mut places: Vec<(f64, usize)> = Vec::new();
        for (statement, weight) in weights.iter().enumerate() {
            let place = |at: u64| ((at as f64 + 0.5) / *weight as f64, statement);
            places.extend((0..*weight).map(place));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut before = vec![0; weights.len()];
        let turn = |(_, statement): (f64, usize)| {
            let count = before.get_mut(statement).map_or(0, |count| {
                *count += 1;
                *count - 1
            });
            (statement, count)
        };
        Round { turns: places.into_iter().map(turn).collect(), weights: weights.to_vec() }
    }

    /// The statement of an operation, and the number of its earlier requests.
    fn turn(&self, operation: u64) -> (usize, u64) {
        let length = self.turns.len().max(1) as u64;
        let (round, at) = (operation / length, (operation % length) as usize);
        let (statement, before) = self.turns.get(at).copied().unwrap_or_default();
        let weight = self.weights.get(statement).copied().unwrap_or_default();
        (statement, round.wrapping_mul(weight).wrapping_add(before))
    }
}

impl Work {
    /// A workload of statements with their weights.
    pub fn new(name: String, version: Version, requests: Vec<Request>, weights: &[u64]) -> Work {
        let names = requests.iter().map(|request| request.name.clone()).collect();
        Work { name, version, requests, names, round: Round::new(weights) }
    }
}

impl Workload for Work {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn kinds(&self) -> &[String] {
        &self.names
    }

    fn kind(&self, operation: u64) -> usize {
        self.round.turn(operation).0
    }

    fn extent(&self) -> Extent {
        Extent::Each(u64::MAX)
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        let (statement, number) = self.round.turn(operation);
        let Some(request) = self.requests.get(statement) else { return };
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(request.values.len()));
        let random = mix(operation);
        for generator in &request.values {
            generator.put(random, number, &mut bytes);
            ends.push(bytes.len());
        }
        let mut start = 0;
        let mut values: Vec<Value<'_>> = Vec::with_capacity(ends.len());
        for end in ends {
            values.push(Value::Bytes(bytes.get(start..end).unwrap_or_default()));
            start = end;
        }
        let execute = Execute {
            id: &request.prepared.id,
            result_metadata_id: request.prepared.result_metadata_id.as_deref(),
            parameters: QueryParameters {
                values: Values::positional(&values),
                skip_metadata: true,
                page_size: Some(5_000),
                ..QueryParameters::default()
            },
        };
        let encoded = WireRequest::Execute(execute).encode(&RequestHead::new(self.version, stream), out);
        debug_assert!(encoded.is_ok(), "at most 65,535 values, of at most 16 MiB each: {encoded:?}");
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        let (statement, _) = self.round.turn(operation);
        let expected = self.requests.get(statement).and_then(|request| request.rows);
        let found = match answer {
            AnswerBody::Result(ResultMessage::Rows(rows)) => rows.row_count as u64,
            AnswerBody::Result(ResultMessage::Void) if expected.is_none() => return Ok(1),
            AnswerBody::Result(ResultMessage::Void) => 0,
            _ => return Err(Wrong::Kind { expected: "Rows or Void" }),
        };
        match expected {
            Some(expected) if expected != found => Err(Wrong::Count { expected, found }),
            _ => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_take_turns_by_their_weights_and_are_counted_without_gaps() {
        let round = Round::new(&[3, 1, 2]);
        let mut counts = [0_u64; 3];
        for operation in 0..600 {
            let (statement, number) = round.turn(operation);
            assert_eq!(number, counts[statement], "operation {operation}");
            counts[statement] += 1;
        }
        assert_eq!(counts, [300, 100, 200]);
        let first: Vec<usize> = (0..6).map(|operation| round.turn(operation).0).collect();
        assert_eq!(first, [0, 2, 0, 1, 2, 0], "spread over the round");
    }
}
