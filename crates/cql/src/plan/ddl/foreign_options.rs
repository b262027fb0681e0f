//! Options of tables and keyspaces as other versions of Cassandra and other makers write them into a `schema.cql`: what has another
//! name here gets it, and what is not known here is left out, with a note.
//!
//! Called for statements of schema files alone, never for those of clients. Cassandra 3.x: `CFProperties`, `TableAttributes` and
//! `CompressionParams` of 3.11 (`sstable_compression`, `chunk_length_kb`, `crc_check_chance` of compression, the chances of read repair).

use super::options::{NAMES, check_names, new_table_options};
use super::properties::Properties;
use crate::error::Result;
use crate::syntax::ast::{Ident, Literal, LiteralKind, Property, PropertyValue};
use helenus_model::schema::TableOptions;
use std::borrow::Cow;

/// An option that was left out, or a part of one, as the note says it.
pub(crate) struct LeftOut {
    /// Such as `read_repair_chance`, or `compaction 'class'`.
    pub(crate) option: String,
    /// Why; `None` for an option that is not known here.
    pub(crate) problem: Option<String>,
}

/// Changes the options of a CREATE TABLE until they can be taken over the options `base`.
pub(crate) fn adapt_table_options(properties: &mut Vec<Property<'_>>, base: &TableOptions) -> Vec<LeftOut> {
    rename_compression(properties);
    let mut left_out = Vec::new();
    let mut kept: Vec<Property<'_>> = Vec::new();
    for property in std::mem::take(properties) {
        let name = property.name.as_str().to_owned();
        // Extensions say how a table is made too; they are checked with it.
        if name == "extensions" || fits(&kept, &property, base).is_ok() {
            kept.push(property);
            continue;
        }
        if !NAMES.contains(&name.as_str()) {
            left_out.push(LeftOut { option: name, problem: None });
            continue;
        }
        kept.extend(part(&kept, property, base, &mut left_out));
    }
    *properties = kept;
    left_out
}

/// The entries of an option that can be taken, if it is a map; the others are left out.
fn part<'a>(
    kept: &[Property<'a>],
    property: Property<'a>,
    base: &TableOptions,
    left_out: &mut Vec<LeftOut>,
) -> Option<Property<'a>> {
    let name = property.name.as_str().to_owned();
    let whole = fits(kept, &property, base).err().map(|problem| problem.to_string());
    let left = |problem| LeftOut { option: name.clone(), problem };
    let PropertyValue::Map(pairs, pos) = &property.value else {
        left_out.push(left(whole));
        return None;
    };
    // The class first: it says which entries there may be.
    let (class, others): (Vec<_>, Vec<_>) = pairs.iter().cloned().partition(|(key, _)| key.text == "class");
    let mut taken = Property { value: PropertyValue::Map(class, *pos), ..property.clone() };
    if fits(kept, &taken, base).is_err() {
        left_out.push(left(whole));
        return None;
    }
    for pair in others {
        let key = pair.0.text.to_string();
        let mut more = taken.clone();
        if let PropertyValue::Map(pairs, _) = &mut more.value {
            pairs.push(pair);
        }
        match fits(kept, &more, base) {
            Ok(()) => taken = more,
            Err(problem) => left_out
                .push(LeftOut { option: format!("{name} '{key}'"), problem: Some(problem.to_string()) }),
        }
    }
    Some(taken)
}

fn fits(kept: &[Property<'_>], more: &Property<'_>, base: &TableOptions) -> Result<()> {
    let all: Vec<Property<'_>> =
        kept.iter().filter(|kept| kept.name.as_str() != "extensions").chain([more]).cloned().collect();
    let properties = Properties::new(&all);
    check_names(&properties)?;
    new_table_options(&properties, base).map(|_| ())
}

/// Gives the entries of `compression` their names of today.
fn rename_compression(properties: &mut Vec<Property<'_>>) {
    let mut chance = None;
    for property in properties.iter_mut().filter(|property| property.name.as_str() == "compression") {
        let PropertyValue::Map(pairs, _) = &mut property.value else { continue };
        for (key, _) in pairs.iter_mut() {
            match &*key.text {
                "sstable_compression" => key.text = Cow::Borrowed("class"),
                "chunk_length_kb" => key.text = Cow::Borrowed("chunk_length_in_kb"),
                _ => {}
            }
        }
        let at = pairs.iter().position(|(key, _)| key.text == "crc_check_chance");
        if let Some(at) = at {
            let (key, value) = pairs.remove(at);
            chance = Some((key, value, property.name.clone()));
        }
        let has_none = pairs.iter().any(|(key, value)| key.text == "class" && value.text.is_empty());
        if has_none {
            let text = |text| Literal {
                kind: LiteralKind::String,
                text: Cow::Borrowed(text),
                pos: property.name.pos,
            };
            *pairs = vec![(text("enabled"), text("false"))];
        }
    }
    if let Some((_, value, name)) = chance
        && !properties.iter().any(|property| property.name.as_str() == "crc_check_chance")
    {
        let name = Ident { name: Cow::Borrowed("crc_check_chance"), pos: name.pos };
        properties.push(Property { name, value: PropertyValue::Literal(value) });
    }
}

/// Removes the options of a CREATE KEYSPACE that are not known here, such as ScyllaDB's `tablets`.
pub(crate) fn adapt_keyspace_options(properties: &mut Vec<Property<'_>>) -> Vec<LeftOut> {
    let is_known =
        |property: &Property<'_>| ["durable_writes", "replication"].contains(&property.name.as_str());
    let left = properties.extract_if(.., |property| !is_known(property));
    left.map(|property| LeftOut { option: property.name.as_str().to_owned(), problem: None }).collect()
}
