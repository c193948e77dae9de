package token_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/token"
)

// userOf is the subject function of the tests: the user is in a header.
func userOf(r *http.Request) (string, error) {
	if user := r.Header.Get("X-User"); user != "" {
		return user, nil
	}
	return "", errors.New("nobody is logged in")
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem checks that it is one, and returns its type.
func (a answer) problem(t *testing.T) string {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.Equal(t, a.status, p.Status)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p.Type
}

func serve(h http.Handler, r *http.Request) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// request is a POST of alice's.
func request(body io.Reader, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", body)
	r.Header.Set("X-User", "alice")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

const urlencoded = "application/x-www-form-urlencoded"

func submit(value string) *http.Request {
	form := url.Values{"amount": {"120"}, token.FormField: {value}}
	return request(strings.NewReader(form.Encode()), "Content-Type", urlencoded)
}

// protected is a handler that counts its runs.
func protected(tokens *token.Tokens) (http.Handler, *atomic.Int32) {
	var runs atomic.Int32
	return tokens.Protect(userOf)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
	})), &runs
}

func TestProtect(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h, runs := protected(tokens)
	value := issue(t, tokens, "alice")
	require.Equal(t, http.StatusCreated, serve(h, submit(value)).status)
	for _, r := range []*http.Request{submit(value), request(nil, token.Header, value)} {
		a := serve(h, r)
		require.Equal(t, http.StatusConflict, a.status)
		require.Equal(t, token.ProblemUsed, a.problem(t))
	}
	require.Equal(t, http.StatusCreated, serve(h, request(nil, token.Header, issue(t, tokens, "alice"))).status)
	require.EqualValues(t, 2, runs.Load())
}

func TestProtectRefuses(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h, runs := protected(tokens)
	value := issue(t, tokens, "alice")
	anonymous := submit(value)
	anonymous.Header.Del("X-User")
	oddly := submit(value)
	oddly.Header.Set("X-User", "a\x01b")
	inAddress := request(nil)
	inAddress.URL.RawQuery = token.FormField + "=" + value
	tests := []struct {
		name   string
		r      *http.Request
		status int
		want   string
	}{
		{"no token", request(nil), http.StatusBadRequest, token.ProblemMissing},
		{"an empty one", submit(""), http.StatusBadRequest, token.ProblemMissing},
		{"an empty header", request(nil, token.Header, ""), http.StatusBadRequest, token.ProblemMissing},
		{"two headers", request(nil, token.Header, value, token.Header, value), http.StatusBadRequest, token.ProblemMissing},
		{"in the address", inAddress, http.StatusBadRequest, token.ProblemMissing},
		{"in JSON", request(strings.NewReader(`{"idempotent_token":"`+value+`"}`), "Content-Type", "application/json"), http.StatusBadRequest, token.ProblemMissing},
		{"in a body of no type", request(strings.NewReader(token.FormField + "=" + value)), http.StatusBadRequest, token.ProblemMissing},
		{"in a body of a bad type", request(strings.NewReader(token.FormField+"="+value), "Content-Type", "a;b;c"), http.StatusBadRequest, token.ProblemMissing},
		{"garbage", submit("nonsense"), http.StatusConflict, token.ProblemUnknown},
		{"very long", request(nil, token.Header, strings.Repeat("A", 1<<20)), http.StatusConflict, token.ProblemUnknown},
		{"bob's", submit(issue(t, tokens, "bob")), http.StatusConflict, token.ProblemUnknown},
		{"no user", anonymous, http.StatusBadRequest, token.ProblemSubject},
		{"a bad user", oddly, http.StatusBadRequest, token.ProblemSubject},
		{"a broken body", request(io.MultiReader(strings.NewReader("a=b&"), brokenReader{}), "Content-Type", urlencoded), http.StatusBadRequest, token.ProblemBodyUnreadable},
	}
	for _, tt := range tests {
		a := serve(h, tt.r)
		require.Equal(t, tt.status, a.status, tt.name)
		require.Equal(t, tt.want, a.problem(t), tt.name)
		require.NotContains(t, a.body, "logged in", tt.name)
	}
	require.Zero(t, runs.Load())
	require.Equal(t, http.StatusCreated, serve(h, submit(value)).status, "nothing of that used it")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestProtectLimitedBody(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h, runs := protected(tokens)
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		h.ServeHTTP(w, r)
	})
	a := serve(limited, submit(issue(t, tokens, "alice")))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
	require.Equal(t, token.ProblemBodyTooLarge, a.problem(t))
	require.Zero(t, runs.Load())
}

func TestProtectExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens(t, newMemory(t))
		h, runs := protected(tokens)
		value := issue(t, tokens, "alice")
		time.Sleep(token.DefaultTTL)
		a := serve(h, submit(value))
		require.Equal(t, http.StatusConflict, a.status)
		require.Equal(t, token.ProblemExpired, a.problem(t))
		require.Zero(t, runs.Load())
	})
}

func TestSafeMethodsPass(t *testing.T) {
	t.Parallel()
	h, runs := protected(newTokens(t, newMemory(t)))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		require.Equal(t, http.StatusCreated, serve(h, httptest.NewRequest(method, "/orders", nil)).status)
	}
	require.EqualValues(t, 4, runs.Load())
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, "ODD"} {
		r := httptest.NewRequest(method, "/orders", nil)
		r.Header.Set("X-User", "alice")
		require.Equal(t, http.StatusBadRequest, serve(h, r).status)
	}
	require.EqualValues(t, 4, runs.Load())
}
