#!/usr/bin/env bash
# Prints the rows of SSTables as Cassandra 5.0.6 reads them: dump_raw.sh DATA_DB [MORE_DATA_DB -> each to rows.txt beside it]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lib=$("$here/../../../../tests/tools/cassandra.sh" jars)
opens=()
for name in java.base/{java.io,java.lang,java.lang.ref,java.lang.reflect,java.math,java.net,java.nio,java.util,java.util.concurrent} \
  java.base/{java.util.concurrent.atomic,sun.nio.ch} java.base/jdk.internal.{misc,ref,reflect}; do
  opens+=("--add-opens=$name=ALL-UNNAMED" "--add-exports=$name=ALL-UNNAMED")
done
conf=$(mktemp -d)
trap 'rm -rf "$conf"' EXIT
cat >"$conf/cassandra.yaml" <<YAML
cluster_name: oracle
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]
listen_address: 127.0.0.1
data_file_directories: ['$conf/data']
commitlog_directory: '$conf/commitlog'
saved_caches_directory: '$conf/saved_caches'
hints_directory: '$conf/hints'
cdc_raw_directory: '$conf/cdc_raw'
commitlog_sync: periodic
commitlog_sync_period: 10000ms
storage_compatibility_mode: NONE
YAML
cat >"$conf/logback.xml" <<XML
<configuration><root level="OFF"/></configuration>
XML
java "${opens[@]}" -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dcassandra.config=file://$conf/cassandra.yaml" \
  "-Dcassandra.storagedir=$conf" "-Dlogback.configurationFile=file://$conf/logback.xml" "-javaagent:$(ls "$lib"/jamm-*.jar)" \
  -cp "$lib/*" "$here/DumpRaw.java" "$@"
