#!/usr/bin/env bash
# A real Apache Cassandra 5.0.9, from its jars on Maven Central: the judge of our answers and of our files.
#
#   cassandra.sh start DIR [--port N] [--heap SIZE] [--sync periodic|batch] [--as-released] [--settings FILE]
#                          [--authenticator CLASS] [--wait-for-gossip]
#                                                     a node that keeps everything in DIR; returns when it answers CQL
#   cassandra.sh stop DIR
#   cassandra.sh status DIR                           prints the address and succeeds if the node of DIR answers
#   cassandra.sh nodetool DIR ARGS...
#   cassandra.sh tool NAME [--data DATA_DIR] ARGS...  sstabledump, sstablepartitions, sstableverify, sstablescrub,
#                                                     sstablemetadata, sstableloader
#   cassandra.sh jars                                 downloads what is missing, prints the folder
#
# The node writes what conf/cassandra_latest.yaml makes a release write: BTI files with UUID names, and trie memtables;
# tables are made with the defaults of conf/cassandra.yaml. It listens on 127.0.0.1 at --port (CQL, default 19042), port+1 (storage) and port+2 (JMX), so
# that it runs beside a server on 9042. --heap defaults to 1536M, --sync (of the commit log) to periodic. --settings adds the lines of
# a file to cassandra.yaml. A node here does not wait for other nodes at its start; --wait-for-gossip makes it wait as the official
# image does.
#
# `tool --data` reads the schema and the SSTables of a data directory (the folder that holds one folder a keyspace):
# sstableverify needs it, sstabledump and sstablemetadata do not.
#
# Needs a JDK 17, and once Maven. Jars are kept in ${XDG_CACHE_HOME:-~/.cache}/helenus/cassandra-5.0.9.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/cassandra_installation.sh"
sync=periodic

fail() { echo "cassandra.sh: $*" >&2; exit 1; }

# The lines of cassandra.yaml for $sync: batch refuses a period.
commitlog_sync() {
  echo "commitlog_sync: $sync"
  [[ $sync != periodic ]] || echo "commitlog_sync_period: 10000ms"
}

# configuration DIR DATA_DIR PORT LOG_LEVEL: writes DIR/conf.
configuration() {
  local dir=$1 data=$2 port=$3 level=$4
  mkdir -p "$dir/conf/triggers"
  cat >"$dir/conf/cassandra.yaml" <<YAML
cluster_name: oracle
num_tokens: ${tokens:-1}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: '127.0.0.1:$((port + 1))'}]}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: $port
storage_port: $((port + 1))
data_file_directories: ['$data']
commitlog_directory: '$dir/commitlog'
saved_caches_directory: '$dir/saved_caches'
hints_directory: '$dir/hints'
cdc_raw_directory: '$dir/cdc_raw'
auto_snapshot: false
$(commitlog_sync)
storage_compatibility_mode: NONE
sstable: {selected_format: bti}
uuid_sstable_identifiers_enabled: true
memtable: {configurations: {default: {class_name: ${memtable:-TrieMemtable}}}}
${authenticator:+authenticator: $authenticator}
YAML
  [[ -z ${settings:-} ]] || cat "$settings" >>"$dir/conf/cassandra.yaml"
  cat >"$dir/conf/logback.xml" <<XML
<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="$level"><appender-ref ref="ERR"/></root>
</configuration>
XML
}

answers() { answers_at 127.0.0.1 "$1"; }

# The process id of the node in DIR, if it runs.
node() {
  local pid
  [[ -s $1/pid ]] && pid=$(<"$1/pid") && grep -qz "^-Dcassandra.storagedir=$1\$" "/proc/$pid/cmdline" 2>/dev/null &&
    echo "$pid"
}

# What a release sets for speed (jvm17-server.options, cassandra-env.sh) and this script leaves out for tests.
released_options() {
  local rules=$cache/hotspot_compiler
  [[ -s $rules ]] || unzip -p "$cache/lib/cassandra-all-$version.jar" META-INF/hotspot_compiler >"$rules"
  printf '%s\n' "-Xms$1" -XX:+AlwaysPreTouch "-XX:CompileCommandFile=$rules" -XX:+UseThreadPriorities -XX:+UseTLAB \
    -XX:+ResizeTLAB -XX:+UseNUMA -XX:+PerfDisableSharedMem -XX:+ParallelRefProcEnabled -XX:MaxTenuringThreshold=1 \
    -XX:G1HeapRegionSize=16m -XX:+UnlockExperimentalVMOptions -XX:G1RSetUpdatingPauseTimePercent=5 \
    -XX:InitiatingHeapOccupancyPercent=70 -Dio.netty.allocator.useCacheForAllThreads=true \
    -Dio.netty.allocator.maxOrder=11
}

start() {
  [[ $# -ge 1 ]] || fail "start needs a directory"
  local dir port=19042 heap=1536M released= authenticator= gossip=-Dcassandra.skip_wait_for_gossip_to_settle=0
  mkdir -p "$1" && dir=$(cd "$1" && pwd -P)
  shift
  while [[ $# -gt 0 ]]; do
    case $1 in
      --port) port=$2 ;;
      --heap) heap=$2 ;;
      --sync) [[ $2 =~ ^(periodic|batch)$ ]] || fail "--sync is periodic or batch, not '$2'"; sync=$2 ;;
      --settings) settings=$(realpath "$2") ;;
      --authenticator) authenticator=$2 ;;
      --as-released) released=yes memtable=SkipListMemtable tokens=16; shift; continue ;;
      --wait-for-gossip) gossip=; shift; continue ;;
      *) fail "start knows --port, --heap, --sync, --settings, --authenticator, --as-released and --wait-for-gossip, not '$1'" ;;
    esac
    shift 2
  done
  node "$dir" >/dev/null && fail "a node runs in $dir already, process $(<"$dir/pid")"
  answers "$port" && fail "port $port is taken: another CQL server answers there"
  jars
  local is_new=1
  [[ ! -d $dir/commitlog ]] || is_new=
  configuration "$dir" "$dir/data" "$port" INFO
  { jvm_options; if [[ -n $released ]]; then released_options "$heap"; else echo -Xms256m; fi; } >"$dir/conf/jvm.options"
  echo "$port" >"$dir/port"
  # -ea: Cassandra's own assertions are part of the judgement, and a release runs with them.
  (cd "$dir" && exec setsid "$java" "@$dir/conf/jvm.options" -ea "-da:net.openhft..." -Xss256k "-Xmx$heap" \
    -XX:+UseG1GC -XX:MaxGCPauseMillis=300 -XX:+ExitOnOutOfMemoryError -Djava.net.preferIPv4Stack=true \
    "-Dcassandra.config=file://$dir/conf/cassandra.yaml" "-Dcassandra.storagedir=$dir" "-Dcassandra.logdir=$dir" \
    "-Dlogback.configurationFile=file://$dir/conf/logback.xml" "-Dcassandra.triggers_dir=$dir/conf/triggers" \
    "-Dcassandra.jmx.local.port=$((port + 2))" -Djava.rmi.server.hostname=127.0.0.1 \
    ${gossip:+"$gossip"} -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra-foreground=yes -cp "$dir/conf:$cache/lib/*" \
    org.apache.cassandra.service.CassandraDaemon >"$dir/log" 2>&1 </dev/null) &
  local pid=$! begin=$SECONDS
  echo "$pid" >"$dir/pid"
  until answers "$port"; do
    kill -0 "$pid" 2>/dev/null || { tail -n 20 "$dir/log" >&2; fail "the node ended while starting; its log is $dir/log"; }
    ((SECONDS - begin < 180)) || fail "no answer on port $port within 180 s; the log is $dir/log"
    sleep 0.1
  done
  # A new node makes its default role after it answers.
  if [[ $authenticator == *Password* && -n $is_new ]]; then
    until grep -q "Created default superuser role" "$dir/log"; do
      ((SECONDS - begin < 180)) || fail "no default role within 180 s; the log is $dir/log"
      sleep 0.1
    done
  fi
  disown "$pid"
  echo "cassandra $version on 127.0.0.1:$port, process $pid, directory $dir"
}

stop() {
  [[ $# -eq 1 ]] || fail "stop needs a directory"
  local dir pid begin=$SECONDS
  dir=$(cd "$1" 2>/dev/null && pwd -P) || fail "no directory $1"
  pid=$(node "$dir") || { echo "no node runs in $dir"; return; }
  kill "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    ((SECONDS - begin < 60)) || { kill -9 "$pid" || true; break; }
    sleep 0.1
  done
  rm -f "$dir/pid"
}

status() {
  [[ $# -eq 1 && -s $1/port ]] || fail "status needs the directory of a node that was started here"
  local dir port
  dir=$(cd "$1" && pwd -P) port=$(<"$1/port")
  node "$dir" >/dev/null && answers "$port" && echo "127.0.0.1:$port"
}

tool() {
  [[ $# -ge 1 ]] || fail "tool needs a name: sstabledump, sstablepartitions, sstableverify, sstablescrub, sstablemetadata or sstableloader"
  local main name=$1 data
  shift
  case $name in
    sstabledump) main=SSTableExport ;;
    sstablepartitions) main=SSTablePartitions ;;
    sstablescrub) main=StandaloneScrubber ;;
    sstableverify) main=StandaloneVerifier ;;
    sstablemetadata) main=SSTableMetadataViewer ;;
    sstableloader) main=BulkLoader ;;
    nodetool) main=NodeTool ;;
    *) fail "unknown tool '$name': sstabledump, sstablepartitions, sstableverify, sstablescrub, sstablemetadata and sstableloader are known" ;;
  esac
  jars
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  data=$scratch/data
  [[ ${1:-} == --data ]] && { data=$(cd "$2" && pwd -P); shift 2; }
  configuration "$scratch" "$data" 19042 WARN
  run_tool "$main" "$scratch" "$@"
}

nodetool() {
  [[ -s ${1:-}/port ]] || fail "nodetool needs the directory of a node that was started here"
  local port
  port=$(<"$1/port")
  shift
  tool nodetool -h 127.0.0.1 -p "$((port + 2))" "$@"
}

command=${1:-}
[[ $# -gt 0 ]] && shift
case $command in
  start | stop | status | nodetool | tool) "$command" "$@" ;;
  jars) jars; echo "$cache/lib" ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
