#!/usr/bin/env bash
# with-docker.sh COMMAND...: run it where a Docker daemon answers. If none does, START_DOCKERD=1 lets this start one, as root
# and with everything of it in a temporary folder, and end it with the command. Otherwise it says what is missing, and the
# command runs all the same: it may know what to do without Docker.
set -euo pipefail

if docker version >/dev/null 2>&1; then
  exec "$@"
fi
if [ "${START_DOCKERD:-}" != 1 ]; then
  echo "No Docker daemon answers${DOCKER_HOST:+ at $DOCKER_HOST}. Start one, or let START_DOCKERD=1 start one for this run:" \
    "that needs root and Debian's docker.io (or another dockerd), and debootstrap where no image registry can be reached." >&2
  exec "$@"
fi
for tool in docker dockerd setpriv; do
  command -v "$tool" >/dev/null || { echo "with-docker.sh: there is no $tool (Debian: docker.io, util-linux)" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "with-docker.sh: only root can start dockerd" >&2; exit 1; }
mountpoint -q /sys/fs/cgroup || cgroupfs-mount

dir=$(mktemp -d)
daemon=
child=

end() {
  trap '' INT TERM HUP
  if [ -n "$daemon" ] && kill -0 "$daemon" 2>/dev/null; then
    # Whoever started a container has removed it, unless it was killed.
    docker ps --all --quiet 2>/dev/null | xargs --no-run-if-empty docker rm --force --volumes >/dev/null 2>&1 || true
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$dir" || echo "with-docker.sh: $dir could not be removed" >&2
}
trap end EXIT
# A Ctrl-C reaches the command by itself; other signals are for it too, and the end is when it has ended.
trap : INT
trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true' TERM HUP

export DOCKER_HOST=unix://$dir/docker.sock
# In a session of its own, so that a Ctrl-C does not end it under the feet of the tests; with this script at the latest.
setsid setpriv --pdeathsig TERM \
  dockerd -H "$DOCKER_HOST" --data-root "$dir/data" --exec-root "$dir/exec" -p "$dir/pid" >"$dir/log" 2>&1 &
daemon=$!
for _ in $(seq 300); do
  docker version >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.1
done
if ! docker version >/dev/null 2>&1; then
  echo "with-docker.sh: dockerd did not start; its log ends:" >&2
  tail -n 20 "$dir/log" >&2
  exit 1
fi

# A shell lets its background jobs ignore Ctrl-C; this one must not.
env --default-signal=INT "$@" <&0 &
child=$!
status=0
while true; do
  status=0
  wait "$child" || status=$?
  kill -0 "$child" 2>/dev/null || break
done
exit "$status"
