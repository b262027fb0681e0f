//! Threads and memory: `tpstats`, and `memory` in place of nodetool's `gcstats`.

use super::layout::{Columns, file_size};
use super::requests::{Server, unexpected};
use anyhow::Result;
use helenus_cql::counted;
use helenus_server::admin::{AdminAnswer, AdminRequest, MemoryMetrics};
use serde_json::{Map, Value, json};
use std::io::{Write, stdout};

/// `tpstats` (`TpStatsPrinter.java`): the thread pools that exist. No message between nodes is ever dropped.
pub fn tpstats(server: &Server) -> Result<()> {
    let AdminAnswer::Pools(pools) = server.request(&AdminRequest::Pools)? else { return unexpected() };
    if server.json {
        let pool = |pool: &helenus_server::admin::Pool| {
            let figures = json!({
                "ActiveTasks": pool.active,
                "PendingTasks": pool.pending,
                "CompletedTasks": pool.completed,
                "CurrentlyBlockedTasks": 0,
                "TotalBlockedTasks": pool.refused,
            });
            (pool.name.clone(), figures)
        };
        let pools: Map<String, Value> = pools.iter().map(pool).collect();
        return server
            .print_json(&json!({ "ThreadPools": pools, "DroppedMessage": {}, "WaitLatencies": {} }));
    }
    let mut out = stdout().lock();
    let mut columns = Columns::new(" ");
    columns.row(["Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"]);
    for pool in &pools {
        let [active, pending, completed, refused] =
            [pool.active, pool.pending, pool.completed, pool.refused].map(|number| number.to_string());
        columns.row([pool.name.clone(), active, pending, completed, "0".to_owned(), refused]);
    }
    columns.print(&mut out)?;
    writeln!(out, "\nLatencies waiting in queue (micros) per dropped message types")?;
    let mut dropped = Columns::new(" ");
    dropped.row(["Message type", "Dropped    ", "50%     ", "95%     ", "99%     ", "Max"]);
    dropped.print(&mut out)?;
    Ok(())
}

/// `memory`: the memory of the server by use.
pub fn memory(server: &Server) -> Result<()> {
    let AdminAnswer::Memory(memory) = server.request(&AdminRequest::Memory)? else { return unexpected() };
    if server.json {
        return server.print_json(&memory);
    }
    let MemoryMetrics {
        resident, memtables, memtables_max, cache, cache_max, cache_blocks, sstables, ..
    } = memory;
    let MemoryMetrics { requests, requests_max, shares, waited, refused, .. } = memory;
    let mut out = stdout().lock();
    if let Some(resident) = resident {
        writeln!(out, "process      {} resident", file_size(resident))?;
    }
    writeln!(out, "memtables    {} of {}", file_size(memtables), file_size(memtables_max))?;
    writeln!(
        out,
        "block cache  {} of {}, {}",
        file_size(cache),
        file_size(cache_max),
        counted(cache_blocks, "block")
    )?;
    writeln!(out, "SSTables     {} of filters, indexes and chunk offsets", file_size(sstables))?;
    writeln!(out, "requests     {} of {} in flight", file_size(requests), file_size(requests_max))?;
    writeln!(out)?;
    let mut account = Columns::new("  ");
    account.row(["Share", "Used", "Limit", "Peak"]);
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), file_size);
    for share in shares {
        account.row([share.name, file_size(share.used), bytes(share.limit), bytes(share.peak)]);
    }
    account.print(&mut out)?;
    writeln!(out, "\nrequests that waited for memory: {waited}, refused: {refused}")?;
    Ok(())
}
