package idemhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/internal/canonjson"
)

const (
	maxMembers       = 48 // idem.Parts allows 64 with those of the request
	maxPartNameBytes = 64
	otherMembers     = "other members"
)

// requestParts splits a request into what must not change between repeats. The
// host and the other headers are left out: proxies and clients change them.
func requestParts(r *http.Request, route string, body *spooled) idem.Parts {
	media, isJSON := mediaType(r.Header)
	parts := make(idem.Parts, 0, 16)
	text := make([]byte, 0, 256) // of all of them: one allocation on a path that should be short
	add := func(name, value string) {
		from := len(text)
		text = append(text, value...)
		parts = append(parts, idem.Part{Name: name, Data: text[from:]})
	}
	add("method", r.Method)
	if route != "" {
		add("route", route)
	}
	add("path", r.URL.EscapedPath())
	add("query", canonicalQuery(r.URL.RawQuery))
	add("media type", media)
	if isJSON && body.file == nil {
		if all, ok := appendJSON(parts, body.memory); ok {
			return all
		}
	}
	return append(parts, idem.Part{Name: "body", Data: body.digest()})
}

// canonicalQuery orders the parameters by name; the order of equal names has a
// meaning to some. A query that is not well formed is compared as it is.
func canonicalQuery(raw string) string {
	if isCanonicalQuery(raw) {
		return raw
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return "?" + raw // cannot be the encoding of a well-formed one
	}
	return q.Encode()
}

// isCanonicalQuery reports whether raw is what parsing and encoding it would
// give, for queries without escapes: most need neither.
func isCanonicalQuery(raw string) bool {
	last := ""
	for raw != "" {
		pair, rest, more := strings.Cut(raw, "&")
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name < last || more && rest == "" || !isUnreserved(name) || !isUnreserved(value) {
			return false
		}
		last, raw = name, rest
	}
	return true
}

// isUnreserved reports whether s holds only what no encoder of URLs escapes
// (RFC 3986).
func isUnreserved(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}

// mediaType returns the canonical type of the content, and whether it is JSON
// whose spelling does not matter. Parameters mean nothing for JSON (RFC 8259).
func mediaType(h http.Header) (media string, isJSON bool) {
	const plainJSON = "application/json"
	raw := h.Get("Content-Type")
	encoding := strings.ToLower(h.Get("Content-Encoding"))
	if raw == plainJSON && encoding == "" { // most requests need no parsing
		return plainJSON, true
	}
	name, params, err := mime.ParseMediaType(raw)
	if err != nil {
		name, params = raw, nil
	}
	if encoding == "" && err == nil && (name == plainJSON || strings.HasSuffix(name, "+json")) {
		return name, true
	}
	if charset, ok := params["charset"]; ok {
		params["charset"] = strings.ToLower(charset)
	}
	if formatted := mime.FormatMediaType(name, params); formatted != "" {
		name = formatted
	}
	return name + "\n" + encoding, false
}

// appendJSON makes a part of each top-level member, named like a JSON pointer so
// that it cannot be taken for a part of the request. It reports false for text
// that readers could disagree about: that is compared byte by byte.
func appendJSON(parts idem.Parts, data []byte) (idem.Parts, bool) {
	members, isObject, err := canonjson.Members(data)
	if err != nil {
		return nil, false
	}
	if !isObject {
		whole, err := canonjson.Canonicalize(data)
		return append(parts, idem.Part{Name: "body", Data: whole}), err == nil
	}
	if len(members) == 0 {
		return append(parts, idem.Part{Name: "body", Data: []byte("{}")}), true
	}
	alone := min(len(members), maxMembers)
	for _, m := range members[:alone] {
		parts = append(parts, idem.Part{Name: memberName(m.Name), Data: m.Value})
	}
	if rest := members[alone:]; len(rest) > 0 {
		parts = append(parts, idem.Part{Name: otherMembers, Data: canonjson.Pack(rest)})
	}
	return parts, true
}

// memberName is the JSON pointer to a member. One that is too long is replaced,
// and so is any that looks like a replacement.
func memberName(name string) string {
	pointer := "/" + name
	if strings.ContainsAny(name, "~/") {
		pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	if len(pointer) > maxPartNameBytes || strings.HasPrefix(name, "sha256:") {
		sum := sha256.Sum256([]byte(name))
		return "/sha256:" + hex.EncodeToString(sum[:16])
	}
	return pointer
}
