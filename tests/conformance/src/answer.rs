//! What a server answered, taken out of its frame.

use anyhow::Result;
use helenus_model::types::to_cql_literal;
use helenus_wire::native::{ColumnSpec, ErrorCode, ErrorDetail, Response, ResponseMessage, ResultMessage};
use std::fmt::Write;

/// An answer and the warnings before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer itself.
    pub outcome: Outcome,
    /// What the client is to be told besides.
    pub warnings: Vec<String>,
}

/// A cell of a row; `None` is null.
pub type CellBytes = Option<Vec<u8>>;

/// The kinds of answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// To STARTUP.
    Ready,
    /// Done, with nothing to show.
    Void,
    /// Rows.
    Rows {
        /// Their columns.
        columns: Vec<ColumnSpec>,
        /// The cells of each.
        rows: Vec<Vec<CellBytes>>,
        /// Where the next page begins.
        paging_state: Option<Vec<u8>>,
    },
    /// The keyspace now in use.
    Keyspace(String),
    /// What was changed in the schema, in words.
    Schema(String),
    /// A prepared statement.
    Prepared(PreparedStatement),
    /// A refusal.
    Error {
        /// Its code.
        code: ErrorCode,
        /// Its text.
        message: String,
        /// Its fields.
        detail: ErrorDetail,
    },
    /// Anything else, in words.
    Other(String),
}

/// What PREPARE was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedStatement {
    /// Its id.
    pub id: Vec<u8>,
    /// v5: that of its result's columns.
    pub metadata_id: Option<Vec<u8>>,
    /// The bind markers.
    pub variables: Vec<ColumnSpec>,
    /// Which of them make the partition key.
    pub partition_key: Vec<u16>,
    /// The columns of the result.
    pub columns: Vec<ColumnSpec>,
}

impl Answer {
    pub(crate) fn read(message: &ResponseMessage<'_>) -> Result<Answer> {
        let warnings = message.warnings.iter().map(str::to_owned).collect();
        let outcome = match &message.response {
            Response::Ready => Outcome::Ready,
            Response::Error(error) => Outcome::Error {
                code: error.detail.code(),
                message: error.message.clone(),
                detail: error.detail.clone(),
            },
            Response::Result(result) => read_result(result)?,
            other => Outcome::Other(format!("{other:?}")),
        };
        Ok(Answer { outcome, warnings })
    }

    /// The code and text of a refusal.
    pub fn error(&self) -> Option<(ErrorCode, &str)> {
        match &self.outcome {
            Outcome::Error { code, message, .. } => Some((*code, message)),
            _ => None,
        }
    }

    /// The answer for people, a line or a few.
    pub fn describe(&self) -> String {
        let mut text = match &self.outcome {
            Outcome::Ready => "ready".to_owned(),
            Outcome::Void => "done".to_owned(),
            Outcome::Rows { columns, rows, .. } => {
                let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
                let mut text = format!("{} rows of ({})", rows.len(), names.join(", "));
                for row in rows.iter().take(ROWS_SHOWN) {
                    let _ = write!(text, "\n      {}", describe_row(columns, row));
                }
                text
            }
            Outcome::Keyspace(name) => format!("uses keyspace {name}"),
            Outcome::Schema(change) => change.clone(),
            Outcome::Prepared(prepared) => format!("prepared: {}", describe_columns(&prepared.variables)),
            Outcome::Error { code, message, .. } => format!("{}: {message}", code.name()),
            Outcome::Other(text) => text.clone(),
        };
        for warning in &self.warnings {
            let _ = write!(text, "\n      warning: {warning}");
        }
        text
    }
}

/// Rows of an answer that a report shows.
const ROWS_SHOWN: usize = 10;

/// Characters of a value that a report shows.
const VALUE_SHOWN: usize = 160;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A row in CQL's literals, long ones cut.
pub fn describe_row(columns: &[ColumnSpec], row: &[CellBytes]) -> String {
    let cells = row.iter().enumerate().map(|(at, cell)| match columns.get(at) {
        Some(column) => shortened(&to_cql_literal(&column.ty, cell.as_deref())),
        None => format!("{cell:02x?}"),
    });
    cells.collect::<Vec<_>>().join(" | ")
}

/// Names and types.
pub fn describe_columns(columns: &[ColumnSpec]) -> String {
    let columns = columns
        .iter()
        .map(|column| format!("{}.{}.{} {}", column.keyspace, column.table, column.name, column.ty));
    columns.collect::<Vec<_>>().join(", ")
}

fn read_result(result: &ResultMessage<'_>) -> Result<Outcome> {
    Ok(match result {
        ResultMessage::Void => Outcome::Void,
        ResultMessage::Rows(rows) => {
            let mut taken = Vec::with_capacity(rows.row_count);
            for row in rows.iter() {
                taken.push(row?.cells().map(|cell| cell.map(<[u8]>::to_vec)).collect());
            }
            Outcome::Rows {
                columns: rows.metadata.columns.to_vec()?,
                rows: taken,
                paging_state: rows.metadata.paging_state.map(<[u8]>::to_vec),
            }
        }
        ResultMessage::SetKeyspace(name) => Outcome::Keyspace((*name).to_owned()),
        ResultMessage::SchemaChange(change) => Outcome::Schema(format!("{change:?}")),
        ResultMessage::Prepared(prepared) => Outcome::Prepared(PreparedStatement {
            id: prepared.id.to_vec(),
            metadata_id: prepared.result_metadata_id.map(<[u8]>::to_vec),
            variables: prepared.variables.to_vec()?,
            partition_key: prepared.partition_key.clone(),
            columns: prepared.result.columns.to_vec()?,
        }),
    })
}
