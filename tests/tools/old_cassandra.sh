#!/usr/bin/env bash
# A real Apache Cassandra of an older release, from its jars on Maven Central: 3.11.19, the last line with the old RPC interface
# and the judge of our answers to its calls, or 4.1.10, whose directories are volumes that the image meets.
#
#   old_cassandra.sh start DIR [PORT]   a node that keeps everything in DIR; returns when it takes connections
#   old_cassandra.sh stop DIR
#
# RELEASE=4.1.10 before the command takes that release. The node serves the RPC interface (3.11 alone) on 127.0.0.1 at PORT
# (19160 by default), CQL at PORT+1, storage at PORT+2 and JMX at PORT+3. These releases were made for JDK 8 and 11; with the
# doors of JDK 17 opened they serve requests. Files are read without mmap: the way of 3.11 to unmap is gone. Jars are kept in
# ${XDG_CACHE_HOME:-~/.cache}/helenus/cassandra-RELEASE.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=${RELEASE:-3.11.19}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/helenus/cassandra-$version

fail() { echo "old_cassandra.sh: $*" >&2; exit 1; }

has_rpc() { [[ $version == 3.* ]]; }

# cassandra-all does without the jar of the interface, which has no dependencies that it has not.
jars() {
  [[ -f $cache/complete && -f $cache/rpc/complete ]] && return
  mkdir -p "$cache/rpc"
  (
    flock 9
    if [[ ! -f $cache/complete ]]; then
      sed "s/5\.0\.9/$version/" "$here/cassandra.pom.xml" >"$cache/pom.xml"
      mvn -q -B -f "$cache/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$cache/lib" >&2
      touch "$cache/complete"
    fi
    if has_rpc; then
      mvn -q -B dependency:copy "-Dartifact=org.apache.cassandra:cassandra-thrift:$version" "-DoutputDirectory=$cache/rpc" >&2
    fi
    touch "$cache/rpc/complete"
  ) 9>"$cache/lock" || fail "Maven could not fetch Cassandra $version"
}

configuration() {
  local dir=$1 port=$2 name
  mkdir -p "$dir/conf/triggers"
  cat >"$dir/conf/cassandra.yaml" <<YAML
cluster_name: Test Cluster
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
start_native_transport: true
native_transport_port: $((port + 1))
storage_port: $((port + 2))
ssl_storage_port: $((port + 4))
data_file_directories: ['$dir/data']
commitlog_directory: '$dir/commitlog'
saved_caches_directory: '$dir/saved_caches'
hints_directory: '$dir/hints'
cdc_raw_directory: '$dir/cdc_raw'
disk_access_mode: standard
commitlog_sync: periodic
commitlog_sync_period_in_ms: 10000
auto_snapshot: false
YAML
  if has_rpc; then
    printf '%s\n' "start_rpc: true" "rpc_port: $port" "rpc_server_type: sync" >>"$dir/conf/cassandra.yaml"
  fi
  cat >"$dir/conf/logback.xml" <<XML
<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="ERR"/></root>
</configuration>
XML
  {
    for name in java.base/{java.io,java.lang,java.lang.module,java.lang.ref,java.lang.reflect,java.math,java.net,java.nio} \
      java.base/{java.nio.channels,java.nio.file,java.text,java.time,java.util,java.util.concurrent,java.util.function} \
      java.base/java.util.{concurrent.atomic,concurrent.locks,regex,stream} \
      java.base/{sun.nio.ch,sun.nio.fs,sun.security.action,sun.util.calendar} \
      java.base/jdk.internal.{loader,math,misc,module,perf,ref,reflect,util.jar} java.management/sun.management \
      java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server \
      java.rmi/sun.rmi.transport java.rmi/sun.rmi.transport.tcp java.sql/java.sql \
      jdk.management/com.sun.management.internal; do
      echo "--add-opens=$name=ALL-UNNAMED"
      echo "--add-exports=$name=ALL-UNNAMED"
    done
    echo "-Djava.security.manager=allow"
    echo "-Djdk.attach.allowAttachSelf=true"
    echo "-javaagent:$(ls "$cache"/lib/jamm-*.jar)"
  } >"$dir/conf/jvm.options"
}

takes_connections() {
  timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"' "$1" 2>/dev/null
}

start() {
  local dir port=${2:-19160} begin=$SECONDS pid ready
  mkdir -p "$1" && dir=$(cd "$1" && pwd -P)
  if has_rpc; then ready=$port; else ready=$((port + 1)); fi
  takes_connections "$ready" && fail "port $ready is taken"
  jars
  configuration "$dir" "$port"
  (cd "$dir" && exec setsid java "@$dir/conf/jvm.options" -ea -Xmx"${MAX_HEAP:-768M}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -XX:+ExitOnOutOfMemoryError -Djava.net.preferIPv4Stack=true "-Dcassandra.config=file://$dir/conf/cassandra.yaml" \
    "-Dcassandra.storagedir=$dir" "-Dcassandra.logdir=$dir" "-Dlogback.configurationFile=file://$dir/conf/logback.xml" \
    "-Dcassandra.triggers_dir=$dir/conf/triggers" -Dcassandra.ring_delay_ms=1 \
    -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra-foreground=yes -cp "$dir/conf:$cache/lib/*:$cache/rpc/*" \
    org.apache.cassandra.service.CassandraDaemon >"$dir/log" 2>&1 </dev/null) &
  pid=$!
  echo "$pid" >"$dir/pid"
  until takes_connections "$ready"; do
    kill -0 "$pid" 2>/dev/null || { tail -n 20 "$dir/log" >&2; fail "the node ended while starting; its log is $dir/log"; }
    ((SECONDS - begin < 180)) || fail "no connection on port $ready within 180 s; the log is $dir/log"
    sleep 0.2
  done
  disown "$pid"
  local rpc=
  if has_rpc; then rpc="RPC on 127.0.0.1:$port, "; fi
  echo "cassandra $version: ${rpc}CQL on 127.0.0.1:$((port + 1)), process $pid, directory $dir"
}

stop() {
  local dir pid begin=$SECONDS
  dir=$(cd "$1" 2>/dev/null && pwd -P) || fail "no directory $1"
  pid=$(cat "$dir/pid" 2>/dev/null) || { echo "no node runs in $dir"; return; }
  if grep -qz "^-Dcassandra.storagedir=$dir\$" "/proc/$pid/cmdline" 2>/dev/null; then
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do
      ((SECONDS - begin < 60)) || { kill -9 "$pid" || true; break; }
      sleep 0.2
    done
  fi
  rm -f "$dir/pid"
}

command=${1:-}
[[ $# -gt 1 ]] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 2; }
shift
case $command in
  start | stop) "$command" "$@" ;;
  *) fail "start and stop are known, not '$command'" ;;
esac
