//! A prepared statement, and its ids at the nodes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus_model::token::Token;
use helenus_wire::native::{ColumnSpec, ErrorCode, ErrorMessage, ReadPrepared, Value};
use parking_lot::Mutex;

use crate::ClusterError;
use crate::answer_room::{AnswerRoom, ROOM_FROM};
use crate::ring::partition_key_token;
use crate::statement_memory::columns_bytes;

/// What a statement is taken to need at least, with its ids at the nodes.
const STATEMENT_BYTES: u64 = 1 << 10;

/// The refusal of a statement whose columns need more memory than there is. One that needs more than there ever is, is wrong: a driver
/// would try it again.
fn no_room(bytes: u64, room: &AnswerRoom) -> ClusterError {
    let max = room.max();
    let code = if bytes > max { ErrorCode::Invalid } else { ErrorCode::Overloaded };
    let text = format!(
        "the columns of the statement take {bytes} bytes of memory, and there are {max} for answers and columns, some of them in use; name \
         fewer columns, or columns whose types have fewer fields"
    );
    ClusterError::Server(ErrorMessage::plain(code, text))
}

/// The statement as one node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatement {
    /// Its id there.
    pub id: Vec<u8>,
    /// v5: the id of the result's columns there.
    pub result_metadata_id: Option<Vec<u8>>,
}

/// A prepared statement. Each node prepares it when it is first executed there.
#[derive(Debug)]
pub struct Statement {
    /// The text.
    pub text: String,
    /// The keyspace of its unqualified names.
    pub keyspace: Option<String>,
    /// The bind markers.
    pub variables: Vec<ColumnSpec>,
    /// The markers of the partition key, in the order of its columns; empty if a column has none, or if the cluster speaks v3.
    pub partition_key: Vec<u16>,
    /// The columns of the result.
    pub result_columns: Vec<ColumnSpec>,
    pub(crate) nodes: Mutex<HashMap<SocketAddr, Arc<NodeStatement>>>,
}

impl Statement {
    pub(crate) fn new(
        text: String,
        keyspace: Option<String>,
        prepared: &ReadPrepared<'_>,
        room: &Arc<AnswerRoom>,
    ) -> Result<Statement, ClusterError> {
        let parsed_bytes = prepared.variables.parsed_bytes()? + prepared.result.columns.parsed_bytes()?;
        // Who keeps the statement counts it then (`estimated_bytes`).
        let _parsed = match parsed_bytes <= ROOM_FROM {
            true => None,
            false => Some(room.try_take(parsed_bytes).ok_or_else(|| no_room(parsed_bytes, room))?),
        };
        Ok(Statement {
            text,
            keyspace,
            variables: prepared.variables.to_vec()?,
            partition_key: prepared.partition_key.clone(),
            result_columns: prepared.result.columns.to_vec()?,
            nodes: Mutex::new(HashMap::new()),
        })
    }

    /// What it is taken to need of memory, for those who keep statements up to a number of bytes: its text, as it is kept once more by whoever
    /// looks for it, and its columns with their names and types.
    pub fn estimated_bytes(&self) -> u64 {
        let columns = columns_bytes(&self.variables) + columns_bytes(&self.result_columns);
        STATEMENT_BYTES + 2 * self.text.len() as u64 + columns
    }

    /// The statement at a node, if it is prepared there.
    pub fn at(&self, node: SocketAddr) -> Option<Arc<NodeStatement>> {
        self.nodes.lock().get(&node).cloned()
    }

    /// The id at the node that has prepared the statement first.
    pub fn first_id(&self) -> Option<Vec<u8>> {
        self.nodes.lock().values().next().map(|node| node.id.clone())
    }

    /// The id of the result's columns at the node that has prepared the statement first; `None` before v5.
    pub fn first_metadata_id(&self) -> Option<Vec<u8>> {
        self.nodes.lock().values().find_map(|node| node.result_metadata_id.clone())
    }

    /// Remembers what a node has answered to PREPARE.
    pub(crate) fn prepared_at(&self, node: SocketAddr, prepared: &ReadPrepared<'_>) -> Arc<NodeStatement> {
        let statement = Arc::new(NodeStatement {
            id: prepared.id.to_vec(),
            result_metadata_id: prepared.result_metadata_id.map(<[u8]>::to_vec),
        });
        self.nodes.lock().insert(node, Arc::clone(&statement));
        statement
    }

    /// Forgets what a node has answered, because it says that it does not know the statement.
    pub fn forget(&self, node: SocketAddr) {
        self.nodes.lock().remove(&node);
    }

    /// The keyspace of the statement's table, if its markers tell.
    pub fn table_keyspace(&self) -> Option<&str> {
        self.variables.first().map(|variable| &*variable.keyspace)
    }

    /// Keyspace and name of the statement's table, if its markers tell.
    pub fn table(&self) -> Option<(&str, &str)> {
        self.variables.first().map(|variable| (&*variable.keyspace, &*variable.table))
    }

    /// The token of the one partition that the statement writes with these values. It is not known of a batch in one text, nor where
    /// the text has an IN: a marker may be one of several keys, of which others are literals.
    pub fn only_partition<'v>(&self, value: impl Fn(usize) -> Option<Value<'v>>) -> Option<Token> {
        if self.names_one_partition() { self.token(value) } else { None }
    }

    /// Whether the text surely writes one partition. It is no parser: a comment before the first word, or an "in" within a string,
    /// counts as a doubt.
    fn names_one_partition(&self) -> bool {
        let mut words = self.text.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
        let first = words.next().unwrap_or_default();
        let is_single = ["insert", "update", "delete"].iter().any(|word| first.eq_ignore_ascii_case(word));
        is_single && !words.any(|word| word.eq_ignore_ascii_case("in"))
    }

    /// The token of the partition that these values are for, in the order of the markers.
    pub fn token<'v>(&self, value: impl Fn(usize) -> Option<Value<'v>>) -> Option<Token> {
        match *self.partition_key {
            [] => None,
            [marker] => Some(Token::of_key(value(usize::from(marker))?.bytes()?)),
            _ => {
                let columns = self.partition_key.iter().map(|marker| value(usize::from(*marker))?.bytes());
                partition_key_token(&columns.collect::<Option<Vec<_>>>()?)
            }
        }
    }
}
