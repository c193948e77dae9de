package idemhttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/idembolt/idem"
)

// refused is the *idem.KeyError of a key that breaks a rule.
func refused(reason idem.RejectReason, format string, args ...any) error {
	return &idem.KeyError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// readKey returns the key in the named header of a request, or a *idem.KeyError.
func readKey(h http.Header, name string, requireUUID bool) (string, error) {
	lines := h.Values(name)
	switch len(lines) {
	case 0:
		return "", refused(idem.RejectMissing, "the header is missing")
	case 1:
	default: // also where they are equal: which one a proxy saw cannot be known
		return "", refused(idem.RejectFormat, "the header is given more than once")
	}
	id, err := parseKey(lines[0])
	if err != nil {
		return "", err
	}
	if requireUUID {
		if !isUUID(id) {
			return "", refused(idem.RejectFormat, "the key is not a UUID")
		}
		id = strings.ToLower(id) // RFC 9562: case does not matter
	}
	return id, nil
}

// parseKey reads a header value: a structured-field string (RFC 9651), which is
// quoted, or the bare text most clients send. `"abc"` and `abc` are one key.
func parseKey(value string) (string, error) {
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return "", refused(idem.RejectCharset, "the key holds a control character or one outside of ASCII at byte %d", i)
		}
	}
	id := value
	if strings.HasPrefix(value, `"`) {
		var err error
		if id, err = unquote(value); err != nil {
			return "", err
		}
	} else if strings.Contains(value, ",") { // two header lines that a proxy has joined look like this
		return "", refused(idem.RejectFormat, "the key holds a comma, which is allowed only between quotes")
	}
	switch {
	case id == "":
		return "", refused(idem.RejectFormat, "the key is empty")
	case len(id) > idem.MaxIDBytes:
		return "", refused(idem.RejectTooLong, "the key has %d bytes, at most %d are allowed", len(id), idem.MaxIDBytes)
	}
	return id, nil
}

// unquote reads a structured-field string that begins with a quote. Parameters
// after it are refused: none are defined, and to ignore one would be to guess.
func unquote(value string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; c {
		case '"':
			if i != len(value)-1 {
				return "", refused(idem.RejectFormat, "something follows the closing quote of the key")
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", refused(idem.RejectFormat, `a backslash in a quoted key may only stand before " or \`)
			}
			b.WriteByte(value[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", refused(idem.RejectFormat, "the closing quote of the key is missing")
}

// isUUID accepts the 36-character form of RFC 9562, of any version.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}
