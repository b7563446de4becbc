#!/usr/bin/env bash
# jars.sh [VERSION]: see that the jars of that Kafka are there, exactly those of versions/VERSION/SHA256SUMS, and print where.
# What is missing is fetched with Maven. It fails if a jar is missing, is one too many, or has another checksum.
set -euo pipefail
cd "$(dirname "$0")"
version=${1:-${KAFKA_VERSION:-4.3.1}}
pinned=versions/$version
if [ ! -f "$pinned/pom.xml" ]; then
  echo "jars.sh: no pinned jars for Kafka $version; there are those of $(cd versions && echo *)" >&2
  exit 1
fi
libs=libs
[ "$version" = 4.3.1 ] || libs=libs-$version

verify() {
  diff <(sed 's/.*[ *]//' "$pinned/SHA256SUMS" | sort) <(cd "$1" && ls | sort) >&2 &&
    (cd "$1" && sha256sum --check --quiet --strict "../$pinned/SHA256SUMS") >&2
}

if [ ! -d "$libs" ]; then
  fetched=$(mktemp -d "$PWD/fetched.XXXXXX")
  trap 'rm -rf "$fetched"' EXIT
  chmod 755 "$fetched"
  mvn -q -B -f "$pinned/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$fetched" >&2
  verify "$fetched" || { echo "jars.sh: what Maven brought is not what versions/$version/SHA256SUMS says" >&2; exit 1; }
  mv "$fetched" "$libs"
elif ! verify "$libs"; then
  echo "jars.sh: docker/kafka/$libs is not what versions/$version/SHA256SUMS says; remove it to have it fetched anew" >&2
  exit 1
fi
echo "$PWD/$libs"
