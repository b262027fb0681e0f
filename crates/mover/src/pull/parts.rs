//! Cuts what is wanted of a table into SELECTs: ranges of tokens, or single partitions.

use super::messages::PullOrder;
use crate::attempts::Attempts;
use crate::error::MoveError;
use crate::remote::{Remote, RemoteTable, Rows, TokenRange};
use helenus_cluster::ClusterError;
use helenus_model::types::quote_identifier;

/// Ranges of tokens of a table. A sample takes the beginning of each.
const RANGES: u32 = 256;

/// A part of a table.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The rows of a range that fulfil a condition.
    Range(TokenRange, Option<String>),
    /// The rows that fulfil a condition.
    Where(String),
}

/// The parts that an order wants of a table.
///
/// # Errors
/// The cluster refuses the conditions; nothing can be asked.
pub(super) async fn parts(
    remote: &Remote,
    table: &RemoteTable,
    order: &PullOrder,
) -> Result<Vec<Part>, MoveError> {
    let of = table.texts.table();
    if !order.partitions.is_empty() {
        let names: Vec<_> = of.partition_key.iter().map(|column| quote_identifier(&column.name)).collect();
        let part = |key: &String| {
            let more = order.condition.as_ref().map(|text| format!(" AND {text}")).unwrap_or_default();
            // So the cluster reads the literals, by the types of the columns.
            Part::Where(format!("token({}) = token({key}){more}", names.join(", ")))
        };
        let parts: Vec<Part> = order.partitions.iter().map(part).collect();
        for part in &parts {
            if let Part::Where(condition) = part {
                prepare(remote, table, &Rows::Where(condition.clone())).await?;
            }
        }
        return Ok(parts);
    }
    if let Some(condition) = &order.condition {
        let ranges = Rows::Range { from: true, until: true, condition: Some(condition.clone()) };
        match prepare(remote, table, &ranges).await {
            Ok(()) => {}
            // A condition of the partition key cannot stand beside one of the token.
            Err(refused)
                if refused.server().is_some() && !refused.may_repeat(true) && order.sample >= 1.0 =>
            {
                prepare(remote, table, &Rows::Where(condition.clone())).await?;
                return Ok(vec![Part::Where(condition.clone())]);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let ranges = (0..RANGES).map(|number| TokenRange::of(number, RANGES).share(order.sample));
    Ok(ranges.map(|range| Part::Range(range, order.condition.clone())).collect())
}

/// Prepares a SELECT, which shows whether the cluster takes it.
///
/// # Errors
/// It does not, or could not be asked at several attempts.
async fn prepare(remote: &Remote, table: &RemoteTable, rows: &Rows) -> Result<(), ClusterError> {
    let mut attempts = Attempts::new();
    while let Err(error) = remote.statement(table, rows).await {
        tokio::time::sleep(attempts.after(error)?).await;
    }
    Ok(())
}
