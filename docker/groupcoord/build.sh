#!/usr/bin/env bash
# build.sh: the images groupcoord:VERSION and groupcoord:latest of this checkout, on BASE. Where BASE cannot be pulled, on a base
# made from Debian's packages, which has Debian's Python. The last line on stdout is the base.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' groupcoord/version.py)
base=${BASE:-python:3.13-slim-bookworm}
if ! docker image inspect "$base" >/dev/null 2>&1 && ! docker pull --quiet "$base" >&2; then
  echo "build.sh: $base cannot be pulled; building on Debian's Python instead" >&2
  base=groupcoord/python:3.11
  docker/debian-base.sh "$base" python3-venv
fi
docker build --quiet --build-arg BASE="$base" --build-arg VERSION="$version" --build-arg PIP_CERT \
  -f docker/groupcoord/Dockerfile -t "groupcoord:$version" -t groupcoord:latest . >&2
echo "$base"
