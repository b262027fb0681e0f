//! The targets: one file a crate of decoders.

mod compressed;
mod cql;
mod gateway;
mod json;
mod log;
mod native;
mod paging;
mod rpc;
mod scrub;
mod server;
mod small;
mod sstable;
mod thrift;
mod tls;
mod values;

use crate::Target;

macro_rules! targets {
    ($($name:literal, $about:literal, $corpus:expr, $run:expr;)*) => {
        /// Every target.
        pub const TARGETS: &[Target] =
            &[$(Target { name: $name, about: $about, corpus: $corpus, run: $run },)*];
    };
}

targets! {
    "frames", "bare frames of the native protocol v3 and v4, compressed or not, and the messages in them",
        native::frames, native::run_frames;
    "segments", "segments of v5, their checksums made right again", native::segments, native::run_segments;
    "requests", "bodies of requests, each as every opcode and version", native::bodies, native::run_requests;
    "responses", "bodies of responses, rows included", native::bodies, native::run_responses;
    "bodies", "compressed bodies of v3 and v4, whatever length they announce", compressed::bodies, compressed::run_body;
    "chunks", "chunks of Data.db, of every compressor", compressed::chunks, compressed::run_chunk;
    "values", "values of every type: checked, compared, printed, parsed, put in order and taken out again", values::corpus,
        values::run;
    "class-names", "names of types in files and schemas", values::class_names, values::run_class_name;
    "json", "documents: INSERT JSON, and what SELECT JSON then answers once more", json::corpus, json::run;
    "settings", "settings in YAML", server::settings, server::run_settings;
    "admin", "orders on the admin socket, in JSON", server::orders, server::run_order;
    "manifest", "the manifest of a backup, in JSON", server::manifests, server::run_manifest;
    "archive", "a backup as one tar file, as it comes and with its blocks' sums made right again: nothing leaves its folder",
        server::archives, server::run_archive;
    "paging-state", "paging states that clients give back, on a database", paging::corpus, paging::run;
    "gateway", "texts that a gateway passes on: it and the parser see the same statement", gateway::corpus, gateway::run;
    "cql", "statements: parsed, and what is parsed is printed and parsed again", cql::corpus, cql::run;
    "commitlog", "a folder with one segment of the commit log, opened with and without skipping damage",
        log::corpus, log::run;
    "commitlog-records", "the same with the checksums of its records made right again", log::corpus, log::run_mended;
    "statistics", "Statistics.db, as it comes and with its checksums made right again", sstable::statistics, sstable::run_statistics;
    "compression-info", "CompressionInfo.db, and reading a table by it", sstable::compression_info,
        sstable::run_compression_info;
    "partition-index", "Partitions.db, and reading a table by it", sstable::partitions, sstable::run_partitions;
    "row-index", "Rows.db, and reading a table by it", sstable::rows, sstable::run_rows;
    "big-index", "Index.db, and reading a table by it", sstable::index, sstable::run_index;
    "big-summary", "Summary.db, and reading a table by it", sstable::summary, sstable::run_summary;
    "data", "Data.db without checksums, read by slices in both directions and scanned", sstable::data,
        sstable::run_data;
    "block-crcs", "CRC.db", sstable::block_crcs, sstable::run_block_crcs;
    "page-checksums", "PageChecksums.db", sstable::page_checksums, sstable::run_page_checksums;
    "filter", "Filter.db", sstable::filter, sstable::run_filter;
    "scrub", "a table with one damaged component, scrubbed: what comes out is sound", scrub::corpus, scrub::run;
    "toc", "TOC.txt", small::tocs, small::run_toc;
    "digest", "Digest.crc32", small::digests, small::run_digest;
    "transaction-log", "a transaction log beside SSTables: what it makes useless, and nothing else, goes",
        small::logs, small::run_log;
    "schema-text", "schema.cql", small::schemas, small::run_schema;
    "thrift", "messages of the old RPC interface, framed or not, and the arguments of its calls", thrift::corpus,
        thrift::run;
    "rpc", "calls of the old RPC interface on a database", rpc::calls, rpc::run_calls;
    "sasl", "tokens of logins", tls::tokens, tls::run_token;
    "pem", "keys, encrypted or not, and certificates in PEM", tls::pems, tls::run_pem;
    "stores", "key stores of PKCS#12 and JKS, with and without their password", tls::stores, tls::run_store;
    "certificates", "the names in certificates", tls::certificates, tls::run_certificate;
    "tls-records", "what a client sends before and inside a handshake", tls::hellos, tls::run_hello;
    "first-dialect", "statements of the first CQL dialect on a database", rpc::statements, rpc::run_statement;
}
