#!/bin/sh
# Starts the container's command: the server by default, as the user cassandra if the container runs as root.
set -e

# Options alone are meant for the server.
case "${1-}" in
  '' | -*) set -- cassandra -f "$@" ;;
esac

if [ "$1" = cassandra ] && [ "$(id -u)" = 0 ]; then
  # Files that were copied or mounted in belong to root.
  find "${CASSANDRA_CONF:-/etc/cassandra}" /var/lib/cassandra /var/log/cassandra \
    ! -user cassandra -exec chown cassandra:cassandra {} +
  exec su -s /bin/sh cassandra -c 'exec "$0" "$@"' -- "$@"
fi

exec "$@"
