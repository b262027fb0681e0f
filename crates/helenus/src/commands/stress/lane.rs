//! A pipelined connection: so many streams, each carrying one operation at a time.

use super::measure::Tally;
use super::workload::{Operations, Workload};
use crate::commands::client::{Line, Received};
use anyhow::{Context, Result};
use std::net::TcpStream;
use std::time::Instant;

/// A connection and its operations.
pub(super) struct Lane<'w> {
    line: Line,
    workload: &'w dyn Workload,
    operations: Operations,
    slots: Vec<Slot>,
    /// Streams without a request.
    free: Vec<i16>,
    /// Those that got one just now.
    fresh: Vec<i16>,
    /// Whether the socket has not taken everything yet.
    unsent: bool,
}

/// A stream's request.
#[derive(Clone, Copy, Debug)]
struct Slot {
    operation: u64,
    /// When it was handed to the socket; `None` if there is no request.
    since: Option<Instant>,
}

impl<'w> Lane<'w> {
    /// A lane of `streams` requests in flight.
    pub fn new(line: Line, workload: &'w dyn Workload, operations: Operations, streams: i16) -> Lane<'w> {
        let slots = vec![Slot { operation: 0, since: None }; usize::try_from(streams).unwrap_or(0)];
        let free = (0..streams).rev().collect();
        Lane { line, workload, operations, slots, free, fresh: Vec::new(), unsent: false }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &TcpStream {
        self.line.socket()
    }

    /// Whether there is something to write still.
    pub fn wants_to_write(&self) -> bool {
        self.unsent
    }

    /// How many requests it may have in flight.
    pub fn streams(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Sends nothing more.
    pub fn end(&mut self) {
        self.operations = Operations::Ended;
    }

    /// Gives every free stream a request and writes what the socket takes.
    pub fn send(&mut self) -> Result<()> {
        let Lane { line, workload, operations, slots, free, fresh, unsent } = self;
        if !free.is_empty() && !matches!(operations, Operations::Ended) {
            line.put(|out| {
                while let Some(stream) = free.pop() {
                    let Some(operation) = operations.next() else {
                        free.push(stream);
                        *operations = Operations::Ended;
                        break;
                    };
                    workload.put(operation, stream, out);
                    if let Some(slot) = slots.get_mut(stream as usize) {
                        slot.operation = operation;
                    }
                    fresh.push(stream);
                }
            });
            let now = Instant::now();
            for stream in fresh.drain(..) {
                if let Some(slot) = slots.get_mut(stream as usize) {
                    slot.since = Some(now);
                }
            }
        } else if !*unsent {
            return Ok(());
        }
        *unsent = line.write()?;
        Ok(())
    }

    /// Reads once and judges the answers that are complete.
    pub fn receive(&mut self, tally: &mut Tally) -> Result<()> {
        if let Received::Nothing = self.line.read()? {
            return Ok(());
        }
        let now = Instant::now();
        tally.reads += 1;
        let Lane { line, workload, slots, free, .. } = self;
        line.answers(|stream, answer| {
            let slot = usize::try_from(stream).ok().and_then(|stream| slots.get_mut(stream));
            let slot = slot.with_context(|| format!("an answer on stream {stream}, which was never used"))?;
            let since = slot.since.take();
            let since = since.with_context(|| format!("a second answer on stream {stream}"))?;
            let operation = slot.operation;
            match answer {
                Ok(answer) => match workload.check(operation, &answer) {
                    Ok(rows) => tally.right((now - since).as_nanos(), rows),
                    Err(wrong) => tally.fault("WRONG_ANSWER", || format!("operation {operation}: {wrong}")),
                },
                Err(refusal) => tally.fault(refusal.kind, || refusal.text),
            }
            // A slot's number was a stream's.
            free.push(stream as i16);
            Ok(())
        })
    }
}
