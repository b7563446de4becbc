#!/usr/bin/env bash
# start.sh: start `groupcoord serve` with OPTIONS in the background, and say in $GITHUB_OUTPUT where it listens as soon as it
# does. If it does not start, say why and fail.
set -euo pipefail
dir=$(mktemp -d "$RUNNER_TEMP/groupcoord-XXXXXX")
mkfifo "$dir/said"

# shellcheck disable=SC2086 # OPTIONS are several words
nohup "$RUNNER_TEMP/groupcoord/bin/groupcoord" serve ${OPTIONS:-} >"$dir/said" 2>"$dir/log" </dev/null &
# The first line, or nothing if the server ended instead.
read -r line <"$dir/said" || { cat "$dir/log" >&2; exit 1; }
{
  echo "bootstrap-servers=${line#listening on }"
  echo "log=$dir/log"
  echo "pid=$!"
} >>"$GITHUB_OUTPUT"
echo "groupcoord: $line, log in $dir/log"
