//! Prints the definitions of keyspaces and families in the layout of `cassandra-cli`.

use super::session::CliSession;
use super::values::comparator;
use crate::commands::client::nothing;
use anyhow::Result;
use helenus_wire::thrift::{CfDef, Field, IndexType, KsDef, Map, Method, ReplyBody, Text, args};
use std::io;

impl CliSession {
    pub(super) fn show_keyspaces(&mut self) -> Result<()> {
        let keyspaces = self.client.call::<Vec<KsDef<'_>>>(Method::DescribeKeyspaces, nothing)?;
        keyspaces.unwrap_or_default().iter().try_for_each(print_keyspace)?;
        Ok(())
    }

    pub(super) fn describe_cluster(&mut self) -> Result<()> {
        say!("Cluster Information:")?;
        for (title, method) in [
            ("Name", Method::DescribeClusterName),
            ("Snitch", Method::DescribeSnitch),
            ("Partitioner", Method::DescribePartitioner),
        ] {
            say!("   {title}: {}", self.client.call::<&str>(method, nothing)?.unwrap_or_default())?;
        }
        say!("   Schema versions: ")?;
        let versions = self.client.call::<Map<&str, Vec<&str>>>(Method::DescribeSchemaVersions, nothing)?;
        for (version, nodes) in versions.into_iter().flat_map(|map| map.0) {
            say!("\t{version}: [{}]\n", nodes.join(", "))?;
        }
        Ok(())
    }

    /// Describes a keyspace, or a family of the keyspace in use. Without a name: the keyspace in use.
    pub(super) fn describe(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name.map(str::to_owned).or_else(|| self.keyspace.clone()) else {
            say!("Authenticate to a Keyspace, before using `describe` or `describe <column_family>`")?;
            return Ok(());
        };
        let asked = args::OfKeyspace { keyspace: &name };
        let found = self.client.ask::<KsDef<'_>>(Method::DescribeKeyspace, |out| asked.write(out))?;
        if let ReplyBody::Success(keyspace) = found {
            return Ok(print_keyspace(&keyspace)?);
        }
        let shown = self.definition(&name, |definition| Ok(print_family(&definition)?));
        if shown.is_err() {
            say!(
                "Sorry, no Keyspace nor (non-CQL3) ColumnFamily was found with name: {name} (if this is a CQL3 table, you \
                 should use cqlsh instead)"
            )?;
        }
        Ok(())
    }
}

fn print_keyspace(keyspace: &KsDef<'_>) -> io::Result<()> {
    say!("Keyspace: {}:", keyspace.name)?;
    say!("  Replication Strategy: {}", keyspace.strategy_class)?;
    say!("  Durable Writes: {}", keyspace.durable_writes.unwrap_or(true))?;
    say!("    Options: [{}]", pairs(&keyspace.strategy_options).join(", "))?;
    say!("  Column Families:")?;
    keyspace.cf_defs.iter().try_for_each(print_family)
}

fn pairs(map: &Option<Map<Text<'_>, Text<'_>>>) -> Vec<String> {
    let pairs = map.iter().flat_map(|map| &map.0);
    pairs.map(|(name, value)| format!("{name}:{value}")).collect()
}

fn print_family(family: &CfDef<'_>) -> io::Result<()> {
    let is_super = family.column_type.as_deref() == Some("Super");
    let text = |text: &Option<Text<'_>>| text.as_deref().unwrap_or_default().to_owned();
    say!("    ColumnFamily: {}{}", family.name, if is_super { " (Super)" } else { "" })?;
    if let Some(comment) = family.comment.as_deref().filter(|comment| !comment.is_empty()) {
        say!("    \"{comment}\"")?;
    }
    say!("      Key Validation Class: {}", text(&family.key_validation_class))?;
    say!("      Default column value validator: {}", text(&family.default_validation_class))?;
    let within = if is_super { format!("/{}", text(&family.subcomparator_type)) } else { String::new() };
    say!("      Cells sorted by: {}{within}", text(&family.comparator_type))?;
    say!("      GC grace seconds: {}", family.gc_grace_seconds.unwrap_or_default())?;
    say!(
        "      Compaction min/max thresholds: {}/{}",
        family.min_compaction_threshold.unwrap_or_default(),
        family.max_compaction_threshold.unwrap_or_default()
    )?;
    say!("      Read repair chance: {:?}", family.read_repair_chance.unwrap_or_default())?;
    say!("      DC Local Read repair chance: {:?}", family.dclocal_read_repair_chance.unwrap_or_default())?;
    say!("      Caching: {}", text(&family.caching))?;
    say!("      Default time to live: {}", family.default_time_to_live.unwrap_or_default())?;
    say!("      Bloom Filter FP chance: {:?}", family.bloom_filter_fp_chance.unwrap_or_default())?;
    say!("      Speculative Retry: {}", text(&family.speculative_retry))?;
    print_columns(family, is_super)?;
    say!("      Compaction Strategy: {}", text(&family.compaction_strategy))?;
    for (title, map) in [
        ("Compaction Strategy", &family.compaction_strategy_options),
        ("Compression", &family.compression_options),
    ] {
        let options = map.iter().flat_map(|map| &map.0);
        let mut options = options.peekable();
        if options.peek().is_some() {
            say!("      {title} Options:")?;
        }
        options.try_for_each(|(name, value)| say!("        {name}: {value}"))?;
    }
    Ok(())
}

fn print_columns(family: &CfDef<'_>, is_super: bool) -> io::Result<()> {
    let columns = family.column_metadata.as_deref().unwrap_or_default();
    if columns.is_empty() {
        return Ok(());
    }
    let class = if is_super { &family.subcomparator_type } else { &family.comparator_type };
    let names = comparator(class.as_deref().unwrap_or("BytesType"));
    say!("      Column Metadata:")?;
    for column in columns {
        let name = names.as_ref().map_or_else(|_| String::new(), |names| names.text_of(&column.name));
        say!("        Column Name: {name}")?;
        say!("          Validation Class: {}", column.validation_class)?;
        if let Some(index) = &column.index_name {
            say!("          Index Name: {index}")?;
        }
        if let Some(kind) = column.index_type {
            let kind = match kind {
                IndexType::Keys => "KEYS",
                IndexType::Custom => "CUSTOM",
                IndexType::Composites => "COMPOSITES",
            };
            say!("          Index Type: {kind}")?;
        }
    }
    Ok(())
}
