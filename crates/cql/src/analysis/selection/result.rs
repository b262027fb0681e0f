//! The description of a result.

use crate::backend::{ResultColumn, ResultColumns};
use std::sync::Arc;

/// Describes columns, with the id that protocol v5 knows them by: the MD5 of names and type classes
/// (`ResultSet.ResultMetadata.computeResultMetadataId`).
pub(crate) fn result_columns(columns: Vec<ResultColumn>) -> Arc<ResultColumns> {
    let mut context = md5::Context::new();
    for column in &columns {
        context.consume(column.name.as_bytes());
        context.consume([0]);
        context.consume(column.ty.class_name());
        context.consume([0, 0]);
    }
    Arc::new(ResultColumns { columns, id: context.finalize().0 })
}
