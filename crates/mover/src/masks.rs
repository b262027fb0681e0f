//! The masks of columns on both sides: a table of the target without the masks of the one here shows its clients what they never saw.
//!
//! `schema` compares the tables that are there already, and the cut all once more (`cut_masks`), because a mask may come or go meanwhile.
//!
//! Source: `system_schema.column_masks`, `dynamic_data_masking_enabled` of Cassandra 5.0.

use crate::attempts::ask;
use crate::versions::major_minor;
use helenus_cluster::{Cluster, ClusterError};
use helenus_model::schema::{ColumnMask, Table};
use helenus_model::types::{Elements, quote_identifier};
use helenus_wire::native::{Consistency, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The first version that has masks.
const SINCE: (u32, u32) = (5, 0);

/// A mask as the schema's tables have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    /// The function, with its keyspace.
    function: String,
    /// Types and values of its arguments after the column; `None` for null.
    arguments: Vec<(String, Option<String>)>,
}

/// The masks of tables, by table and column.
pub(crate) type Masks = BTreeMap<String, BTreeMap<String, Mask>>;

impl Mask {
    fn of(mask: &ColumnMask) -> Mask {
        let arguments = mask.arguments.iter();
        Mask {
            function: format!("{}.{}", mask.keyspace, mask.function),
            arguments: arguments.map(|of| (of.ty.to_string(), of.value.clone())).collect(),
        }
    }

    fn shown(&self) -> String {
        let arguments = self.arguments.iter().map(|(_, value)| value.as_deref().unwrap_or("null"));
        format!("{}({})", self.function, arguments.collect::<Vec<_>>().join(", "))
    }
}

/// The masks of a keyspace at the target. `only`: of this table alone.
///
/// # Errors
/// They cannot be read.
pub(crate) async fn there(
    cluster: &Cluster,
    (keyspace, only): (&str, Option<&str>),
) -> Result<Masks, ClusterError> {
    let mut masks = Masks::new();
    if major_minor(&cluster.topology().oldest_release()) < SINCE {
        return Ok(masks);
    }
    let query = format!(
        "SELECT table_name, column_name, function_keyspace, function_name, function_argument_types, function_argument_values, \
         function_argument_nulls FROM system_schema.column_masks WHERE keyspace_name = ?{}",
        if only.is_some() { " AND table_name = ?" } else { "" }
    );
    let names = [Some(keyspace), only].into_iter().flatten();
    let names: Vec<Value<'_>> = names.map(|name| Value::Bytes(name.as_bytes())).collect();
    let answer = ask(cluster, &query, &names, Consistency::One).await?;
    for row in answer.rows()?.iter() {
        let row = row?;
        let cells: Vec<&[u8]> = row.cells().map(Option::unwrap_or_default).collect();
        let [table, column, of, name, types, values, nulls] = cells[..] else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let list = |cell| Elements::of_list(cell).map(Option::unwrap_or_default);
        let arguments = list(types).zip(list(values)).zip(list(nulls));
        let arguments = arguments
            .map(|((ty, value), is_null)| (text(ty), (is_null != [1]).then(|| text(value))))
            .collect();
        let mask = Mask { function: format!("{}.{}", text(of), text(name)), arguments };
        masks.entry(text(table)).or_default().insert(text(column), mask);
    }
    Ok(masks)
}

/// What is different between the masks of a table and those at the target, a line each.
pub(crate) fn differences(table: &Table, there: &Masks) -> Vec<String> {
    let (name, none) = (format!("{}.{}", table.keyspace, table.name), BTreeMap::new());
    let here = of_table(table);
    let there = there.get(&*table.name).unwrap_or(&none);
    let columns: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let shown =
        |mask: Option<&Mask>| mask.map_or("no mask".to_owned(), |mask| format!("the mask {}", mask.shown()));
    let different = columns.into_iter().filter(|column| here.get(*column) != there.get(*column));
    let line = |column: &String| {
        format!(
            "{name}: column {column} has {} here and {} at the target; ALTER TABLE {name} ALTER {column} MASKED WITH .. or DROP MASKED \
             on one side",
            shown(here.get(column)),
            shown(there.get(column))
        )
    };
    different.map(line).collect()
}

/// A mask that differs at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedMask {
    pub(crate) column: String,
    /// The difference in words.
    pub(crate) text: String,
    /// What makes the mask there that of the table here.
    pub(crate) statement: String,
}

/// What makes the masks of a table at the target those of the table here.
pub(crate) fn wanted(table: &Table, there: &Masks) -> Vec<WantedMask> {
    let name = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
    let none = BTreeMap::new();
    let (here, of_target) = (of_table(table), there.get(&*table.name).unwrap_or(&none));
    let columns: BTreeSet<&String> = here.keys().chain(of_target.keys()).collect();
    let different = columns.into_iter().filter(|column| here.get(*column) != of_target.get(*column));
    // Both are in the order of the columns.
    let different = different.zip(differences(table, there));
    let mask = |(column, text): (&String, String)| {
        let alter = format!("ALTER TABLE {name} ALTER {}", quote_identifier(column));
        let statement = match table.masks.get(&**column) {
            Some(mask) => format!("{alter} MASKED WITH {mask}"),
            None => format!("{alter} DROP MASKED"),
        };
        WantedMask { column: column.clone(), text, statement }
    };
    different.map(mask).collect()
}

/// The masks of a table by column.
pub(crate) fn of_table(table: &Table) -> BTreeMap<String, Mask> {
    table.masks.iter().map(|(column, mask)| (column.to_string(), Mask::of(mask))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{MaskArgument, TableId};
    use helenus_model::types::CqlType;

    fn mask(function: &str, arguments: &[(CqlType, Option<&str>)]) -> ColumnMask {
        let argument = |(ty, value): &(CqlType, Option<&str>)| MaskArgument {
            ty: ty.clone(),
            value: value.map(str::to_owned),
        };
        let arguments = arguments.iter().map(argument).collect();
        ColumnMask { keyspace: "system".into(), function: function.into(), arguments }
    }

    #[test]
    fn every_difference_of_a_mask_is_told_and_equal_ones_are_not() {
        let kinds = [
            None,
            Some(mask("mask_default", &[])),
            Some(mask("mask_null", &[])),
            Some(mask("mask_inner", &[(CqlType::Int, Some("1")), (CqlType::Int, None)])),
            Some(mask("mask_inner", &[(CqlType::Int, Some("1")), (CqlType::Int, Some("2"))])),
            Some(mask("mask_replace", &[(CqlType::Text, Some(""))])),
            Some(mask("mask_replace", &[(CqlType::Text, None)])),
            Some(mask("mask_replace", &[(CqlType::Ascii, Some(""))])),
        ];
        let mut table = Table::new(("ks", "t"), TableId(Default::default()), []);
        for (at, here) in kinds.iter().enumerate() {
            for (other, there) in kinds.iter().enumerate() {
                table.masks = here.iter().map(|mask| ("v".into(), mask.clone())).collect();
                let of_target = there.iter().map(|mask| ("v".to_owned(), Mask::of(mask))).collect();
                let lines = differences(&table, &Masks::from([("t".to_owned(), of_target)]));
                assert_eq!(lines.is_empty(), at == other, "{here:?} {there:?}: {lines:?}");
                let of_target = there.iter().map(|mask| ("v".to_owned(), Mask::of(mask))).collect();
                let wanted = wanted(&table, &Masks::from([("t".to_owned(), of_target)]));
                let expected =
                    here.as_ref().map_or("DROP MASKED".to_owned(), |mask| format!("MASKED WITH {mask}"));
                let expected = format!("ALTER TABLE ks.t ALTER v {expected}");
                let wanted: Vec<_> =
                    wanted.into_iter().map(|of| (of.column, of.text, of.statement)).collect();
                let expected: Vec<_> =
                    lines.iter().map(|line| ("v".to_owned(), line.clone(), expected.clone())).collect();
                assert_eq!(wanted, expected);
            }
        }
        table.masks = [("v".into(), mask("mask_default", &[]))].into();
        assert!(differences(&table, &Masks::new())[0].contains("no mask at the target"));
    }
}
