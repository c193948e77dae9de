package idemhttp

import (
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
)

// Headers this package reads and writes.
const (
	// HeaderKey carries the client's key. See KeyHeader.
	HeaderKey = "Idempotency-Key"
	// HeaderStatus says on every response of a protected method what became of
	// the key: a Status.
	HeaderStatus = "Idempotency-Status"
	// HeaderReplayed is "true" on a response that repeats an earlier one.
	HeaderReplayed = "Idempotent-Replayed"
	// HeaderExpires says, as an HTTP date, until when the key answers repeats.
	// Responses that had to be sent before the record was finished lack it.
	HeaderExpires = "Idempotency-Expires"
)

// keptHeaders are the response headers that are stored unless StoreHeaders adds
// more: those that describe the content or what to do next. An allow-list,
// because a header nobody thought of may belong to one client only.
func keptHeaders() []string {
	return []string{
		"Allow", "Cache-Control", "Content-Digest", "Content-Disposition", "Content-Encoding",
		"Content-Language", "Content-Location", "Content-Range", "Content-Type", "Deprecation", "Etag",
		"Expires", "Last-Modified", "Link", "Location", "Repr-Digest", "Retry-After", "Sunset", "Vary",
		"X-Content-Type-Options",
	}
}

// refusedHeaders are those that must never reach another client or another
// connection, with the reason.
func refusedHeaders() map[string]string {
	const (
		secret = "it may hold a secret of one client"
		hop    = "it belongs to one connection"
		own    = "it is made anew for every response"
	)
	return map[string]string{
		"Set-Cookie": secret, "Set-Cookie2": secret, "Authorization": secret, "Www-Authenticate": secret,
		"Authentication-Info": secret, "Proxy-Authenticate": secret, "Proxy-Authentication-Info": secret,
		"Connection": hop, "Keep-Alive": hop, "Proxy-Connection": hop, "Te": hop, "Trailer": hop,
		"Transfer-Encoding": hop, "Upgrade": hop,
		"Content-Length": own, "Date": own, HeaderStatus: own, HeaderReplayed: own, HeaderExpires: own,
	}
}

// headerSet is the allow-list with the given names added.
func headerSet(more []string) (map[string]bool, error) {
	kept := make(map[string]bool)
	for _, name := range keptHeaders() {
		kept[name] = true
	}
	refused := refusedHeaders()
	for _, name := range more {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if !isToken(canonical) {
			return nil, fmt.Errorf("StoreHeaders: %q is not the name of a header", name)
		}
		if why, no := refused[canonical]; no {
			return nil, fmt.Errorf("StoreHeaders: %s cannot be stored: %s", canonical, why)
		}
		kept[canonical] = true
	}
	return kept, nil
}

// pick returns the headers of h that are in the set. The slices are shared.
func pick(h http.Header, set map[string]bool) http.Header {
	picked := make(http.Header, len(h))
	for name, values := range h {
		if set[name] {
			picked[name] = values
		}
	}
	return picked
}

// replaceHeader makes to equal from. The map of a ResponseWriter cannot be
// exchanged, only refilled.
func replaceHeader(to, from http.Header) {
	maps.DeleteFunc(to, func(name string, _ []string) bool {
		_, stays := from[name]
		return !stays
	})
	maps.Copy(to, from)
}

func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h)) // slices.Sorted cannot know how many
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c > ' ' && c <= '~' && !slices.Contains([]byte(`"(),/:;<=>?@[\]{}`), c):
		default:
			return false
		}
	}
	return s != ""
}
