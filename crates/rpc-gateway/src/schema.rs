//! Reads the cluster's schema, and shows its tables as column families.

use crate::families::family_of;
use helenus_cluster::{Cluster, ClusterError};
use helenus_engine::parse_type;
use helenus_model::schema::{
    Column, ColumnKind, Index, IndexKind, Keyspace, Schema, Table, TableId, TableOptions,
};
use helenus_wire::native::{Consistency, Reader};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// The schema as the interface shows it.
pub(crate) struct Families {
    pub(crate) schema: Arc<Schema>,
    /// Why tables are no families, by keyspace and name.
    reasons: HashMap<(Arc<str>, Arc<str>), String>,
}

impl Families {
    /// Why a table is no family.
    pub(crate) fn reason(&self, table: &Table) -> String {
        let found = self.reasons.get(&(Arc::clone(&table.keyspace), Arc::clone(&table.name)));
        found
            .cloned()
            .unwrap_or_else(|| format!("table {} cannot be used by RPC; use CQL for it", table.name))
    }

    /// Reads the schema of a cluster. `epoch`: the number of this picture.
    ///
    /// # Errors
    /// No node answers.
    pub(crate) async fn read(cluster: &Cluster, epoch: u64) -> Result<Families, ClusterError> {
        let version = Rows::of(cluster, "system.local").await?;
        let version = version.0.first().and_then(|row| row.uuid("schema_version"));
        let mut keyspaces = BTreeMap::new();
        for row in Rows::of(cluster, "system_schema.keyspaces").await?.0 {
            let name: Arc<str> = row.text("keyspace_name").into();
            let keyspace = Keyspace {
                name: Arc::clone(&name),
                durable_writes: row.bytes("durable_writes") != Some(&[0]),
                replication: row.map("replication"),
                tables: BTreeMap::new(),
                types: BTreeMap::new(),
            };
            keyspaces.insert(name, keyspace);
        }
        let mut columns: HashMap<(String, String), Vec<(Column, i32)>> = HashMap::new();
        let mut unknown: HashMap<(String, String), String> = HashMap::new();
        for row in Rows::of(cluster, "system_schema.columns").await?.0 {
            let table = (row.text("keyspace_name"), row.text("table_name"));
            let (name, ty) = (row.text("column_name"), row.text("type"));
            // User-defined types are not read, so their columns are unknown.
            match parse_type(&ty, &table.0, &BTreeMap::new()) {
                Some(ty) => {
                    let kind = match row.text("kind").as_str() {
                        "partition_key" => ColumnKind::PartitionKey,
                        "clustering" => ColumnKind::Clustering,
                        "static" => ColumnKind::Static,
                        _ => ColumnKind::Regular,
                    };
                    let mut column = Column::new(&name, kind, ty);
                    column.reversed = row.text("clustering_order") == "desc";
                    columns.entry(table).or_default().push((column, row.int("position")));
                }
                None => {
                    unknown.insert(table, format!("its column {name} has the type {ty}"));
                }
            }
        }
        let mut indexes = indexes(cluster).await?;
        let mut reasons = HashMap::new();
        for row in Rows::of(cluster, "system_schema.tables").await?.0 {
            let names = (row.text("keyspace_name"), row.text("table_name"));
            let Some(keyspace) = keyspaces.get_mut(names.0.as_str()) else { continue };
            let mut columns = columns.remove(&names).unwrap_or_default();
            columns.sort_by_key(|(column, position)| (column.kind, *position));
            let id = TableId(row.uuid("id").unwrap_or_default());
            let columns = columns.into_iter().map(|(column, _)| column);
            let mut table = Table::new((&names.0, &names.1), id, columns);
            table.flags = row.texts("flags");
            table.options = options(&row);
            table.indexes = indexes.remove(&names).unwrap_or_default();
            let shown = match unknown.get(&names) {
                Some(why) => Err(format!("table {} cannot be used by RPC: {why}; use CQL for it", names.1)),
                None => family_of(&table),
            };
            let table = shown.unwrap_or_else(|why| {
                reasons.insert((Arc::clone(&table.keyspace), Arc::clone(&table.name)), why);
                // Not the flags of a family.
                Table { flags: vec!["compound".to_owned()], ..table }
            });
            keyspace.tables.insert(Arc::clone(&table.name), Arc::new(table));
        }
        let keyspaces = keyspaces.into_iter().map(|(name, keyspace)| (name, Arc::new(keyspace)));
        let schema = Schema { keyspaces: keyspaces.collect(), version: version.unwrap_or_default(), epoch };
        Ok(Families { schema: Arc::new(schema), reasons })
    }
}

/// The indexes of the tables, by keyspace and name. The cluster calls an index of its own COMPOSITES; in a definition of a family, which
/// names the columns of partitions, it is KEYS.
async fn indexes(
    cluster: &Cluster,
) -> Result<HashMap<(String, String), BTreeMap<Arc<str>, Arc<Index>>>, ClusterError> {
    let mut indexes: HashMap<_, BTreeMap<Arc<str>, Arc<Index>>> = HashMap::new();
    for row in Rows::of(cluster, "system_schema.indexes").await?.0 {
        let kind = match row.text("kind").as_str() {
            "CUSTOM" => IndexKind::Custom,
            _ => IndexKind::Keys,
        };
        let name: Arc<str> = row.text("index_name").into();
        let (id, options) = (TableId(Uuid::nil()), row.map("options"));
        let index = Arc::new(Index { name: Arc::clone(&name), id, kind, options });
        let of_table = (row.text("keyspace_name"), row.text("table_name"));
        indexes.entry(of_table).or_default().insert(name, index);
    }
    Ok(indexes)
}

fn options(row: &Row) -> TableOptions {
    let mut options = TableOptions {
        comment: row.text("comment"),
        caching: row.map("caching"),
        compaction: row.map("compaction"),
        compression: row.map("compression"),
        default_time_to_live_s: row.int("default_time_to_live"),
        gc_grace_seconds: row.int("gc_grace_seconds"),
        memtable_flush_period_in_ms: row.int("memtable_flush_period_in_ms"),
        min_index_interval: row.int("min_index_interval"),
        max_index_interval: row.int("max_index_interval"),
        speculative_retry: row.text("speculative_retry"),
        ..TableOptions::default()
    };
    if let Some(chance) = row.bytes("bloom_filter_fp_chance").and_then(|bytes| bytes.try_into().ok()) {
        options.bloom_filter_fp_chance = f64::from_be_bytes(chance);
    }
    options
}

/// The rows of a system table.
struct Rows(Vec<Row>);

/// The cells of a row by name.
struct Row(HashMap<String, Vec<u8>>);

impl Rows {
    async fn of(cluster: &Cluster, table: &str) -> Result<Rows, ClusterError> {
        let answer = cluster.query(&format!("SELECT * FROM {table}"), &[], Consistency::One).await?;
        let rows = answer.rows()?;
        let columns = rows.metadata.columns.to_vec()?;
        let mut all = Vec::with_capacity(rows.row_count);
        for row in rows.iter() {
            let cells = columns.iter().zip(row?.cells());
            let cells = cells.filter_map(|(column, cell)| Some((column.name.to_string(), cell?.to_vec())));
            all.push(Row(cells.collect()));
        }
        Ok(Rows(all))
    }
}

impl Row {
    fn bytes(&self, column: &str) -> Option<&[u8]> {
        self.0.get(column).map(Vec::as_slice)
    }

    fn text(&self, column: &str) -> String {
        String::from_utf8_lossy(self.bytes(column).unwrap_or_default()).into_owned()
    }

    fn int(&self, column: &str) -> i32 {
        self.bytes(column).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes)
    }

    fn uuid(&self, column: &str) -> Option<Uuid> {
        Uuid::from_slice(self.bytes(column)?).ok()
    }

    fn texts(&self, column: &str) -> Vec<String> {
        let mut reader = Reader::new(self.bytes(column).unwrap_or_default());
        let count = reader.int().unwrap_or_default();
        let text = |_| Some(String::from_utf8_lossy(reader.bytes().ok()??).into_owned());
        (0..count).map_while(text).collect()
    }

    fn map(&self, column: &str) -> BTreeMap<String, String> {
        let mut reader = Reader::new(self.bytes(column).unwrap_or_default());
        let count = reader.int().unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut entry = |_| Some((text(reader.bytes().ok()??), text(reader.bytes().ok()??)));
        (0..count).map_while(&mut entry).collect()
    }
}
