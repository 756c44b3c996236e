#!/usr/bin/env bash
# Installs Chromium and HAProxy for the tests when they are absent and it is possible.
set -euo pipefail
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || missing+=(haproxy)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]}; the tests that need them will fail" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
