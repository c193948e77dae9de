#!/bin/sh
# Starts the service on port 3000 and idemctl proxy in front of it on port 8080.
# Both end with this script. What they remember is in DIR, given or ./state.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$here/state}
service_port=${SERVICE_PORT:-3000}
listen=${LISTEN:-127.0.0.1:8080}
mkdir -p "$dir"

idemctl=${IDEMCTL:-}
if [ -z "$idemctl" ]; then
  idemctl=$dir/idemctl
  (cd "$here" && go build -o "$idemctl" ../../cmd/idemctl)
fi

python3 "$here/service.py" "$service_port" "$dir/ledger" &
service=$!
trap 'kill $service 2>/dev/null || true' EXIT
until curl -s -o /dev/null "http://127.0.0.1:$service_port/charges"; do
  kill -0 $service || exit 1
  sleep 0.1
done
"$idemctl" proxy --db "$dir/proxy.db" --listen "$listen" --to "http://127.0.0.1:$service_port" \
  --scope shop --route 'POST /charges' --policy payments &
proxy=$!
# The proxy first, so that running requests still have their service. A Ctrl-C has
# reached it already, and a second signal would cut them off.
trap 'kill $proxy 2>/dev/null || true; wait $proxy || true; kill $service 2>/dev/null || true' EXIT
trap 'wait $proxy || true; exit 130' INT
trap 'exit 143' TERM
echo "service: pid $service, ledger $dir/ledger"
echo "proxy: pid $proxy, store $dir/proxy.db"
wait $proxy
