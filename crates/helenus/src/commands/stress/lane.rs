//! A pipelined connection: so many streams, each carrying one operation at a time.

use super::measure::Tally;
use super::workload::{Operations, Workload};
use crate::commands::client::{Connection, Received};
use anyhow::{Context, Result};
use helenus_wire::native::{Envelope, Response, decode_response};
use std::net::TcpStream;
use std::time::Instant;

/// A connection and its operations.
pub(super) struct Lane<'w> {
    connection: Connection,
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
    pub fn new(
        connection: Connection,
        workload: &'w dyn Workload,
        operations: Operations,
        streams: i16,
    ) -> Lane<'w> {
        let slots = vec![Slot { operation: 0, since: None }; usize::try_from(streams).unwrap_or(0)];
        let free = (0..streams).rev().collect();
        Lane { connection, workload, operations, slots, free, fresh: Vec::new(), unsent: false }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &TcpStream {
        &self.connection.socket
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
        let Lane { connection, workload, operations, slots, free, fresh, unsent } = self;
        if !free.is_empty() && !matches!(operations, Operations::Ended) {
            connection.put(|out| {
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
        *unsent = connection.write()?;
        Ok(())
    }

    /// Reads once and judges the answers that are complete.
    pub fn receive(&mut self, tally: &mut Tally) -> Result<()> {
        if let Received::Nothing = self.connection.read()? {
            return Ok(());
        }
        let now = Instant::now();
        tally.reads += 1;
        let Lane { connection, workload, slots, free, .. } = self;
        connection.envelopes(|envelope| {
            let stream = envelope.header.stream;
            let slot = usize::try_from(stream).ok().and_then(|stream| slots.get_mut(stream));
            let slot = slot.with_context(|| format!("an answer on stream {stream}, which was never used"))?;
            let since = slot.since.take();
            let since = since.with_context(|| format!("a second answer on stream {stream}"))?;
            judge(*workload, slot.operation, envelope, (now - since).as_nanos(), tally)?;
            free.push(stream);
            Ok(())
        })
    }
}

fn judge(
    workload: &dyn Workload,
    operation: u64,
    envelope: &Envelope<'_>,
    latency_ns: u128,
    tally: &mut Tally,
) -> Result<()> {
    let header = envelope.header;
    let message = decode_response(header.version, header.opcode, header.flags, envelope.body)?;
    match message.response {
        Response::Result(result) => match workload.check(operation, &result) {
            Ok(rows) => tally.right(latency_ns, rows),
            Err(wrong) => tally.fault("WRONG_ANSWER", || format!("operation {operation}: {wrong}")),
        },
        Response::Error(error) => tally.fault(error.detail.code().name(), || error.message),
        other => tally.fault("WRONG_ANSWER", || format!("operation {operation}: {other:?}")),
    }
    Ok(())
}
