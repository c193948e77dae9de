package cli

const proxyText = `Forwards requests to a service over HTTP and makes the protected ones idempotent:
a POST or PATCH that is sent again with the same Idempotency-Key gets the response
of the first one, and the service does not see it. What a client gets in each case
is in docs/http.md.

Without --route every POST and PATCH is protected and must have a key. With routes
only those are, everything else passes untouched. A route is a pattern of Go's
net/http, [METHOD ][HOST]/PATH, where {id} stands for a segment, {rest...} or a
slash at the end for all that follows; without a method it protects POST and PATCH.
Settings may follow, such as 'POST /charges policy=payments timeout=30s'.

The policy says how long a response is kept and what follows a crash: payments (72
hours), orders and api (24 hours), or one of the file. All three refuse to run a
request again of which nobody knows whether it was carried out.

Keys are kept apart by their scope: --scope for all requests, --scope-header for
each value of a header, both for a value within the scope. The header must be set
by something that the service trusts, such as a gateway that replaces what clients
send: a client who can choose it reads the responses of others. A value that cannot
stand in a scope is hashed, and so is every value of a header whose name sounds
like credentials.

If the service cannot be reached, nothing was done: 502, and the key is free. If
the connection breaks after the request was sent, or --timeout is over, nobody
knows: 502 or 504, and a repeat gets 409 until the key is settled with idemctl
resolve or the policy says to run again.

The file has one line for each setting; # begins a comment:

  listen 127.0.0.1:8080
  to http://127.0.0.1:3000
  scope-header X-Tenant
  policy slow retention=7d retry-window=3d lease=1m interrupted=fail durability=strict
  route POST /charges policy=payments key=required
  route PATCH /orders/{id} policy=slow timeout=30s wait=10s max-body=1MiB max-response=1MiB store-body=never

The store's file is held while the proxy runs: other commands of idemctl then end
with exit code 6. SIGINT and SIGTERM stop it: it accepts nothing more, and waits up
to --drain for the requests that are running. It ends with 0 if all were answered,
with 1 if some were cut off; a second signal ends it at once.`
