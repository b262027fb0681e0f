#!/usr/bin/env bash
# A real cluster of Apache Cassandra 5.0.9 on this machine, from the jars that cassandra.sh uses: N nodes on 127.0.0.1 to
# 127.0.0.N, each with a directory of its own.
#
#   cluster.sh start N DIR [--port P] [--heap SIZE] [--tokens T] [--logins] [--tls]
#                                       N empty nodes in DIR; returns when each answers CQL and sees all others
#   cluster.sh add DIR                  one more node; it takes its share of the data. Prints its number
#   cluster.sh kill DIR NODE            kill -9 of a node
#   cluster.sh restart DIR NODE         starts a node that ended, or stops and starts it
#   cluster.sh nodetool DIR NODE ARGS.. nodetool at this node
#   cluster.sh status DIR               a line for each node: number, address, process, whether it answers; fails unless all do
#   cluster.sh stop DIR                 ends all nodes; the data stays. `restart` starts them again, one by one
#
# NODE is 1 to N. CQL is on port P of each address (9042), storage on 7000, JMX on 127.0.0.1:7199, 7299, ... . A node has 512 MB
# of heap (--heap) and 4 tokens (--tokens), and about 0.7 GiB resident. --logins: PasswordAuthenticator and CassandraAuthorizer,
# user cassandra, password cassandra. --tls: CQL and the traffic between nodes only over TLS; clients trust DIR/tls/ca.pem.
# A node that is cut off but alive: kill -STOP and kill -CONT of its process.
#
# After DDL wait for schema agreement, as drivers do: a write at once may fail with INCOMPATIBLE_SCHEMA.
# Needs a JDK 17, and once Maven.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/cassandra_installation.sh"

fail() { echo "cluster.sh: $*" >&2; exit 1; }

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 2; }

# Reads the settings of the cluster in $1 into variables: dir, nodes, port, heap, tokens, logins, tls.
settings() {
  [[ -n ${1:-} ]] || usage
  [[ -s $1/cluster ]] || fail "no cluster in '$1'; cluster.sh start makes one"
  dir=$(cd "$1" && pwd -P)
  source "$dir/cluster"
}

keep_settings() {
  printf 'nodes=%q port=%q heap=%q tokens=%q logins=%q tls=%q\n' "$nodes" "$port" "$heap" "$tokens" "$logins" "$tls" >"$dir/cluster"
}

check_node() { [[ ${1:-} =~ ^[1-9][0-9]*$ && $1 -le $nodes ]] || fail "the cluster has nodes 1 to $nodes, not '${1:-}'"; }

# One self-signed certificate for all nodes that may come; clients and nodes trust it.
certificates() {
  local names=dns:localhost n
  for ((n = 1; n <= 32; n++)); do names+=,ip:127.0.0.$n; done
  mkdir -p "$dir/tls"
  keytool -genkeypair -alias node -keyalg RSA -keysize 2048 -validity 3650 -dname CN=cluster -ext "san=$names" -ext bc=ca:true \
    -storetype PKCS12 -keystore "$dir/tls/node.p12" -storepass cassandra >/dev/null 2>&1
  keytool -exportcert -rfc -alias node -keystore "$dir/tls/node.p12" -storepass cassandra >"$dir/tls/ca.pem" 2>/dev/null
  keytool -importcert -noprompt -alias ca -file "$dir/tls/ca.pem" -storetype PKCS12 -keystore "$dir/tls/trust.p12" \
    -storepass cassandra >/dev/null 2>&1
}

# configuration NODE BOOTSTRAP: writes nodeNODE/conf.
configuration() {
  local home=$dir/node$1 address=127.0.0.$1
  mkdir -p "$home/conf/triggers"
  cat >"$home/conf/cassandra.yaml" <<YAML
cluster_name: helenus-tests
num_tokens: $tokens
auto_bootstrap: $2
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: '127.0.0.1:7000'}]}]
listen_address: $address
rpc_address: $address
native_transport_port: $port
storage_port: 7000
data_file_directories: ['$home/data']
commitlog_directory: '$home/commitlog'
saved_caches_directory: '$home/saved_caches'
hints_directory: '$home/hints'
cdc_raw_directory: '$home/cdc_raw'
auto_snapshot: false
commitlog_sync: periodic
commitlog_sync_period: 10000ms
storage_compatibility_mode: NONE
sstable: {selected_format: bti}
uuid_sstable_identifiers_enabled: true
memtable: {configurations: {default: {class_name: TrieMemtable}}}
YAML
  [[ -z $logins ]] || cat >>"$home/conf/cassandra.yaml" <<YAML
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
YAML
  [[ -z $tls ]] || cat >>"$home/conf/cassandra.yaml" <<YAML
client_encryption_options:
  {enabled: true, optional: false, keystore: '$dir/tls/node.p12', keystore_password: cassandra, store_type: PKCS12}
server_encryption_options:
  {internode_encryption: all, keystore: '$dir/tls/node.p12', keystore_password: cassandra, truststore: '$dir/tls/trust.p12',
   truststore_password: cassandra, store_type: PKCS12, require_client_auth: true}
YAML
  cat >"$home/conf/logback.xml" <<'XML'
<configuration>
  <appender name="ERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%-5level %date{HH:mm:ss.SSS} %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="ERR"/></root>
</configuration>
XML
}

# The process id of a node, if it runs.
process() {
  local pid
  [[ -s $dir/node$1/pid ]] && pid=$(<"$dir/node$1/pid") &&
    grep -qz "^-Dcassandra.storagedir=$dir/node$1\$" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

# Whether the node answers CQL; with TLS, whether it ends a handshake.
answers() {
  if [[ -z $tls ]]; then answers_at "127.0.0.$1" "$port"; else
    timeout 5 openssl s_client -connect "127.0.0.$1:$port" -CAfile "$dir/tls/ca.pem" -verify_return_error </dev/null >/dev/null 2>&1
  fi
}

# launch NODE [OPTION..]: starts the process of a node that is configured, and waits until it answers.
launch() {
  local node=$1 home=$dir/node$1 begin=$SECONDS pid
  shift
  jvm_options >"$home/conf/jvm.options"
  (cd "$home" && exec setsid "$java" "@$home/conf/jvm.options" -ea "-da:net.openhft..." -Xss256k -Xms128m "-Xmx$heap" \
    -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true \
    "-Dcassandra.config=file://$home/conf/cassandra.yaml" "-Dcassandra.storagedir=$home" "-Dcassandra.logdir=$home" \
    "-Dlogback.configurationFile=file://$home/conf/logback.xml" "-Dcassandra.triggers_dir=$home/conf/triggers" \
    "-Dcassandra.jmx.local.port=$((7099 + 100 * node))" -Djava.rmi.server.hostname=127.0.0.1 \
    -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=2000 -Dcassandra.superuser_setup_delay_ms=0 \
    -Dcassandra-foreground=yes "$@" -cp "$home/conf:$cache/lib/*" \
    org.apache.cassandra.service.CassandraDaemon >>"$home/log" 2>&1 </dev/null) &
  pid=$!
  echo "$pid" >"$home/pid"
  until answers "$node"; do
    kill -0 "$pid" 2>/dev/null || { tail -n 20 "$home/log" >&2; fail "node $node ended while starting; its log is $home/log"; }
    ((SECONDS - begin < 240)) || fail "node $node does not answer within 240 s; its log is $home/log"
    sleep 0.2
  done
  disown "$pid"
  echo "node $node on 127.0.0.$node:$port, process $pid, after $((SECONDS - begin)) s"
}

# Waits until node $1 sees $2 nodes up.
sees() {
  local begin=$SECONDS up=0
  while up=$(run_at "$1" status 2>/dev/null | grep -c '^UN') || true; [[ $up != "$2" ]]; do
    ((SECONDS - begin < 120)) || fail "node $1 sees $up of $2 nodes up"
  done
}

run_at() {
  local node=$1
  shift
  run_tool NodeTool "$dir/node$node" -h 127.0.0.1 -p "$((7099 + 100 * node))" "$@"
}

start() {
  [[ ${1:-} =~ ^[1-9][0-9]?$ && -n ${2:-} ]] || usage
  nodes=$1 port=9042 heap=512M tokens=4 logins= tls=
  mkdir -p "$2" && dir=$(cd "$2" && pwd -P)
  shift 2
  while [[ $# -gt 0 ]]; do
    case $1 in
      --port | --heap | --tokens) [[ -n ${2:-} ]] || fail "$1 needs a value"; printf -v "${1#--}" %s "$2"; shift ;;
      --logins) logins=yes ;;
      --tls) tls=yes ;;
      *) fail "start knows --port, --heap, --tokens, --logins and --tls, not '$1'" ;;
    esac
    shift
  done
  [[ ! -e $dir/node1 ]] || fail "a cluster is in $dir already; restart starts its nodes, or remove the directory"
  local n replicas=$((nodes < 3 ? nodes : 3))
  for ((n = 1; n <= nodes; n++)); do
    ! answers_at "127.0.0.$n" "$port" || fail "127.0.0.$n:$port is taken: another CQL server answers there"
  done
  jars
  [[ -z $tls ]] || certificates
  keep_settings
  for ((n = 1; n <= nodes; n++)); do
    configuration "$n" false
    launch "$n" "-Dcassandra.system_auth.default_rf=$replicas"
  done
  sees 1 "$nodes"
}

add() {
  settings "$@"
  nodes=$((nodes + 1))
  configuration "$nodes" true
  launch "$nodes"
  keep_settings
  sees 1 "$nodes"
}

kill_node() {
  settings "$@"
  check_node "${2:-}"
  local pid
  pid=$(process "$2") || fail "node $2 does not run"
  kill -9 "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  rm -f "$dir/node$2/pid"
}

# end NODE: stops a node; by force after a minute.
end() {
  local pid begin=$SECONDS
  pid=$(process "$1") || return 0
  kill -CONT "$pid"
  kill "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    ((SECONDS - begin < 60)) || { kill -9 "$pid" || true; break; }
    sleep 0.1
  done
  rm -f "$dir/node$1/pid"
}

restart() {
  settings "$@"
  check_node "${2:-}"
  end "$2"
  launch "$2"
}

nodetool() {
  settings "$@"
  check_node "${2:-}"
  run_at "${@:2}"
}

status() {
  settings "$@"
  local n pid state all=0
  for ((n = 1; n <= nodes; n++)); do
    pid=$(process "$n") || pid=-
    if [[ $pid != - ]] && answers "$n"; then state=answers; else state=down all=1; fi
    echo "$n 127.0.0.$n:$port $pid $state"
  done
  return "$all"
}

stop() {
  settings "$@"
  local n
  for ((n = nodes; n >= 1; n--)); do end "$n" & done
  wait
}

command=${1:-}
[[ $# -gt 0 ]] && shift
case $command in
  start | add | restart | nodetool | status | stop) "$command" "$@" ;;
  kill) kill_node "$@" ;;
  *) usage ;;
esac
