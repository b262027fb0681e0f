//! Names and positions.

use std::borrow::Cow;

/// A byte offset into the statement's text. All positions compare equal, so that comparing two trees ignores them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pos(pub u32);

impl PartialEq for Pos {
    fn eq(&self, _: &Pos) -> bool {
        true
    }
}

impl Eq for Pos {}

impl Pos {
    /// The line, from 1, and the column, from 0 in UTF-16 units, of this position in `text`, as Cassandra counts them.
    pub fn line_and_column(self, text: &str) -> (u32, u32) {
        let mut end = (self.0 as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line as u32, before[start..].encode_utf16().count() as u32)
    }
}

/// A name: in lower case if it was written without quotes, otherwise exactly as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident<'a> {
    /// The name. Empty for the column `""`.
    pub name: Cow<'a, str>,
    /// Its position.
    pub pos: Pos,
}

impl Ident<'_> {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

/// The name of a table, view, index or user-defined type, with its keyspace if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualifiedName<'a> {
    /// The keyspace, if given.
    pub keyspace: Option<Ident<'a>>,
    /// The name itself.
    pub name: Ident<'a>,
}

/// The name of a function or aggregate, with its keyspace if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// The keyspace, if given.
    pub keyspace: Option<Ident<'a>>,
    /// The name itself.
    pub name: Ident<'a>,
}

/// The name of a role: an identifier or a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleName<'a> {
    /// The name: in lower case only if it was written without quotes of any kind.
    pub name: Cow<'a, str>,
    /// Its position.
    pub pos: Pos,
}
