//! The guardrails among the settings.

use std::collections::BTreeSet;

use helenus_cql::guardrails::{Feature, Guardrails, ListedValues, Threshold};

use super::options::OPTIONS;
use super::settings::Settings;
use super::value::Value;

/// The size that the disk counts as for `data_disk_usage_percentage`.
const DISK_SIZE: &str = "data_disk_usage_max_disk_size";

/// Collects the guardrails from the settings. A guardrail that is not set is off.
pub(super) fn guardrails(settings: &Settings) -> Guardrails {
    let threshold = |name: &str| Threshold {
        warn: number(settings, &format!("{name}_warn_threshold")),
        fail: number(settings, &format!("{name}_fail_threshold")),
    };
    let words = |name: &str| ListedValues {
        warned: listed(settings, &format!("{name}_warned")),
        ignored: BTreeSet::new(),
        disallowed: listed(settings, &format!("{name}_disallowed")),
    };
    let is_off = |key: &str| settings.get(key) == Some(&Value::Boolean(false));
    let features = OPTIONS.iter().filter_map(|option| Some((option.key, Feature::of_key(option.key)?)));
    Guardrails {
        keyspaces: threshold("keyspaces"),
        tables: threshold("tables"),
        columns_per_table: threshold("columns_per_table"),
        fields_per_udt: threshold("fields_per_udt"),
        vector_dimensions: threshold("vector_dimensions"),
        secondary_indexes_per_table: threshold("secondary_indexes_per_table"),
        partition_keys_in_select: threshold("partition_keys_in_select"),
        in_select_cartesian_product: threshold("in_select_cartesian_product"),
        page_size: threshold("page_size"),
        items_per_collection: threshold("items_per_collection"),
        collection_size: threshold("collection_size"),
        column_value_size: threshold("column_value_size"),
        partition_size: threshold("partition_size"),
        partition_tombstones: threshold("partition_tombstones"),
        data_disk_usage: threshold("data_disk_usage_percentage"),
        data_disk_usage_max_bytes: number(settings, DISK_SIZE),
        minimum_timestamp_us: threshold("minimum_timestamp"),
        maximum_timestamp_us: threshold("maximum_timestamp"),
        minimum_replication_factor: threshold("minimum_replication_factor"),
        maximum_replication_factor: threshold("maximum_replication_factor"),
        table_properties: ListedValues {
            ignored: listed(settings, "table_properties_ignored"),
            ..words("table_properties")
        },
        read_consistency_levels: words("read_consistency_levels"),
        write_consistency_levels: words("write_consistency_levels"),
        disabled: features.filter(|(key, _)| is_off(key)).map(|(_, feature)| feature).collect(),
    }
}

/// Whether a key is a guardrail or a similar limit on statements. Such keys may change at run time.
pub fn judges_statements(key: &str) -> bool {
    const ENDS: [&str; 5] = ["_warn_threshold", "_fail_threshold", "_warned", "_ignored", "_disallowed"];
    ENDS.iter().any(|end| key.ends_with(end)) || key == DISK_SIZE || Feature::of_key(key).is_some()
}

/// A limit in bytes, microseconds or a count; 0 and less mean none.
fn number(settings: &Settings, key: &str) -> Option<u64> {
    let number = match settings.get(key)? {
        Value::Size(bytes) => *bytes,
        Value::Integer(number) => u64::try_from(*number).unwrap_or(0),
        Value::Duration(time) => u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        Value::Boolean(_) | Value::Text(_) | Value::Encryption(_) | Value::Audit(_) => 0,
    };
    (number > 0).then_some(number)
}

fn listed(settings: &Settings, key: &str) -> BTreeSet<String> {
    match settings.get(key) {
        Some(Value::Text(text)) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            let is_level = key.contains("consistency");
            words.map(|word| if is_level { word.to_uppercase() } else { word.to_lowercase() }).collect()
        }
        _ => BTreeSet::new(),
    }
}
