//! The CREATE TABLE of a table that the cluster's DESCRIBE cannot give: a compact one, which it puts into a comment, and one that `ALTER
//! TABLE .. DROP COMPACT STORAGE` has left with a column without a type or a name.
//!
//! Columns and flags are those of `system_schema`, which has what the comment leaves out (`CompactTableMetadata.appendCqlTo`: hidden columns
//! and their types). The options are the comment's. What CQL has no words for goes into the extensions that this server reads
//! (`helenus_cql`, `ddl::layout`).

use helenus_model::schema::{FLAGS_EXTENSION, UNNAMED_COLUMN_EXTENSION};
use helenus_model::types::quote_identifier;

/// The class of the type that `system_schema` calls `empty`, a word that CREATE TABLE does not know.
const EMPTY: (&str, &str) = ("empty", "'org.apache.cassandra.db.marshal.EmptyType'");
/// Options that are not taken as they are: they are said otherwise, or are not for here.
const OTHERS: [&str; 5] = ["COMPACT STORAGE", "ID =", "CLUSTERING ORDER", "cdc =", "extensions ="];

/// A column as `system_schema.columns` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnRow {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) ty: String,
    pub(super) position: i32,
    pub(super) order: String,
}

/// Whether a CREATE TABLE of DESCRIBE cannot be run as it is.
pub(super) fn is_needed(text: &str, columns: &[ColumnRow]) -> bool {
    text.trim_start().starts_with("/*")
        || columns.iter().any(|column| column.name.is_empty() || column.ty == EMPTY.0)
}

/// The statement. `described`: that of DESCRIBE, whose options are taken.
pub(super) fn create_text(
    (keyspace, table): (&str, &str),
    columns: &[ColumnRow],
    flags: &[String],
    described: &str,
) -> String {
    let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
    let mut names = std::iter::once("value".to_owned()).chain((1..).map(|number| format!("value{number}")));
    let stand_in = names.find(|name| !is_taken(name)).unwrap_or_default();
    let name = |column: &ColumnRow| {
        let name = if column.name.is_empty() { &stand_in } else { &column.name };
        quote_identifier(name).into_owned()
    };
    let of_kind = |kind: &str| {
        let mut found: Vec<&ColumnRow> = columns.iter().filter(|column| column.kind == kind).collect();
        found.sort_by_key(|column| column.position);
        found
    };
    let listed =
        |columns: &[&ColumnRow]| columns.iter().map(|column| name(column)).collect::<Vec<_>>().join(", ");
    let (partition, clustering) = (of_kind("partition_key"), of_kind("clustering"));
    let mut lines: Vec<String> = columns
        .iter()
        .map(|column| {
            let ty = if column.ty == EMPTY.0 { EMPTY.1 } else { &column.ty };
            let is_static = if column.kind == "static" { " static" } else { "" };
            format!("{} {ty}{is_static}", name(column))
        })
        .collect();
    let mut key = format!("({})", listed(&partition));
    if !clustering.is_empty() {
        key = format!("{key}, {}", listed(&clustering));
    }
    lines.push(format!("PRIMARY KEY ({key})"));
    let mut options = Vec::new();
    if !clustering.is_empty() {
        let order = |column: &&ColumnRow| format!("{} {}", name(column), column.order.to_uppercase());
        let order: Vec<String> = clustering.iter().map(order).collect();
        options.push(format!("CLUSTERING ORDER BY ({})", order.join(", ")));
    }
    let all = options_of(described);
    options
        .extend(all.iter().filter(|option| !OTHERS.iter().any(|other| option.starts_with(other))).cloned());
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut extensions = Vec::new();
    if !flags.iter().any(|flag| flag == "compound")
        || flags.iter().any(|flag| flag == "dense" || flag == "super")
    {
        extensions.push(format!("'{FLAGS_EXTENSION}': {}", quoted(&flags.join(", "))));
    }
    if is_taken("") {
        extensions.push(format!("'{UNNAMED_COLUMN_EXTENSION}': {}", quoted(&stand_in)));
    }
    let there = all.iter().find_map(|option| option.strip_prefix("extensions ="));
    let there = there.map(|map| map.trim().trim_start_matches('{').trim_end_matches('}').trim());
    extensions.extend(there.filter(|pairs| !pairs.is_empty()).map(str::to_owned));
    if !extensions.is_empty() {
        options.push(format!("extensions = {{{}}}", extensions.join(", ")));
    }
    let of = format!("{}.{}", quote_identifier(keyspace), quote_identifier(table));
    let with = if options.is_empty() { String::new() } else { format!(" WITH {}", options.join(" AND ")) };
    format!("CREATE TABLE {of} ({}){with}", lines.join(", "))
}

/// The options of a CREATE TABLE of DESCRIBE: one a line, each but the first behind AND; a text may have more lines.
fn options_of(described: &str) -> Vec<String> {
    let Some((_, text)) = described.split_once("\n) WITH ") else { return Vec::new() };
    let text = text.rsplit_once("\n*/").map_or(text, |(before, _)| before);
    let mut options: Vec<String> = Vec::new();
    let is_open = |option: &String| option.matches('\'').count() % 2 == 1;
    for line in text.split('\n') {
        match options.last_mut() {
            Some(last) if is_open(last) => {
                last.push('\n');
                last.push_str(line);
            }
            _ => {
                let line = line.trim_start();
                options.push(line.strip_prefix("AND ").unwrap_or(line).to_owned());
            }
        }
    }
    // What follows the statement is none of its options: the semicolon ends it.
    let end = options.iter().position(|option| option.trim_end().ends_with(';'));
    options.truncate(end.map_or(options.len(), |end| end + 1));
    let option = |text: &String| text.trim_end().trim_end_matches(';').to_owned();
    options.iter().map(option).filter(|option| !option.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, ty: &str, position: i32) -> ColumnRow {
        let order = if kind == "clustering" { "asc" } else { "none" };
        ColumnRow { name: name.into(), kind: kind.into(), ty: ty.into(), position, order: order.into() }
    }

    #[test]
    fn a_table_in_a_comment_is_made_with_its_hidden_columns_and_its_options() {
        let described = "/*\nWarning: Table s.t omitted because it has constructs not compatible with CQL (was created via legacy \
                         API).\nApproximate structure, for reference:\n(this should not be used to reproduce this schema)\n\nCREATE TABLE \
                         s.t (\n    k int PRIMARY KEY,\n    a text\n) WITH COMPACT STORAGE\n    AND comment = 'it''s; of\n    AND two \
                         lines'\n    AND extensions = {}\n    AND gc_grace_seconds = 7;\n*/";
        let columns = [
            column("a", "static", "text", -1),
            column("column1", "clustering", "blob", 0),
            column("k", "partition_key", "int", 0),
            column("value", "regular", "blob", -1),
        ];
        assert!(is_needed(described, &columns));
        assert_eq!(
            create_text(("s", "t"), &columns, &[], described),
            "CREATE TABLE s.t (a text static, column1 blob, k int, value blob, PRIMARY KEY ((k), column1)) WITH CLUSTERING ORDER BY \
             (column1 ASC) AND comment = 'it''s; of\n    AND two lines' AND gc_grace_seconds = 7 AND extensions = {'helenus.flags': ''}"
        );
    }

    #[test]
    fn what_drop_compact_storage_leaves_has_a_type_and_a_name() {
        let columns = [
            column("", "regular", "map<text, text>", -1),
            column("Key", "partition_key", "int", 0),
            column("value", "regular", "empty", -1),
        ];
        let text = create_text(
            ("s", "t"),
            &columns,
            &["compound".to_owned()],
            "CREATE TABLE s.t (\n) WITH comment = '';",
        );
        assert_eq!(
            text,
            "CREATE TABLE s.t (value1 map<text, text>, \"Key\" int, value 'org.apache.cassandra.db.marshal.EmptyType', PRIMARY KEY \
             ((\"Key\"))) WITH comment = '' AND extensions = {'helenus.unnamed_column': 'value1'}"
        );
    }
}
