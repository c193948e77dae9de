package idemhttp

import (
	"net/http"
	"net/url"
	"strings"
)

// redirectedFrom returns the request that a chain of redirects began with, or
// req itself if there was none, and whether the chain has left its host.
//
// http.Client takes a key that the caller put on the first request along to
// every host: of the headers only Authorization, Cookie and the like count as
// sensitive for it. One from the context would come along too, since all hops
// have the context. But the key opens a stored response to whoever passes for
// its sender, and what the other host does with it is unknown, so it does not
// get it. Leaving it out was rejected, for then the one request that changes
// something would be the one that is not protected; so was refusing to follow,
// which is for CheckRedirect to decide. The other host gets a derived key.
//
// As with http.Client's own headers, a chain that has left does not come back:
// the other host chose where to.
func redirectedFrom(req *http.Request) (first *http.Request, away bool) {
	first = req
	for r := previous(req); r != nil; r = previous(r) {
		first = r
	}
	for r := req; r != first; r = previous(r) {
		away = away || !sameHost(first.URL, r.URL)
	}
	return first, away
}

// previous is the request whose response has led to this one, or nil.
func previous(req *http.Request) *http.Request {
	if req.Response == nil {
		return nil
	}
	return req.Response.Request
}

// sameHost reports whether what was sent to one URL may be sent to the other: the
// host and port are the same and the connection is no less private. It is
// stricter than http.Client, for which any port and a subdomain are the same
// host: those are often another service, or another tenant. The usual way from
// http to https, between the default ports, stays on the host.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if strings.EqualFold(from.Scheme, to.Scheme) {
		return port(from) == port(to)
	}
	return from.Scheme == "http" && to.Scheme == "https" && (port(from) == port(to) || port(from) == "80" && port(to) == "443")
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
