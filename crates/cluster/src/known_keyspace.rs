//! Asks nodes whether they have a keyspace.
//!
//! Only a node that says so has not got it: a row that is not there. A node that fails to answer, whatever the error, says nothing about
//! the keyspace, and the error is handed on.

use helenus_wire::native::{ErrorCode, ErrorMessage, Query, QueryParameters, Request, Value, Values};

use tokio::time::Instant;

use crate::{ClusterError, Connection, Extras};

/// The tables of keyspaces. Virtual ones are in another table, which Cassandra before 4.0 and ScyllaDB do not have.
const TABLES: [(&str, bool); 2] =
    [("system_schema.keyspaces", false), ("system_virtual_schema.keyspaces", true)];

/// Whether the node has a keyspace. Waits for room until this time.
///
/// # Errors
/// It has not, which is the node's own error for USE; it does not answer, or with another error.
pub(crate) async fn check_keyspace(
    connection: &Connection,
    keyspace: &str,
    until: Instant,
) -> Result<(), ClusterError> {
    for (table, may_lack) in TABLES {
        let text = format!("SELECT keyspace_name FROM {table} WHERE keyspace_name = ?");
        let values = [Value::Bytes(keyspace.as_bytes())];
        let parameters =
            QueryParameters { values: Values::positional(&values), ..QueryParameters::default() };
        let query = Query { query: &text, parameters };
        let answer = connection.call_until(&Request::Query(query), &Extras::default(), until).await?;
        match answer.rows() {
            Ok(rows) if rows.row_count > 0 => return Ok(()),
            Ok(_) => {}
            Err(error) if may_lack && error.is_invalid() => {}
            Err(error) => return Err(error),
        }
    }
    let text = format!("Keyspace '{keyspace}' does not exist");
    Err(ClusterError::Server(ErrorMessage::plain(ErrorCode::Invalid, text)))
}
