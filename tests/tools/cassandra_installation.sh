# The installation of Apache Cassandra 5.0.9 that cassandra.sh and cluster.sh share: its jars from Maven Central, the options
# of its JVM, its programs. Sourced by them; they define `fail` before they call anything here.
#
# Needs a JDK 17, and once Maven. Jars are kept in ${XDG_CACHE_HOME:-~/.cache}/helenus/cassandra-5.0.9.

version=5.0.9
cache=${XDG_CACHE_HOME:-$HOME/.cache}/helenus/cassandra-$version
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
pom=$(dirname "${BASH_SOURCE[0]}")/cassandra.pom.xml

jars() {
  [[ -f $cache/complete ]] && return
  mkdir -p "$cache"
  (
    flock 9 # several tests may ask at once; the first one downloads
    [[ -f $cache/complete ]] && exit
    echo "cassandra: downloading Cassandra $version into $cache" >&2
    mvn -q -B -Dstyle.color=never -f "$pom" dependency:copy-dependencies \
      -DincludeScope=runtime "-DoutputDirectory=$cache/lib" >&2
    touch "$cache/complete"
  ) 9>"$cache/lock" || fail "Maven could not fetch cassandra-all $version; see its message above"
}

# The doors that JDK 17 closes and Cassandra needs (conf/jvm17-server.options and jvm17-clients.options).
jvm_options() {
  local name
  for name in java.base/java.lang.ref java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch \
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server \
    java.sql/java.sql jdk.attach/sun.tools.attach jdk.compiler/com.sun.tools.javac.file jdk.unsupported/sun.misc; do
    echo "--add-exports=$name=ALL-UNNAMED"
  done
  for name in java.base/{java.io,java.lang,java.lang.module,java.lang.reflect,java.math,java.net,java.nio} \
    java.base/{java.util,java.util.concurrent,java.util.concurrent.atomic,sun.nio.ch} \
    java.base/jdk.internal.{loader,math,module,ref,reflect,util.jar} \
    jdk.compiler/com.sun.tools.javac jdk.management/com.sun.management.internal; do
    echo "--add-opens=$name=ALL-UNNAMED"
  done
  echo "-Djdk.attach.allowAttachSelf=true"
  echo "-Dio.netty.tryReflectionSetAccessible=true"
  echo "-javaagent:$(ls "$cache"/lib/jamm-*.jar)"
}

# Whether a CQL server at HOST PORT answers an OPTIONS frame (version 4, opcode 5) with SUPPORTED (opcode 6).
answers_at() {
  local reply
  reply=$(timeout 5 bash -c '
    exec 3<>"/dev/tcp/$0/$1" && printf "\4\0\0\0\5\0\0\0\0" >&3 && head -c 5 <&3 | od -An -tu1' "$1" "$2" 2>/dev/null)
  [[ ${reply##* } == 6 ]]
}

# run_tool MAIN CONF_DIR ARGS...: one of Cassandra's offline programs, tuned for a short life.
run_tool() {
  local main=$1 dir=$2
  shift 2
  jvm_options >"$dir/conf/tool.options"
  "$java" "@$dir/conf/tool.options" -ea -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx768m \
    "-Dcassandra.config=file://$dir/conf/cassandra.yaml" "-Dcassandra.storagedir=$dir" "-Dcassandra.logdir=$dir" \
    "-Dlogback.configurationFile=file://$dir/conf/logback.xml" "-Dcassandra.triggers_dir=$dir/conf/triggers" \
    -cp "$dir/conf:$cache/lib/*" "org.apache.cassandra.tools.$main" "$@"
}
