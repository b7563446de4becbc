#!/usr/bin/env bash
# with-image.sh COMMAND...: see that the Docker daemon has an image of Kafka KAFKA_VERSION, and run the command. Apache's image
# is pulled; where no registry can be reached, build.sh builds one like it. Without a daemon there is nothing to see to.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=${KAFKA_VERSION:-4.3.1}
public=apache/kafka:$version
local=groupcoord/kafka:$version

has() { docker image inspect "$1" >/dev/null 2>&1; }

if docker version >/dev/null 2>&1 && [ -z "${KAFKA_IMAGE:-}" ] && ! has "$public" && ! has "$local"; then
  if ! docker pull --quiet "$public"; then
    echo "with-image.sh: $public cannot be pulled; building $local instead" >&2
    "$here/build.sh" "$version"
  fi
fi
exec "$@"
