//! Statements of the old command-line client.

/// Something written: a word or text, or a call such as `utf8('x')`.
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

/// A family, a row, and what is in it: `Users['k']['c']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) family: String,
    /// Key, then super column and column, or column.
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
    Use(String),
    /// Whether it is new, its name and options.
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
    /// What is added.
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
    /// The family, what of it, the type.
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
