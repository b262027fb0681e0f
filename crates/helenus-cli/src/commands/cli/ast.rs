//! Statements of the `cassandra-cli` language.

/// A value as written: a word or text, or a function call such as `utf8('x')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Plain(String),
    Call(String, Option<String>),
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    /// `{k: v, ..}`.
    Map(Vec<(String, Value)>),
    /// `[ .. ]`.
    List(Vec<Value>),
}

/// An option: name and value.
pub(super) type Options = Vec<(String, Value)>;

/// A path to a column: family, row key, columns, as in `Users['k']['c']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) family: String,
    /// The key, then the column, or the super column and its column.
    pub(super) steps: Vec<Written>,
}

/// A condition of `get .. where`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) column: Written,
    pub(super) operator: String,
    pub(super) value: Written,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// The keyspace; the name and password to log in with.
    Use(String, Option<(String, String)>),
    /// Whether the keyspace is created rather than updated; its name; its options.
    Keyspace(bool, String, Options),
    Family(bool, String, Options),
    DropKeyspace(String),
    DropFamily(String),
    DropIndex(String),
    Set(Path, Written, Option<i32>),
    Get(Path, Option<String>, Option<i32>),
    GetWhere(String, Vec<Condition>, Option<i32>),
    Delete(Path),
    Count(Path),
    /// The path of the counter, and the amount to add.
    Increment(Path, i64),
    List {
        family: String,
        start: Option<Written>,
        finish: Option<Written>,
        limit: Option<i32>,
        columns: Option<i32>,
        reversed: bool,
    },
    Truncate(String),
    /// The family, the part of it (keys, names, values), and the type.
    Assume(String, String, String),
    Consistency(String),
    ShowKeyspaces,
    ShowClusterName,
    ShowVersion,
    DescribeCluster,
    Describe(Option<String>),
    Nothing,
    Quit,
}
