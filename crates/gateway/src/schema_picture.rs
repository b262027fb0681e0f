//! A picture of the cluster's schema: a digest of each object's rows in `system_schema`. Two pictures tell which events were missed
//! while the control connection was away.
//!
//! Kept by `events`, which takes a part anew after each event, and the whole when events may have been missed.

use std::collections::BTreeMap;

use helenus_cluster::{Cluster, ClusterError, OwnedAnswer};
use helenus_wire::native::{Consistency, Reader, SchemaChange, SchemaTarget, SchemaVerb, Value};

/// A table of `system_schema`, and the column that names the object to which a row belongs. Without one it is the keyspace.
const TABLES: [(&str, Option<(&str, Kind)>); 10] = [
    ("keyspaces", None),
    ("tables", Some(("table_name", Kind::Table))),
    ("columns", Some(("table_name", Kind::Table))),
    ("dropped_columns", Some(("table_name", Kind::Table))),
    ("indexes", Some(("table_name", Kind::Table))),
    ("triggers", Some(("table_name", Kind::Table))),
    ("views", Some(("view_name", Kind::Table))),
    ("types", Some(("type_name", Kind::Type))),
    ("functions", Some(("function_name", Kind::Function))),
    ("aggregates", Some(("aggregate_name", Kind::Aggregate))),
];

/// The kinds of objects in a keyspace, in the order in which clients are told of them: a table may use a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Keyspace,
    Type,
    Table,
    Function,
    Aggregate,
}

/// An object: its kind, its name, and the types of a function's arguments.
type Name = (Kind, String, Vec<String>);

/// The digest of each object's rows, by keyspace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaPicture {
    keyspaces: BTreeMap<String, BTreeMap<Name, [u8; 16]>>,
}

impl SchemaPicture {
    /// The schema as a node of the cluster has it now.
    ///
    /// # Errors
    /// No node answers.
    pub async fn read(cluster: &Cluster) -> Result<SchemaPicture, ClusterError> {
        let mut picture = SchemaPicture::default();
        picture.add(cluster, None).await?;
        Ok(picture)
    }

    /// Takes one keyspace anew.
    ///
    /// # Errors
    /// No node answers; the picture is as before then.
    pub async fn renew(&mut self, cluster: &Cluster, keyspace: &str) -> Result<(), ClusterError> {
        let mut picture = SchemaPicture::default();
        picture.add(cluster, Some(keyspace)).await?;
        match picture.keyspaces.remove(keyspace) {
            Some(objects) => self.keyspaces.insert(keyspace.to_owned(), objects),
            None => self.keyspaces.remove(keyspace),
        };
        Ok(())
    }

    async fn add(&mut self, cluster: &Cluster, keyspace: Option<&str>) -> Result<(), ClusterError> {
        for (table, of) in TABLES {
            let all = format!("SELECT * FROM system_schema.{table}");
            let (text, values) = match keyspace {
                Some(name) => (format!("{all} WHERE keyspace_name = ?"), vec![Value::Bytes(name.as_bytes())]),
                None => (all, Vec::new()),
            };
            let answer = match cluster.query(&text, &values, Consistency::One).await {
                Ok(answer) => answer,
                // Older versions and other engines lack some of these tables.
                Err(error) if error.is_invalid() && table != "tables" => continue,
                Err(error) => return Err(error),
            };
            self.add_rows(&answer, of)?;
        }
        Ok(())
    }

    fn add_rows(&mut self, answer: &OwnedAnswer, of: Option<(&str, Kind)>) -> Result<(), ClusterError> {
        let rows = answer.rows()?;
        let columns = rows.metadata.columns.to_vec()?;
        let place = |name: &str| columns.iter().position(|column| *column.name == *name);
        let (keyspace, types) = (place("keyspace_name"), place("argument_types"));
        let named = of.map(|(column, kind)| (place(column), kind));
        for row in rows.iter() {
            let cells: Vec<Option<&[u8]>> = row?.cells().collect();
            let text = |at: Option<usize>| {
                let cell = at.and_then(|at| cells.get(at).copied().flatten()).unwrap_or_default();
                String::from_utf8_lossy(cell).into_owned()
            };
            let name = match named {
                None => (Kind::Keyspace, String::new(), Vec::new()),
                Some((at, kind)) => {
                    let types = types.and_then(|at| cells.get(at).copied().flatten()).map(texts_of);
                    (kind, text(at), types.unwrap_or_default())
                }
            };
            let digest = self.keyspaces.entry(text(keyspace)).or_default().entry(name).or_default();
            let mut context = md5::Context::new();
            context.consume(*digest);
            for cell in &cells {
                context.consume(cell.map_or(-1, |cell| cell.len() as i64).to_be_bytes());
                context.consume(cell.unwrap_or_default());
            }
            *digest = *context.finalize();
        }
        Ok(())
    }

    /// The events that lead from this picture to a later one.
    pub fn changes_to(&self, later: &SchemaPicture) -> Vec<SchemaChange<'static>> {
        let none = BTreeMap::new();
        let mut changes = Vec::new();
        for (keyspace, before) in &self.keyspaces {
            let Some(after) = later.keyspaces.get(keyspace) else {
                changes.push(change(SchemaVerb::Dropped, keyspace, &whole()));
                continue;
            };
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                changes.push(change(SchemaVerb::Dropped, keyspace, name));
            }
        }
        for (keyspace, after) in &later.keyspaces {
            let before = self.keyspaces.get(keyspace).unwrap_or(&none);
            for (name, digest) in after {
                match before.get(name) {
                    Some(known) if known == digest => {}
                    Some(_) => changes.push(change(SchemaVerb::Updated, keyspace, name)),
                    None => changes.push(change(SchemaVerb::Created, keyspace, name)),
                }
            }
        }
        changes
    }
}

fn whole() -> Name {
    (Kind::Keyspace, String::new(), Vec::new())
}

fn change(verb: SchemaVerb, keyspace: &str, name: &Name) -> SchemaChange<'static> {
    let (kind, name, types) = name.clone();
    let types = types.into_iter().map(Into::into).collect();
    let target = match kind {
        Kind::Keyspace => SchemaTarget::Keyspace,
        Kind::Type => SchemaTarget::Type(name.into()),
        Kind::Table => SchemaTarget::Table(name.into()),
        Kind::Function => SchemaTarget::Function(name.into(), types),
        Kind::Aggregate => SchemaTarget::Aggregate(name.into(), types),
    };
    SchemaChange { verb, keyspace: keyspace.to_owned().into(), target }
}

/// The texts of a list.
fn texts_of(cell: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(cell);
    let count = reader.int().unwrap_or_default();
    let text = |_| Some(String::from_utf8_lossy(reader.bytes().ok()??).into_owned());
    (0..count).map_while(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(objects: &[(&str, Kind, &str, u8)]) -> SchemaPicture {
        let mut picture = SchemaPicture::default();
        for (keyspace, kind, name, digest) in objects {
            let objects = picture.keyspaces.entry((*keyspace).to_owned()).or_default();
            objects.insert((*kind, (*name).to_owned(), Vec::new()), [*digest; 16]);
        }
        picture
    }

    #[test]
    fn what_differs_between_two_pictures_is_told_as_events() {
        let before = picture(&[
            ("a", Kind::Keyspace, "", 1),
            ("a", Kind::Table, "same", 1),
            ("a", Kind::Table, "altered", 1),
            ("a", Kind::Table, "gone", 1),
            ("b", Kind::Keyspace, "", 1),
            ("b", Kind::Table, "t", 1),
        ]);
        let after = picture(&[
            ("a", Kind::Keyspace, "", 1),
            ("a", Kind::Table, "same", 1),
            ("a", Kind::Table, "altered", 2),
            ("a", Kind::Type, "new", 1),
            ("c", Kind::Keyspace, "", 1),
            ("c", Kind::Table, "t", 1),
        ]);
        use SchemaVerb::{Created, Dropped, Updated};
        let table = |name: &'static str| SchemaTarget::Table(name.into());
        let expected = [
            (Dropped, "a", table("gone")),
            (Dropped, "b", SchemaTarget::Keyspace),
            (Created, "a", SchemaTarget::Type("new".into())),
            (Updated, "a", table("altered")),
            (Created, "c", SchemaTarget::Keyspace),
            (Created, "c", table("t")),
        ];
        let expected =
            expected.map(|(verb, keyspace, target)| SchemaChange { verb, keyspace: keyspace.into(), target });
        assert_eq!(before.changes_to(&after), expected);
        assert_eq!(after.changes_to(&after), []);
    }
}
