//! Sends the rows of a table, range of tokens by range of tokens.
//!
//! The ring is cut into equal ranges, which are sent in an order that spreads them over the target's nodes. A range is read on a
//! thread of its own into a short channel; the requests of all ranges share what may be in flight. A partition is never whole in
//! memory. A range counts once all its requests are acknowledged.

use crate::batches::{Parcel, read_range};
use crate::context::Context;
use crate::counters::{self, CounterRow};
use crate::error::MoveError;
use crate::estimate::order_of_ranges;
use crate::lists;
use crate::remote::TokenRange;
use crate::target::TableTarget;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Parcels that a reader may be ahead of the sender. Most have some 16 KiB, but one with a large row has all of it.
const AHEAD: usize = 4;
/// Requests of a range in flight at most, and their bytes: one range alone fills no more of the target's queue, and large rows no memory.
/// A request that has more bytes goes alone.
const OF_RANGE: (usize, u64) = (256, 8 << 20);

/// Sends the ranges of a table that are not done.
///
/// # Errors
/// A range cannot be read or sent; the move stops.
pub(crate) async fn run(
    context: &Arc<Context>,
    at: usize,
    target: &Arc<TableTarget>,
) -> Result<(), MoveError> {
    let (done, ranges) =
        context.with_table(at, |table| (table.done.clone(), table.ranges)).ok_or(MoveError::Stopped)?;
    let mut tasks = JoinSet::new();
    for number in order_of_ranges(ranges).filter(|number| done.binary_search(number).is_err()) {
        let (context, target) = (Arc::clone(context), Arc::clone(target));
        tasks.spawn(async move { range(&context, (at, number, ranges), &target).await });
    }
    while let Some(ended) = tasks.join_next().await {
        // The first failure ends the others, which are dropped with the set.
        ended.map_err(|error| MoveError::Internal(error.to_string()))??;
    }
    context.save()
}

async fn range(
    context: &Arc<Context>,
    (at, number, ranges): (usize, u32, u32),
    target: &Arc<TableTarget>,
) -> Result<(), MoveError> {
    // Counters in doubt wait for all replicas, and let the ranges of other tables go on meanwhile.
    let turns = if target.table().is_counter() { &context.counter_ranges } else { &context.ranges };
    let _turn = turns.acquire().await.map_err(|_| MoveError::Stopped)?;
    if context.target.is_stopped() {
        return Err(MoveError::Stopped);
    }
    let may_be_there = context.is_repeated();
    let (sender, mut parcels) = mpsc::channel(AHEAD);
    let (database, table) = (Arc::clone(context.database()), Arc::clone(target));
    let bounds = TokenRange::of(number, ranges).key_range();
    let (ended, reading) = oneshot::channel();
    context.threads.start(move || {
        let read = read_range(&database, &table, &bounds, &sender);
        // Whoever does not listen any more needs nothing.
        let _ = ended.send(read);
    })?;
    let mut requests: JoinSet<Result<u64, MoveError>> = JoinSet::new();
    let (mut rows, mut bytes, mut in_flight) = (0, 0, 0);
    while let Some(parcel) = parcels.recv().await {
        let (parcel_rows, parcel_bytes) = match &parcel {
            Parcel::Batch(batch) => (batch.rows, batch.bytes as u64),
            Parcel::Counters(..) => (1, 0),
            Parcel::List(_, _, state) => (0, state.elements.iter().map(|of| of.value.len() as u64).sum()),
        };
        (rows, bytes) = (rows + parcel_rows, bytes + parcel_bytes);
        while let Some(ended) = requests.try_join_next() {
            in_flight -= sent(ended)?;
        }
        while requests.len() >= OF_RANGE.0 || (in_flight > 0 && in_flight + parcel_bytes > OF_RANGE.1) {
            let Some(ended) = requests.join_next().await else { break };
            in_flight -= sent(ended)?;
        }
        in_flight += parcel_bytes;
        let context = Arc::clone(context);
        requests.spawn(async move { send(&context, parcel, may_be_there).await.map(|()| parcel_bytes) });
    }
    while let Some(ended) = requests.join_next().await {
        sent(ended)?;
    }
    // A reader that dies sends nothing.
    let died = |_| MoveError::Internal("the reader of a range has gone before its end".to_owned());
    reading.await.map_err(died)??;
    context.with_table(at, |table| {
        if let Err(place) = table.done.binary_search(&number) {
            table.done.insert(place, number);
        }
        (table.rows, table.bytes) = (table.rows + rows, table.bytes + bytes);
    });
    context.save_soon()
}

/// Sends a parcel. Counters and lists lock their row before they take a turn.
async fn send(context: &Context, parcel: Parcel, may_be_there: bool) -> Result<(), MoveError> {
    match parcel {
        Parcel::Batch(batch) => context.target.send(&batch).await,
        Parcel::Counters(table, name) => {
            let row = CounterRow { table: &table, name: &name, in_doubt: may_be_there };
            counters::make_equal(context, &row).await
        }
        Parcel::List(table, name, state) => {
            lists::send_read(context, (&table, &name), &state, may_be_there).await
        }
    }
}

/// The bytes of a request that has ended.
fn sent(ended: Result<Result<u64, MoveError>, tokio::task::JoinError>) -> Result<u64, MoveError> {
    ended.map_err(|error| MoveError::Internal(error.to_string()))?
}
