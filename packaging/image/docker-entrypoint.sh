#!/bin/sh
# Starts the container's command: the server by default, as the user cassandra if the container runs as root.
# HELENUS_STANDS_FOR is the name under which the server is called: cassandra, or scylla in the image that stands in for ScyllaDB's.
set -e

# Options alone are meant for the server.
case "${1-}" in
  '' | -*)
    if [ "$HELENUS_STANDS_FOR" = scylla ]; then set -- scylla "$@"; else set -- cassandra -f "$@"; fi
    ;;
esac

if { [ "$1" = cassandra ] || [ "$1" = scylla ]; } && [ "$(id -u)" = 0 ]; then
  # Files that were copied or mounted in belong to root. A link may lead to a file elsewhere: it changes hands itself, not its file.
  for folder in "${CASSANDRA_CONF:-/etc/cassandra}" "/var/lib/$1" "/var/log/$1"; do
    if [ -d "$folder" ]; then find "$folder" ! -user cassandra -exec chown -h cassandra:cassandra {} +; fi
  done
  exec su -s /bin/sh cassandra -c 'exec "$0" "$@"' -- "$@"
fi

exec "$@"
