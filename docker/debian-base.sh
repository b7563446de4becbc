#!/usr/bin/env bash
# debian-base.sh IMAGE PACKAGE,...: see that the Docker daemon has IMAGE, a minimal Debian with these packages, for machines that
# reach Debian's packages but no image registry. Making it needs root and debootstrap.
set -euo pipefail
image=$1 packages=$2
! docker image inspect "$image" >/dev/null 2>&1 || exit 0

mirror=http://deb.debian.org/debian
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.log"' EXIT
# A machine that runs Debian may have been told of a nearer mirror.
if grep -qs '^ID=debian$' /etc/os-release && [ -f /etc/apt/sources.list.d/debian.sources ]; then
  mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources | head -n 1)
fi
echo "debian-base.sh: making $image from Debian's packages (a minute or two)" >&2
if ! debootstrap --variant=minbase --include="$packages,ca-certificates" bookworm "$root" "$mirror" >"$root.log" 2>&1; then
  tail -n 20 "$root.log" >&2
  exit 1
fi
(cd "$root" && rm -rf tmp/* var/cache/apt/* var/lib/apt/lists/* var/log/* usr/share/{doc,info,locale,man}/*)
# Whom this machine trusts, such as a proxy with a certificate of its own.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
tar -C "$root" -c . | docker import --change 'ENV LANG=C.UTF-8' - "$image" >&2
