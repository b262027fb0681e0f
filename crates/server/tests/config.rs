//! Configuration: the table of options, Cassandra's own file, and wrong input.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use helenus_cql::{Authenticator, Authorizer, CertificateValidator};
use helenus_server::config::*;
use helenus_tls::{ClientCertificates, Factory};

/// Reads a file. Errors are without their place, which is tested in `broken_yaml`.
fn read(yaml: &str) -> Result<ServerConfig, String> {
    let mut settings = Settings::default();
    let without_place = |error: ConfigError| match error {
        ConfigError::At { error, .. } => error.to_string(),
        other => other.to_string(),
    };
    settings.read_yaml("f.yaml", yaml).map_err(without_place)?;
    ServerConfig::new(&settings, 8 << 30, 2).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_cassandras_where_it_has_them() {
    let config = read("").unwrap();
    assert_eq!(config.storage, Storage::Directory(PathBuf::from("./data")));
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 9042)));
    assert_eq!(config.sync, SyncChoice::Group);
    assert_eq!((config.segment_bytes, config.mutation_bytes_max), (32 << 20, 16 << 20));
    assert_eq!(config.memory_limit, 2 << 30);
    assert_eq!((config.memtable_bytes, config.cache_bytes), (512 << 20, 512 << 20));
    assert_eq!(config.limits.frame_bytes_max, 16 << 20);
    assert_eq!(config.limits.in_flight_bytes_max, (2 << 30) / 10);
    assert_eq!(config.timeouts.range, Duration::from_secs(10));
    assert_eq!((config.compaction_bytes_per_s, config.compactors), (64 << 20, 1));
    assert_eq!((config.purge_grace, config.obeys_gc_grace), (Duration::from_secs(600), false));
    let old = read("compaction_throughput_mb_per_sec: 16\ngc_grace: obey").unwrap();
    assert_eq!((old.compaction_bytes_per_s, old.obeys_gc_grace), (16 << 20, true));
}

#[test]
fn every_option_is_read_with_its_default_in_the_table() {
    for option in OPTIONS {
        let text = match option.kind {
            Kind::Size { .. } => "64MiB",
            Kind::Duration { .. } => "7s",
            Kind::Rate => "16MiB/s",
            Kind::Integer { .. } => "5",
            Kind::Boolean => "true",
            Kind::Choice(words) => words[0],
            // The first ones let everybody in.
            Kind::Class(names) => names[1],
            Kind::Path | Kind::Text | Kind::Words => "x",
            Kind::DirectoryNamed("data") => "x/data",
            Kind::DirectoryNamed(_) => "x/commitlog",
            Kind::Host => "127.0.0.9",
            Kind::Listen { .. } => "127.0.0.9:1",
            Kind::Encryption | Kind::Audit => "{enabled: false}",
        };
        let mut settings = Settings::default();
        settings.read_yaml("f", &format!("{}: {text}\n", option.key)).unwrap();
        if option.flag.is_some() {
            settings.set_flag(option.key, text).unwrap();
        }
        assert!(!option.help.is_empty() && !option.default.is_empty());
    }
}

#[test]
fn wrong_values_are_named_with_what_is_allowed() {
    for (yaml, error) in [
        (
            "commitlog_sync: sometimes",
            "commitlog_sync: sometimes is not allowed; it takes periodic, batch, group",
        ),
        (
            "native_transport_port: 70000",
            "native_transport_port: 70000 is not allowed; it takes a whole number, 0 to 65535",
        ),
        (
            "read_request_timeout: 5",
            "read_request_timeout: 5 is not allowed; it takes a duration such as 10s (d, h, m, s, ms), at least 10ms",
        ),
        (
            "commitlog_segment_size: 32MB",
            "commitlog_segment_size: 32MB is not allowed; it takes a size such as 16MiB (B, KiB, MiB, GiB), 1MiB to 1GiB",
        ),
        ("rpc_keepalive: maybe", "rpc_keepalive: maybe is not allowed; it takes true or false"),
        ("cluster_name: [a, b]", "cluster_name: [a, b] is not allowed; it takes a text"),
        (
            "commitlog_sync_period_in_ms: 10s",
            "commitlog_sync_period_in_ms: 10s is not allowed; it takes a whole number of ms; its newer name is \
             commitlog_sync_period",
        ),
        ("comitlog_sync: batch", "unknown key comitlog_sync; did you mean commitlog_sync?"),
        ("num_token: 16", "unknown key num_token; did you mean num_tokens?"),
        ("zzz: 1", "unknown key zzz; docs/book/options.md lists all keys"),
        (
            "data_file_directories: [/a/data, /b/data]",
            "data_file_directories: 2 directories are given; several are not built yet, give one",
        ),
        (
            "commitlog_sync_period: 1s\ncommitlog_sync_period_in_ms: 1000",
            "commitlog_sync_period_in_ms is the earlier name of commitlog_sync_period; give one of them",
        ),
        (
            "max_mutation_size: 32MiB",
            "max_mutation_size and commitlog_segment_size do not go together: a segment must be at least twice as large as \
             the largest mutation",
        ),
        (
            "commitlog_directory: /elsewhere/commitlog\ndata_file_directories: [/x/data]",
            "commitlog_directory and data_file_directories do not go together: the commit log is kept beside the folder data, \
             in DIR/commitlog",
        ),
    ] {
        assert_eq!(read(yaml).unwrap_err(), error, "{yaml}");
    }
    assert!(read("memory_limit: 64 M").is_ok() && read("memory_limit: 1g").is_ok());
    assert!(read("tombstone_purge_grace: 5min").is_ok());
}

#[test]
fn classes_of_access_control_are_read_with_and_without_their_package_and_as_maps() {
    for yaml in [
        "authenticator: PasswordAuthenticator",
        "authenticator: org.apache.cassandra.auth.PasswordAuthenticator",
        "authenticator: {class_name: PasswordAuthenticator}",
        "authenticator:\n  class_name: org.apache.cassandra.auth.PasswordAuthenticator\n  parameters: {a: b}",
        "authenticator: [{class_name: PasswordAuthenticator}]",
        "password_file: /f",
    ] {
        let access = read(&format!("{yaml}\nauthorizer: CassandraAuthorizer\nroles_validity_in_ms: 7"))
            .unwrap()
            .access;
        assert_eq!(
            (access.authenticator, access.authorizer),
            (Authenticator::Password, Authorizer::Cassandra)
        );
        assert_eq!(
            (access.roles_validity, access.permissions_validity),
            (Duration::from_millis(7), Duration::from_secs(2))
        );
    }
    for (yaml, error) in [
        (
            "authenticator: LdapAuthenticator",
            "authenticator: LdapAuthenticator is not allowed; it takes AllowAllAuthenticator, PasswordAuthenticator, \
             MutualTlsAuthenticator, MutualTlsWithPasswordFallbackAuthenticator",
        ),
        (
            "authenticator: {parameters: null}",
            "authenticator: {parameters: null} is not allowed; it takes AllowAllAuthenticator, PasswordAuthenticator, \
             MutualTlsAuthenticator, MutualTlsWithPasswordFallbackAuthenticator",
        ),
        (
            "authorizer: CassandraAuthorizer",
            "authorizer and authenticator do not go together: CassandraAuthorizer needs to know who asks; give authenticator: \
             PasswordAuthenticator",
        ),
        (
            "authenticator: AllowAllAuthenticator\npassword_file: /f",
            "password_file and authenticator do not go together: AllowAllAuthenticator asks for no password; give \
             PasswordAuthenticator",
        ),
    ] {
        assert_eq!(read(yaml).unwrap_err(), error, "{yaml}");
    }
}

#[test]
fn authenticators_of_certificates_need_a_validator_and_client_certificates() {
    let tls =
        "client_encryption_options: {enabled: true, keystore: k, keystore_password: p, require_client_auth: ";
    let spiffe = CertificateValidator::Spiffe;
    for (authenticator, asks, expected) in [
        ("MutualTlsAuthenticator", "true", Authenticator::MutualTls(spiffe)),
        ("org.apache.cassandra.auth.MutualTlsAuthenticator", "true", Authenticator::MutualTls(spiffe)),
        (
            "MutualTlsWithPasswordFallbackAuthenticator",
            "optional",
            Authenticator::MutualTlsOrPassword(spiffe),
        ),
    ] {
        for parameters in [
            "{validator_class_name: org.apache.cassandra.auth.SpiffeCertificateValidator}",
            "[{validator_class_name: SpiffeCertificateValidator}]",
        ] {
            let yaml = format!(
                "authenticator: {{class_name: {authenticator}, parameters: {parameters}}}\n{tls}{asks}}}"
            );
            assert_eq!(read(&yaml).unwrap().access.authenticator, expected, "{yaml}");
        }
    }
    let with = "authenticator: {class_name: MutualTlsAuthenticator, parameters: {validator_class_name: SpiffeCertificateValidator}}";
    for (yaml, error) in [
        (format!("authenticator: MutualTlsAuthenticator\n{tls}true}}"), "validator_class_name is not set"),
        (with.to_owned(), "require_client_auth to be true"),
        (format!("{with}\n{tls}optional}}"), "require_client_auth to be true"),
        (format!("{with}\n{tls}true}}\npassword_file: /f"), "takes no passwords"),
        (
            with.replace("Spiffe", "Own"),
            "authenticator.parameters.validator_class_name: OwnCertificateValidator is not allowed",
        ),
    ] {
        let found = read(&yaml).unwrap_err();
        assert!(found.contains(error), "{yaml}: {found}");
    }
}

#[test]
fn keys_that_would_change_safety_or_access_are_refused() {
    for yaml in [
        "transparent_data_encryption_options: {enabled: true}",
        "rpc_interface: eth0",
        "partitioner: org.apache.cassandra.dht.RandomPartitioner",
    ] {
        let error = read(yaml).unwrap_err();
        assert!(error.contains("is not supported: ") && error.contains("remove the key"), "{error}");
    }
    for yaml in [
        "authenticator: AllowAllAuthenticator",
        "authenticator: {class_name: AllowAllAuthenticator, parameters: null}",
        "authorizer: org.apache.cassandra.auth.AllowAllAuthorizer",
        "client_encryption_options: {enabled: false, keystore: conf/.keystore}",
        "audit_logging_options: {enabled: false, logger: [{class_name: BinAuditLogger}]}",
        "partitioner: org.apache.cassandra.dht.Murmur3Partitioner",
        "cdc_enabled: false",
        "{cdc_enabled: true, cdc_total_space: 100MiB, cdc_retention: 1h}",
    ] {
        read(yaml).unwrap();
    }
}

#[test]
fn options_of_tls_are_read_in_cassandras_words() {
    let read_tls =
        |yaml: &str| read(&format!("client_encryption_options: {yaml}")).map(|config| config.encryption);
    let options = read_tls(
        "{enabled: true, optional: false, keystore: conf/k, keystore_password: secret, truststore: conf/t, \
         require_client_auth: optional, protocol: TLS, accepted_protocols: [TLSv1.2, TLSv1.3], store_type: pkcs12, \
         cipher_suites: [TLS_AES_128_GCM_SHA256], require_endpoint_verification: true, algorithm: SunX509}",
    )
    .unwrap();
    assert!(options.enabled && options.require_endpoint_verification && options.optional == Some(false));
    assert_eq!(options.client_certificates, ClientCertificates::Optional);
    assert_eq!(
        (options.store_type.as_str(), options.keystore_password.as_deref()),
        ("PKCS12", Some("secret"))
    );
    assert_eq!(options.accepted_protocols.unwrap(), ["TLSv1.2", "TLSv1.3"]);
    for factory in [
        "{class_name: PEMBasedSslContextFactory, parameters: {private_key: \"K\"}}",
        "{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory, parameters: [{private_key: K}]}",
    ] {
        let options = read_tls(&format!("{{ssl_context_factory: {factory}}}")).unwrap();
        let Factory::Pem(parameters) = options.factory else { panic!("PEM") };
        assert_eq!(parameters.private_key.as_deref(), Some("K"));
    }
    for (yaml, error) in [
        (
            "{enabled: perhaps}",
            "client_encryption_options.enabled: perhaps is not allowed; it takes true or false",
        ),
        (
            "{store_type: BCFKS}",
            "client_encryption_options.store_type: BCFKS is not allowed; it takes JKS, PKCS12",
        ),
        (
            "{keystore_password: [secret]}",
            "client_encryption_options.keystore_password: its value is not allowed; it takes a text",
        ),
    ] {
        assert_eq!(read_tls(yaml).unwrap_err(), error);
    }
    let error = read_tls("{keystor: x}").unwrap_err();
    assert!(
        error.starts_with("client_encryption_options: keystor is not allowed; it takes the keys enabled, "),
        "{error}"
    );
    assert!(read_tls("{ssl_context_factory: {class_name: MyFactory}}").is_err());
    let error = read("tls_cert: a.pem\nclient_encryption_options: {enabled: true}").unwrap_err();
    assert!(error.contains("give one of them"), "{error}");
    let two = read("native_transport_port_ssl: 9142\nclient_encryption_options: {enabled: true}").unwrap();
    assert_eq!(two.listen_encrypted.unwrap().port(), 9142);
    let one = read("native_transport_port_ssl: 9042\nclient_encryption_options: {enabled: true}").unwrap();
    assert_eq!(one.listen_encrypted, None);
}

#[test]
fn cassandras_directories_and_earlier_names_are_understood() {
    let config = read(
        "data_file_directories:\n  - /var/lib/cassandra/data\ncommitlog_directory: /var/lib/cassandra/commitlog\n\
         commitlog_sync: periodic\ncommitlog_sync_period_in_ms: 2000\nnative_transport_max_frame_size_in_mb: 8\n\
         rpc_address: localhost\nnative_transport_port: 9142\nkey_cache_size:\n",
    )
    .unwrap();
    assert_eq!(config.storage, Storage::Directory(Path::new("/var/lib/cassandra").to_owned()));
    assert_eq!(config.sync, SyncChoice::Periodic(Duration::from_secs(2)));
    assert_eq!(config.limits.frame_bytes_max, 8 << 20);
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 9142)));
}

#[test]
fn the_command_line_wins_over_the_file() {
    let mut settings = Settings::default();
    settings
        .read_yaml("f", "commitlog_sync: batch\nrpc_address: 127.0.0.2\ndata_file_directories: [/x/data]")
        .unwrap();
    settings.set_flag("commitlog_sync", "periodic").unwrap();
    settings.set_flag("listen", "127.0.0.3:1").unwrap();
    settings.set_flag("memory_limit", "512M").unwrap();
    settings.set_flag("compaction_throughput", "32M").unwrap();
    settings.set_flag("slow_query_log_timeout", "2m").unwrap();
    settings.set_flag("data", "/y").unwrap();
    let config = ServerConfig::new(&settings, 1 << 30, 1).unwrap();
    assert_eq!(config.sync.name(), "periodic");
    assert_eq!(config.listen.to_string(), "127.0.0.3:1");
    assert_eq!((config.memory_limit, config.compaction_bytes_per_s), (512 << 20, 32 << 20));
    assert_eq!(config.log.slow, Some(Duration::from_secs(120)));
    for (listen, address) in
        [(":9142", "127.0.0.1:9142"), ("localhost", "127.0.0.1:9042"), ("[::1]:0", "[::1]:0")]
    {
        settings.set_flag("listen", listen).unwrap();
        assert_eq!(ServerConfig::new(&settings, 1 << 30, 1).unwrap().listen.to_string(), address);
    }
    assert_eq!(config.storage, Storage::Directory(PathBuf::from("/y")));
    let error = settings.set_flag("listen", "9042").unwrap_err().to_string();
    assert_eq!(
        error,
        "--listen: 9042 is not allowed; it takes HOST, HOST:PORT or :PORT, such as localhost:9042 or [::1]:9042; port 0 picks a free \
         one"
    );
    settings.set_flag("memory", "true").unwrap();
    assert!(ServerConfig::new(&settings, 1 << 30, 1).is_err(), "--memory with --data");
}

#[test]
fn an_earlier_name_without_a_unit_has_the_same_values() {
    assert!(read("enable_drop_compact_storage: true").unwrap().drops_compact_storage);
    assert!(!read("").unwrap().drops_compact_storage);
    let twice = read("enable_drop_compact_storage: true\ndrop_compact_storage_enabled: true").unwrap_err();
    assert!(twice.contains("is the earlier name of drop_compact_storage_enabled"), "{twice}");
}

#[test]
fn keys_without_effect_are_collected() {
    let mut settings = Settings::default();
    settings
        .read_yaml(
            "f",
            "num_tokens: 16\nendpoint_snitch: SimpleSnitch\nkey_cache_size_in_mb: 5\nrow_cache_size: 0MiB",
        )
        .unwrap();
    let found: Vec<_> = settings.without_effect.iter().map(|(key, why)| (key.as_str(), *why)).collect();
    assert_eq!(
        found,
        [
            ("endpoint_snitch", NoEffect::NotApplicable),
            ("key_cache_size_in_mb", NoEffect::NotBuilt),
            ("num_tokens", NoEffect::NotApplicable),
            ("row_cache_size", NoEffect::NotBuilt),
        ]
    );
}

/// Run with `HELENUS_WRITE_DOCS=1` to rewrite the page.
#[test]
fn the_page_of_options_is_that_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/options.md");
    if std::env::var_os("HELENUS_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, options_page()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page == options_page(), "run HELENUS_WRITE_DOCS=1 cargo test -p helenus-server --test config");
}
