#!/bin/sh
# Startup probe of the driver container. The kubelet runs it until its first success, never again.
# Other pods of the node read the ready file, so it must be absent until every check has passed.
set -eu

validations=/run/rbln/validations
ready="$validations/.driver-ctr-ready"

mkdir -p "$validations"
# A container that was killed had no chance to remove its file.
rm -f "$ready"

if [ ! -e /sys/module/rebellions/refcnt ]; then
    echo "kernel module rebellions is not loaded" >&2
    exit 1
fi
if ! command -v rbln-smi >/dev/null 2>&1; then
    echo "rbln-smi is not in PATH" >&2
    exit 1
fi
if ! rbln-smi >/dev/null; then
    echo "rbln-smi failed" >&2
    exit 1
fi

: >"$ready.tmp"
mv -f "$ready.tmp" "$ready"
