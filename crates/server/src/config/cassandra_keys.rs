//! How each key of Cassandra 5.0.9's `cassandra.yaml` is treated (`org.apache.cassandra.config.Config`, all 409 keys).
//!
//! A key is an option of Helenus (`options`), or is refused because ignoring it would reduce safety or widen access
//! (`REFUSED_KEYS`), or has no effect. Keys without effect are reported once when a file contains them: either they can have
//! no effect on one machine (`NOT_APPLICABLE`), or Helenus does not implement them yet (`NOT_BUILT`).

/// Keys about other nodes, the JVM, or parts of Cassandra that have no counterpart here.
const NOT_APPLICABLE: &str = "\
    intersect_filtering_query_warned intersect_filtering_query_enabled \
    permissions_cache_max_entries permissions_update_interval \
    permissions_cache_active_update roles_cache_max_entries roles_update_interval \
    roles_cache_active_update credentials_cache_max_entries credentials_update_interval \
    credentials_cache_active_update auto_bootstrap hinted_handoff_enabled \
    hinted_handoff_disabled_datacenters max_hint_window hints_directory hint_window_persistent_enabled \
    force_new_prepared_statement_behaviour seed_provider disk_access_mode use_deterministic_table_id \
    initial_token num_tokens allocate_tokens_for_keyspace allocate_tokens_for_local_replication_factor \
    repair_request_timeout streaming_connections_per_host streaming_keep_alive_period internode_timeout \
    stream_transfer_task_timeout phi_convict_threshold repair_session_max_tree_depth repair_session_space \
    concurrent_merkle_tree_requests use_offheap_merkle_trees storage_port ssl_storage_port listen_address \
    listen_interface listen_interface_prefer_ipv6 broadcast_address listen_on_broadcast_address \
    internode_authenticator traverse_auth_from_root rpc_interface_prefer_ipv6 internode_max_message_size \
    internode_socket_send_buffer_size internode_socket_receive_buffer_size \
    internode_application_send_queue_capacity internode_application_send_queue_reserve_endpoint_capacity \
    internode_application_send_queue_reserve_global_capacity internode_application_receive_queue_capacity \
    internode_application_receive_queue_reserve_endpoint_capacity \
    internode_application_receive_queue_reserve_global_capacity internode_tcp_connect_timeout \
    internode_tcp_user_timeout internode_streaming_tcp_user_timeout native_transport_max_threads \
    native_transport_flush_in_batches_legacy \
    native_transport_receive_queue_capacity compressed_read_ahead_buffer_size \
    reject_repair_compaction_threshold max_streaming_retries stream_throughput_outbound \
    inter_dc_stream_throughput_outbound entire_sstable_stream_throughput_outbound \
    entire_sstable_inter_dc_stream_throughput_outbound local_system_data_file_directory \
    saved_caches_directory cdc_enabled cdc_block_writes cdc_on_repair_enabled cdc_raw_directory \
    cdc_free_space_check_interval endpoint_snitch dynamic_snitch dynamic_snitch_update_interval \
    dynamic_snitch_reset_interval dynamic_snitch_badness_threshold failure_detector \
    server_encryption_options internode_compression hinted_handoff_throttle batchlog_replay_throttle \
    batchlog_endpoint_strategy max_hints_delivery_threads hints_flush_period max_hints_file_size \
    max_hints_size_per_host hints_compression auto_hints_cleanup_enabled transfer_hints_on_decommission \
    use_creation_time_for_hint_ttl paxos_cache_size networking_cache_size file_cache_enabled \
    file_cache_round_up buffer_pool_use_heap_if_exhausted disk_optimization_strategy \
    disk_optimization_estimate_percentile disk_optimization_page_cross_chance inter_dc_tcp_nodelay \
    replica_filtering_protection index_summary_capacity index_summary_resize_interval gc_log_threshold \
    ideal_consistency_level windows_timer_interval otc_coalescing_strategy otc_coalescing_window_us \
    otc_coalescing_enough_coalesced_messages otc_backlog_expiration_interval_ms \
    transient_replication_enabled back_pressure_enabled back_pressure_strategy concurrent_validations \
    repair_command_pool_full_strategy repair_command_pool_size block_for_peers_timeout_in_secs \
    block_for_peers_in_remote_dcs stream_entire_sstables skip_stream_disk_space_check \
    repaired_data_tracking_for_range_reads_enabled repaired_data_tracking_for_partition_reads_enabled \
    report_unconfirmed_repaired_data_mismatches snapshot_on_repaired_data_mismatch \
    validation_preview_purge_head_start auth_cache_warming_enabled auth_read_consistency_level \
    auth_write_consistency_level denylist_writes_enabled denylist_reads_enabled denylist_range_reads_enabled \
    denylist_refresh denylist_initial_load_retry denylist_max_keys_per_table denylist_max_keys_total \
    denylist_consistency_level log_out_of_token_range_requests reject_out_of_token_range_requests \
    initial_range_tombstone_list_allocation_size range_tombstone_list_growth_factor \
    snapshot_on_duplicate_row_detection check_for_duplicate_rows_during_reads \
    check_for_duplicate_rows_during_compaction auto_optimise_inc_repair_streams \
    auto_optimise_full_repair_streams auto_optimise_preview_repair_streams uuid_sstable_identifiers_enabled \
    internode_error_reporting_exclusions invalid_legacy_protocol_magic_no_spam_enabled \
    streaming_state_expires streaming_state_size streaming_stats_enabled streaming_slow_events_log_timeout \
    repair_state_expires repair_state_size paxos_variant skip_paxos_repair_on_topology_change \
    paxos_purge_grace_period paxos_on_linearizability_violations paxos_state_purging paxos_repair_enabled \
    paxos_topology_repair_no_dc_checks paxos_topology_repair_strict_each_quorum \
    skip_paxos_repair_on_topology_change_keyspaces paxos_contention_wait_randomizer \
    paxos_contention_min_wait paxos_contention_max_wait paxos_contention_min_delta paxos_repair_parallelism \
    client_request_size_metrics_enabled repair dump_heap_on_uncaught_exception heap_dump_path \
    severity_during_decommission storage_compatibility_mode paxos_repair_race_wait \
    commitlog_sync_group_window commitlog_max_compression_buffers_in_pool periodic_commitlog_sync_lag_block \
    gc_warn_threshold client_error_reporting_exclusions default_keyspace_rf \
    sstable_preemptive_open_interval memtable_allocation_type cql_start_time \
    enforce_native_deadline_for_hints truncate_request_timeout auto_repair materialized_views_on_repair_enabled \
    repair_disk_headroom_reject_ratio force_optimized_index_status_format";

/// Keys that could have an effect on one machine, but are not implemented yet.
const NOT_BUILT: &str = "\
    crypto_provider request_timeout counter_write_request_timeout cas_contention_timeout concurrent_writes \
    concurrent_counter_writes concurrent_materialized_view_writes memtable_flush_writers \
    memtable_offheap_space memtable_cleanup_threshold memtable native_transport_rate_limiting_enabled \
    native_transport_max_requests_per_second max_value_size snapshot_before_compaction auto_snapshot \
    auto_snapshot_ttl snapshot_links_per_second column_index_size column_index_cache_size \
    min_free_space_per_drive max_space_usable_for_compactions_in_percentage \
    concurrent_materialized_view_builders concurrent_index_builders sstable commitlog_total_space \
    commitlog_compression flush_compression commitlog_disk_access_mode incremental_backups trickle_fsync \
    trickle_fsync_interval key_cache_migrate_during_compaction key_cache_invalidate_after_sstable_deletion \
    key_cache_keys_to_save key_cache_size key_cache_save_period row_cache_class_name row_cache_size \
    row_cache_save_period row_cache_keys_to_save counter_cache_size counter_cache_save_period \
    counter_cache_keys_to_save cache_load_timeout read_thresholds_enabled \
    coordinator_read_size_warn_threshold coordinator_read_size_fail_threshold local_read_size_warn_threshold \
    local_read_size_fail_threshold row_index_read_size_warn_threshold row_index_read_size_fail_threshold \
    trace_type_query_ttl trace_type_repair_ttl user_defined_functions_enabled \
    scripted_user_defined_functions_enabled materialized_views_enabled sasi_indexes_enabled \
    use_statements_enabled user_defined_functions_threads_enabled allow_insecure_udfs \
    allow_extra_insecure_udfs user_defined_functions_warn_timeout user_defined_functions_fail_timeout \
    user_function_timeout_policy automatic_sstable_upgrade max_concurrent_automatic_sstable_upgrades \
    corrupted_tombstone_strategy diagnostic_events_enabled sai_options autocompaction_on_startup_enabled \
    materialized_views_per_table_warn_threshold materialized_views_per_table_fail_threshold \
    default_secondary_index default_secondary_index_enabled \
    \
    \
    sai_sstable_indexes_per_query_warn_threshold \
    sai_sstable_indexes_per_query_fail_threshold sai_string_term_size_warn_threshold \
    sai_string_term_size_fail_threshold sai_frozen_term_size_warn_threshold \
    sai_frozen_term_size_fail_threshold sai_vector_term_size_warn_threshold \
    sai_vector_term_size_fail_threshold startup_checks sstable_read_rate_persistence_enabled \
    max_top_size_partition_count max_top_tombstone_partition_count min_tracked_partition_size \
    min_tracked_partition_tombstone_count top_partitions_enabled default_compaction \
    native_transport_queue_max_item_age_threshold native_transport_min_backoff_on_queue_overload \
    native_transport_max_backoff_on_queue_overload native_transport_timeout \
    consecutive_message_errors_threshold request_timeout_in_ms counter_write_request_timeout_in_ms \
    cas_contention_timeout_in_ms memtable_offheap_space_in_mb max_value_size_in_mb column_index_size_in_kb \
    column_index_cache_size_in_kb min_free_space_per_drive_in_mb commitlog_total_space_in_mb \
    trickle_fsync_interval_in_kb key_cache_size_in_mb row_cache_size_in_mb counter_cache_size_in_mb \
    cache_load_timeout_seconds tracetype_query_ttl tracetype_repair_ttl enable_user_defined_functions \
    enable_scripted_user_defined_functions enable_materialized_views enable_sasi_indexes \
    enable_user_defined_functions_threads user_defined_function_warn_timeout \
    user_defined_function_fail_timeout keyspace_count_warn_threshold table_count_warn_threshold \
    compaction_large_partition_warning_threshold_mb compaction_large_partition_warning_threshold \
    compaction_tombstone_warning_threshold";

/// Old names of keys without effect (`@Replaces` in `Config`).
const OLD_NAMES: &str = "\
    permissions_update_interval_in_ms \
    roles_update_interval_in_ms credentials_update_interval_in_ms \
    max_hint_window_in_ms repair_request_timeout_in_ms streaming_keep_alive_period_in_secs \
    cross_node_timeout repair_session_space_in_mb internode_max_message_size_in_bytes \
    internode_socket_send_buffer_size_in_bytes internode_send_buff_size_in_bytes \
    internode_socket_receive_buffer_size_in_bytes internode_recv_buff_size_in_bytes \
    internode_application_send_queue_capacity_in_bytes \
    internode_application_send_queue_reserve_endpoint_capacity_in_bytes \
    internode_application_send_queue_reserve_global_capacity_in_bytes \
    internode_application_receive_queue_capacity_in_bytes \
    internode_application_receive_queue_reserve_endpoint_capacity_in_bytes \
    internode_application_receive_queue_reserve_global_capacity_in_bytes internode_tcp_connect_timeout_in_ms \
    internode_tcp_user_timeout_in_ms internode_streaming_tcp_user_timeout_in_ms \
    native_transport_receive_queue_capacity_in_bytes stream_throughput_outbound_megabits_per_sec \
    inter_dc_stream_throughput_outbound_megabits_per_sec commitlog_sync_group_window_in_ms \
    periodic_commitlog_sync_lag_block_in_ms cdc_free_space_check_interval_ms \
    dynamic_snitch_update_interval_in_ms dynamic_snitch_reset_interval_in_ms hinted_handoff_throttle_in_kb \
    batchlog_replay_throttle_in_kb hints_flush_period_in_ms max_hints_file_size_in_mb \
    sstable_preemptive_open_interval_in_mb networking_cache_size_in_mb index_summary_capacity_in_mb \
    index_summary_resize_interval_in_minutes gc_log_threshold_in_ms gc_warn_threshold_in_ms \
    truncate_request_timeout_in_ms enable_transient_replication validation_preview_purge_head_start_in_sec";

/// Keys of Cassandra 3.11 to 4.1 that 5.0 no longer has (`Config` of 3.11.19, 4.0.18 and 4.1.10). Files of these versions
/// are mounted into containers.
const REMOVED: &str = "\
    commitlog_periodic_queue_size commitlog_sync_batch_window_in_ms concurrent_replicates encryption_options \
    index_interval native_transport_max_negotiable_protocol_version request_scheduler request_scheduler_id \
    request_scheduler_options rpc_listen_backlog rpc_max_threads rpc_min_threads rpc_recv_buff_size_in_bytes \
    rpc_send_buff_size_in_bytes rpc_server_type streaming_socket_timeout_in_ms \
    thrift_prepared_statements_cache_size_mb";

/// Keys of `scylla.yaml` that Cassandra does not have (the files of Testcontainers' modules for ScyllaDB). They are accepted for
/// the image that stands in for ScyllaDB's.
const SCYLLA: &str = "\
    api_address api_port api_ui_dir api_doc_dir developer_mode enable_tablets experimental experimental_features \
    maintenance_socket murmur3_partitioner_ignore_msb_bits native_shard_aware_transport_port_ssl prometheus_address \
    prometheus_port prometheus_prefix schema_commitlog_segment_size_in_mb strict_is_not_null_in_views \
    consistent_cluster_management force_schema_commit_log restrict_replication_simplestrategy \
    enable_ipv6_dns_lookup query_tombstone_page_limit tablets_mode_for_new_keyspaces";

/// A key that may only have harmless values. A server that ignored any other value would be less safe, or more
/// accessible, than its owner believes.
pub struct Guarded {
    /// The key; `key.field` for a field of a map.
    pub key: &'static str,
    /// Values that change nothing, in lower case, without a Java package.
    pub harmless: &'static [&'static str],
    /// What is missing, and what the owner can do.
    pub reason: &'static str,
}

const fn guarded(key: &'static str, harmless: &'static [&'static str], reason: &'static str) -> Guarded {
    Guarded { key, harmless, reason }
}

/// The guarded keys.
pub const REFUSED_KEYS: &[Guarded] = &[
    guarded("role_manager", &["cassandrarolemanager"], "roles are kept as CassandraRoleManager keeps them"),
    guarded("transparent_data_encryption_options.enabled", &["false"], "files would be written in the clear"),
    guarded("full_query_logging_options.log_dir", &[], "queries would not be logged"),
    guarded("native_transport_allow_older_protocols", &["true"], "protocols before v5 could not be refused"),
    guarded("start_native_transport", &["true"], "the server is its native protocol"),
    guarded("rpc_interface", &[], "give its address as rpc_address"),
    guarded("alternator_port", &["0"], "DynamoDB's interface is not there"),
    guarded("alternator_https_port", &["0"], "DynamoDB's interface is not there"),
    guarded("partitioner", &["murmur3partitioner"], "tables are kept in the order of Murmur3Partitioner"),
    guarded("partition_denylist_enabled", &["false"], "no partition would be denied"),
];

/// Why a key has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEffect {
    /// It has no meaning on one machine.
    NotApplicable,
    /// It is not implemented yet.
    NotBuilt,
}

/// Why a key of Cassandra has no effect here, if it is such a key.
pub fn without_effect(key: &str) -> Option<NoEffect> {
    let is_in = |keys: &str| keys.split_whitespace().any(|known| known == key);
    if is_in(NOT_APPLICABLE) || is_in(OLD_NAMES) || is_in(REMOVED) || is_in(SCYLLA) {
        Some(NoEffect::NotApplicable)
    } else {
        is_in(NOT_BUILT).then_some(NoEffect::NotBuilt)
    }
}

/// All names without effect, for suggestions and the page of options.
pub fn names_without_effect() -> impl Iterator<Item = (&'static str, NoEffect)> {
    let nothing = [NOT_APPLICABLE, OLD_NAMES, REMOVED].into_iter().flat_map(str::split_whitespace);
    let not_built = NOT_BUILT.split_whitespace().map(|key| (key, NoEffect::NotBuilt));
    nothing.map(|key| (key, NoEffect::NotApplicable)).chain(not_built)
}
