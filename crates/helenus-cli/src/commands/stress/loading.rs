//! Loads one wide partition, for commands that measure something else.

use super::interrupt::Interrupt;
use super::options::{LoadOptions, Order};
use super::run::{connections, measure};
use super::wide_rows::Load;
use super::workload::{Extent, Workload, Wrong};
use crate::commands::access::AccessOptions;
use crate::commands::client::{AnswerBody, BlockingClient, Endpoint};
use anyhow::{Result, ensure};
use std::sync::OnceLock;

/// Number of rows in a batch, as in the published results of `stress load`.
const BATCH: u16 = 100;
/// Number of batches in flight; a batch has about 5 KiB.
const IN_FLIGHT: u32 = 32;
const CONNECTIONS: u16 = 4;

/// A partition to load. Its table must exist.
#[derive(Clone, Copy, Debug)]
pub struct WideLoad<'a> {
    pub endpoint: Endpoint<'a>,
    pub keyspace: &'a str,
    pub order: Order,
    /// Number of rows.
    pub width: u64,
}

/// Writes the rows in unlogged batches. Calls `told` with the number of rows of each acknowledged batch.
///
/// # Errors
/// The server cannot be reached or refuses a batch.
pub fn load_wide(load: WideLoad<'_>, told: &(dyn Fn(u64) + Sync)) -> Result<()> {
    let (rpc, protocol) = match load.endpoint {
        Endpoint::Cql(_, version, _) => (None, version.number()),
        Endpoint::Rpc(address, _) => (Some(address.to_owned()), 0),
    };
    let options = LoadOptions {
        host: load.endpoint.address().to_owned(),
        access: AccessOptions::of(load.endpoint.access()),
        rpc,
        over: None,
        keyspace: load.keyspace.to_owned(),
        rows: load.width,
        duration: None,
        operations: None,
        rate: None,
        warmup: 0.0,
        connections: CONNECTIONS,
        in_flight: IN_FLIGHT,
        threads: 1,
        protocol,
        server_pid: None,
        fresh: false,
        json: None,
        report: None,
        label: None,
        quiet: true,
        interrupt: Interrupt::default(),
        rpc_beside: OnceLock::new(),
    };
    let mut caller = BlockingClient::open(load.endpoint)?;
    let workload = Told { load: Load::prepare(&mut caller, &options, load.order, BATCH)?, told };
    drop(caller);
    let lanes = connections(&options, &workload)?;
    let figures = measure(&options, lanes, None, &workload)?;
    if let Some((kind, fault)) = figures.errors.first_key_value() {
        anyhow::bail!("{} batches were refused, {kind}: {}", figures.error_count(), fault.first);
    }
    let rows = figures.rows;
    ensure!(rows == load.width, "{rows} of {} rows were acknowledged", load.width);
    Ok(())
}

/// A load that reports its progress.
struct Told<'a> {
    load: Load,
    told: &'a (dyn Fn(u64) + Sync),
}

impl Workload for Told<'_> {
    fn name(&self) -> String {
        self.load.name()
    }

    fn extent(&self) -> Extent {
        self.load.extent()
    }

    fn put(&self, operation: u64, stream: i16, out: &mut Vec<u8>) {
        self.load.put(operation, stream, out);
    }

    fn check(&self, operation: u64, answer: &AnswerBody<'_>) -> Result<u64, Wrong> {
        let rows = self.load.check(operation, answer)?;
        (self.told)(rows);
        Ok(rows)
    }
}
