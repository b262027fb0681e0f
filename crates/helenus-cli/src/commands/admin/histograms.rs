//! `tablehistograms` (`TableHistograms.java`).

use super::requests::{Server, unexpected};
use anyhow::Result;
use helenus_server::admin::{AdminAnswer, AdminRequest, Spread, TableMetrics, TableSelection};
use std::io::{Write, stdout};

const PLACES: [&str; 7] = ["50%", "75%", "95%", "98%", "99%", "Min", "Max"];

/// Prints the distribution of latencies and partition sizes of tables since the start.
pub fn tablehistograms(server: &Server, which: TableSelection) -> Result<()> {
    let AdminAnswer::Tables(tables) = server.request(&AdminRequest::Tables { which })? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&tables);
    }
    let mut out = stdout().lock();
    for table in tables.iter().filter(|table| !table.is_index) {
        print(&mut out, table)?;
    }
    Ok(())
}

fn print(out: &mut dyn Write, table: &TableMetrics) -> Result<()> {
    if table.sstables == 0 {
        writeln!(
            out,
            "No SSTables exists, unable to calculate 'Partition Size' and 'Cell Count' percentiles"
        )?;
    }
    writeln!(out, "{}/{} histograms", table.keyspace, table.table)?;
    let heads = [
        ["Percentile", "Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"],
        ["", "(micros)", "(micros)", "", "(bytes)", ""],
    ];
    for [first, rest @ ..] in heads {
        let rest: String = rest.iter().map(|cell| format!("{cell:>18}")).collect();
        writeln!(out, "{first:<10}{rest}")?;
    }
    for (place, name) in PLACES.iter().enumerate() {
        let with =
            |spread: &Spread, decimals: usize, is_known: bool| match at(spread, place).filter(|_| is_known) {
                Some(value) => format!("{value:>18.decimals$}"),
                None => format!("{:>18}", "NaN"),
            };
        let has_files = table.sstables > 0;
        let line = [
            with(&table.reads, 2, true),
            with(&table.writes, 2, true),
            with(&table.sstables_read, 2, true),
            with(&table.partition_bytes, 0, has_files),
            with(&table.partition_cells, 0, has_files),
        ];
        writeln!(out, "{name:<10}{}", line.concat())?;
    }
    writeln!(out)?;
    Ok(())
}

fn at(spread: &Spread, place: usize) -> Option<f64> {
    match place {
        5 => Some(spread.min),
        6 => Some(spread.max),
        place => spread.percentiles.get(place).copied().or(Some(0.0)),
    }
}
