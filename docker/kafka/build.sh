#!/usr/bin/env bash
# build.sh [VERSION]: the image groupcoord/kafka:VERSION, for machines that reach Debian's packages and Maven Central but no
# image registry. It does what apache/kafka:VERSION does as far as the tests can see. Needs a Docker daemon, Maven and, for
# the first image on that daemon, root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")"
version=${1:-${KAFKA_VERSION:-4.3.1}}
base=groupcoord/jre:17

libs=$(./jars.sh "$version")
../debian-base.sh "$base" openjdk-17-jre-headless
docker build --quiet --build-arg BASE="$base" --build-arg LIBS="$(basename "$libs")" -t "groupcoord/kafka:$version" . >&2
echo "groupcoord/kafka:$version"
