package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// hashedTenant begins the scope part of a tenant that cannot stand in a scope as
// it is, or must not. No tenant is written so in clear, so that the two forms
// never meet.
const hashedTenant = "sha256-"

// hashedTenantBytes is the length of that part: the prefix and 32 digits.
const hashedTenantBytes = len(hashedTenant) + 32

// scopeFunc names the scope of a request: the fixed name, the tenant in the
// header, or both.
func scopeFunc(name, header string) idemhttp.ScopeFunc {
	if header == "" {
		return func(*http.Request) (string, error) { return name, nil }
	}
	prefix := name
	if name != "" {
		prefix += ":"
	}
	secret := holdsCredentials(header)
	return func(r *http.Request) (string, error) {
		values := r.Header.Values(header)
		if len(values) != 1 || values[0] == "" { // of two it is not known which one the service goes by
			return "", fmt.Errorf("want one %s header that is not empty", header)
		}
		return prefix + tenant(values[0], len(prefix), secret), nil
	}
}

// tenant is the part of the scope for a value of the header, after so many other
// bytes. Different values give different parts.
func tenant(value string, before int, secret bool) string {
	if !secret && !strings.HasPrefix(value, hashedTenant) && before+len(value) <= idem.MaxScopeBytes && isScope(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hashedTenant + hex.EncodeToString(sum[:])[:32]
}

func isScope(text string) bool { return (idem.Key{Scope: text, ID: "x"}).Validate() == nil }

// holdsCredentials reports whether values of a header must not be shown by tools
// that list keys.
func holdsCredentials(header string) bool {
	header = strings.ToLower(header)
	for _, word := range []string{"auth", "cookie", "key", "token", "secret"} {
		if strings.Contains(header, word) {
			return true
		}
	}
	return false
}

func checkScopeName(name string) error {
	if !isScope(name) {
		return fmt.Errorf("%q is not a scope: 1 to %d letters, digits and \"._:@-\"", name, idem.MaxScopeBytes)
	}
	return nil
}

func checkScopeHeader(name string) error {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return fmt.Errorf("%q is not the name of a header", name)
		}
	}
	switch http.CanonicalHeaderKey(name) {
	case "":
		return errors.New("the name of the header is empty")
	case "Host", idemhttp.HeaderKey:
		return fmt.Errorf("%s does not say who is asking: name a header that a gateway sets, such as X-Tenant", name)
	}
	return nil
}

// checkScope checks the two together.
func (c *Config) checkScope() error {
	longest := idem.MaxScopeBytes - hashedTenantBytes - len(":")
	switch {
	case c.Scope == "" && c.ScopeHeader == "":
		return errors.New("it is not said whose keys these are: give --scope shop for a service with one kind of client, or --scope-header X-Tenant")
	case c.ScopeHeader != "" && len(c.Scope) > longest:
		return fmt.Errorf("the scope has %d bytes, at most %d are left beside a tenant", len(c.Scope), longest)
	}
	return nil
}
