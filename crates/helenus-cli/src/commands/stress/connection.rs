//! A pipelined connection with a fixed number of streams, each of which carries one operation at a time.

use super::measure::Tally;
use super::schedule::{InFlight, Schedule};
use super::workload::{Operations, Workload};
use crate::commands::client::{PipelinedConnection, Received};
use anyhow::{Context, Result};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection and its operations.
pub(super) struct StressConnection<'w> {
    line: PipelinedConnection,
    workload: &'w dyn Workload,
    operations: Operations,
    in_flight: InFlight,
    /// Whether the workload has more than one kind of request.
    has_kinds: bool,
    /// Whether there is output that the socket has not accepted yet.
    unsent: bool,
    /// The start of the run, from which times count.
    begun: Instant,
}

impl<'w> StressConnection<'w> {
    /// A connection with `streams` streams.
    pub fn new(
        line: PipelinedConnection,
        workload: &'w dyn Workload,
        operations: Operations,
        streams: i16,
        schedule: Option<Schedule>,
    ) -> StressConnection<'w> {
        let in_flight = InFlight::new(streams, schedule);
        let has_kinds = workload.kinds().len() > 1;
        StressConnection {
            line,
            workload,
            operations,
            in_flight,
            has_kinds,
            unsent: false,
            begun: Instant::now(),
        }
    }

    /// Sets the start of the run, which is the schedule's first time.
    pub fn begin(&mut self, begun: Instant) {
        self.begun = begun;
    }

    /// The socket, for polling.
    pub fn socket(&self) -> &TcpStream {
        self.line.socket()
    }

    /// Whether there is output to write.
    pub fn wants_to_write(&self) -> bool {
        self.unsent
    }

    /// The maximum number of requests in flight.
    pub fn streams(&self) -> usize {
        self.in_flight.streams()
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_idle()
    }

    /// Whether no request is in flight and none will follow.
    pub fn is_done(&self) -> bool {
        self.is_idle() && matches!(self.operations, Operations::Ended)
    }

    /// The time of the next request, if there is a schedule.
    pub fn due(&self) -> Option<Instant> {
        if matches!(self.operations, Operations::Ended) {
            return None;
        }
        self.in_flight.due().map(|due| self.begun + due)
    }

    /// Stops sending; returns the number of requests that were due and not sent.
    pub fn end(&mut self, now: Instant) -> u64 {
        if matches!(self.operations, Operations::Ended) {
            return 0;
        }
        self.operations = Operations::Ended;
        self.in_flight.late(now.saturating_duration_since(self.begun))
    }

    /// Starts a request on every stream that may send, and writes as much as the socket accepts.
    pub fn send(&mut self) -> Result<()> {
        let StressConnection { line, workload, operations, in_flight, begun, unsent, .. } = self;
        if !matches!(operations, Operations::Ended) {
            let now = begun.elapsed();
            let mut first = in_flight.take(now);
            if first.is_some() {
                line.put(|out| {
                    while let Some(stream) = first {
                        let Some(operation) = operations.next() else {
                            in_flight.give_back(stream);
                            *operations = Operations::Ended;
                            break;
                        };
                        workload.put(operation, stream, out);
                        in_flight.carries(stream, operation);
                        first = in_flight.take(now);
                    }
                });
                in_flight.leave(begun.elapsed());
            } else if !*unsent {
                return Ok(());
            }
        } else if !*unsent {
            return Ok(());
        }
        *unsent = line.write()?;
        Ok(())
    }

    /// Reads once and checks the complete answers. Returns whether there was anything to read.
    pub fn receive(&mut self, tally: &mut Tally) -> Result<bool> {
        if let Received::Nothing = self.line.read()? {
            return Ok(false);
        }
        let now: Duration = self.begun.elapsed();
        tally.reads += 1;
        let StressConnection { line, workload, in_flight, has_kinds, .. } = self;
        line.answers(|stream, answer| {
            let took = in_flight.answered(stream, now);
            let took = took.with_context(|| {
                let said =
                    answer.as_ref().err().map(|refusal| format!(": {}: {}", refusal.kind, refusal.text));
                format!("an answer on stream {stream}, where none was awaited{}", said.unwrap_or_default())
            })?;
            let operation = took.operation;
            match answer {
                Ok(answer) => match workload.check(operation, &answer) {
                    Ok(rows) => {
                        let kind = if *has_kinds { workload.kind(operation) } else { 0 };
                        tally.right(kind, took, rows);
                    }
                    Err(wrong) => tally.fault("WRONG_ANSWER", || format!("operation {operation}: {wrong}")),
                },
                Err(refusal) => tally.fault(refusal.kind, || refusal.text),
            }
            Ok(())
        })?;
        Ok(true)
    }
}
