#!/usr/bin/env bash
# build.sh [VERSION]: the image groupcoord/kafka:VERSION, for machines that reach Debian's packages and Maven Central but no
# image registry. It does what apache/kafka:VERSION does as far as the tests can see. Needs a Docker daemon, Maven and, for
# the first image on that daemon, root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")"
version=${1:-${KAFKA_VERSION:-4.3.1}}
base=groupcoord/jre:17

make_base() {
  local root mirror=http://deb.debian.org/debian
  root=$(mktemp -d)
  # shellcheck disable=SC2064 # the value of now: a trap runs when local variables are gone
  trap "rm -rf '$root' '$root.log'" EXIT
  # A machine that runs Debian may have been told of a nearer mirror.
  if grep -qs '^ID=debian$' /etc/os-release && [ -f /etc/apt/sources.list.d/debian.sources ]; then
    mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources | head -n 1)
  fi
  echo "build.sh: making $base from Debian's packages (a minute or two)" >&2
  if ! debootstrap --variant=minbase --include=openjdk-17-jre-headless,ca-certificates bookworm "$root" "$mirror" \
    >"$root.log" 2>&1; then
    tail -n 20 "$root.log" >&2
    exit 1
  fi
  (cd "$root" && rm -rf tmp/* var/cache/apt/* var/lib/apt/lists/* var/log/* usr/share/{doc,info,locale,man}/*)
  tar -C "$root" -c . | docker import --change 'ENV LANG=C.UTF-8' - "$base" >&2
}

libs=$(./jars.sh "$version")
docker image inspect "$base" >/dev/null 2>&1 || make_base
docker build --quiet --build-arg BASE="$base" --build-arg LIBS="$(basename "$libs")" -t "groupcoord/kafka:$version" . >&2
echo "groupcoord/kafka:$version"
