#!/bin/sh
# Starts the toolkit daemon once the node's driver is proved, with the settings of that proof.
# What driver-ready sets replaces what the pod sets: only the proof knows where the driver is.
set -eu

ready=/run/rbln/validations/driver-ready

# As process 1 a shell ignores signals it has no trap for.
trap 'exit 0' TERM INT
[ -f "$ready" ] || echo "waiting for $ready"
until [ -f "$ready" ]; do
    sleep 5 &
    wait $!
done
trap - TERM INT

set -a
# shellcheck source=/dev/null
. "$ready"
set +a

rbln-ctk --version || true
exec rbln-ctk-daemon "$@"
