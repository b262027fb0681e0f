//! The clocks: remarks of `info` and `status` about anomalies, and `resetclock`.

use super::requests::{Server, unexpected};
use crate::commands::numbers::times;
use anyhow::Result;
use helenus_model::types::{CqlType, to_cql_literal};
use helenus_server::admin::{AdminAnswer, AdminRequest, ClockMetrics};
use std::io::{Write, stdout};

/// Timestamps that are ahead of the clock by less than this are normal on a busy server.
const AHEAD_US_SHOWN: i64 = 1_000_000;

/// Remarks about anomalies of the clocks, each a name and a text. Empty if all is well.
pub(super) fn remarks(clock: &ClockMetrics) -> Vec<(&'static str, String)> {
    let mut remarks = Vec::new();
    if let Some((expected_us, found_us)) = clock.last_jump {
        let text =
            format!("jumped {}, last from {} to {}", times(clock.jumps), utc(expected_us), utc(found_us));
        remarks.push(("Clock", text));
    }
    if clock.is_refused {
        let text = format!(
            "the machine's clock says {}: writes without a timestamp of their own are refused until it is set right",
            utc(clock.wall_us)
        );
        remarks.push(("Clock refused", text));
    }
    if clock.ahead_us >= AHEAD_US_SHOWN {
        let text = format!(
            "at {}, {} s ahead of the machine's clock; resetclock sets them back",
            utc(clock.last_timestamp_us),
            clock.ahead_us / 1_000_000
        );
        remarks.push(("Timestamps", text));
    }
    remarks
}

/// `resetclock`, which nodetool does not have.
///
/// # Errors
/// No server answers; the machine's clock is beyond the times that files can hold; the log fails.
pub fn resetclock(server: &Server) -> Result<()> {
    let AdminAnswer::Clock(before) = server.request(&AdminRequest::ResetClock)? else { return unexpected() };
    if server.json {
        return server.print_json(&before);
    }
    let mut out = stdout().lock();
    writeln!(out, "clock       timestamps of writes go on from {}", utc(before.wall_us))?;
    if before.ahead_us > 0 {
        let last = utc(before.last_timestamp_us);
        writeln!(
            out,
            "            they were at {last}: rows with later timestamps than now stay as they are"
        )?;
    }
    Ok(())
}

fn utc(us: i64) -> String {
    let ms = us.div_euclid(1000).to_be_bytes();
    to_cql_literal(&CqlType::Timestamp, Some(&ms)).trim_matches('\'').to_owned()
}
