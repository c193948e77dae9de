package token_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/token"
)

// multipartForm builds a body from fields, a name that begins with "file:" being one.
func multipartForm(t *testing.T, pairs ...string) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		var part io.Writer
		var err error
		if name, isFile := strings.CutPrefix(pairs[i], "file:"); isFile {
			part, err = w.CreateFormFile(name, "upload.bin")
		} else {
			part, err = w.CreateFormField(pairs[i])
		}
		require.NoError(t, err)
		_, err = io.WriteString(part, pairs[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

// TestTokenInForm: where the token may be, and that the handler gets every byte.
func TestTokenInForm(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	const marker = "TOKEN"
	multi := func(pairs ...string) func(t *testing.T) ([]byte, string) {
		return func(t *testing.T) ([]byte, string) { return multipartForm(t, pairs...) }
	}
	form := func(text string) func(*testing.T) ([]byte, string) {
		return func(*testing.T) ([]byte, string) { return []byte(text), urlencoded + "; charset=utf-8" }
	}
	tests := []struct {
		name  string
		build func(t *testing.T) ([]byte, string)
		found bool
	}{
		{"alone", form(token.FormField + "=" + marker), true},
		{"last", form("a=1&b=2&" + token.FormField + "=" + marker), true},
		{"name escaped", form("idempotent%5Ftoken=" + marker), true},
		{"beside broken pairs", form("%zz=%zz&;&" + token.FormField + "=" + marker), true},
		{"value broken", form(token.FormField + "=%zz" + marker), false},
		{"other name", form("token=" + marker), false},
		{"first of a large form", form(token.FormField + "=" + marker + "&text=" + large), true},
		{"last of a large form", form("text=" + large + "&" + token.FormField + "=" + marker), false},
		{"cut in the token", form("text=" + large[:1<<20-len("text=&")-len(token.FormField)-10] + "&" + token.FormField + "=" + marker), false},
		{"empty form", form(""), false},
		{"multipart", multi(token.FormField, marker, "a", "1"), true},
		{"multipart, after text", multi("a", "1", token.FormField, marker), true},
		{"multipart, before a file", multi(token.FormField, marker, "file:doc", large), true},
		{"multipart, after a file", multi("file:doc", large, token.FormField, marker), false},
		{"multipart, cut in the token", multi("a", large[:1<<20-242], token.FormField, marker), false},
		{"multipart, as a file", multi("file:"+token.FormField, marker), false},
		{"multipart without", multi("a", "1"), false},
		{"multipart of nothing", func(*testing.T) ([]byte, string) { return nil, "multipart/form-data; boundary=b" }, false},
		{"multipart without a boundary", func(*testing.T) ([]byte, string) { return []byte(marker), "multipart/form-data" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens := newTokens(t, newMemory(t))
			value := issue(t, tokens, "alice")
			body, contentType := tt.build(t)
			body = bytes.Replace(body, []byte(marker), []byte(value), 1)
			var got []byte
			h := tokens.Protect(userOf)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var err error
				got, err = io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
			}))
			a := serve(h, request(bytes.NewReader(body), "Content-Type", contentType))
			if !tt.found {
				require.Equal(t, token.ProblemMissing, a.problem(t))
				return
			}
			require.Equal(t, http.StatusOK, a.status, a.body)
			require.True(t, bytes.Equal(body, got))
		})
	}
}

// TestFormParsed: the handler parses the form as usual, and so may who comes before
// Protect.
func TestFormParsed(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	tests := []struct {
		name  string
		build func(t *testing.T, value string) *http.Request
	}{
		{"urlencoded", func(_ *testing.T, value string) *http.Request { return submit(value) }},
		{"multipart", func(t *testing.T, value string) *http.Request {
			body, contentType := multipartForm(t, token.FormField, value, "amount", "120", "file:doc", "content")
			return request(bytes.NewReader(body), "Content-Type", contentType)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := tokens.Protect(userOf)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseMultipartForm(1 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
					t.Error(err)
				}
				if _, err := io.WriteString(w, r.PostForm.Get("amount")); err != nil {
					t.Error(err)
				}
			}))
			require.Equal(t, "120", serve(h, tt.build(t, issue(t, tokens, "alice"))).body)

			r := tt.build(t, issue(t, tokens, "alice"))
			require.Equal(t, "120", r.PostFormValue("amount"))
			require.Equal(t, "120", serve(h, r).body)

			r = tt.build(t, issue(t, tokens, "alice"))
			require.NoError(t, r.ParseForm()) // which does not read a multipart body
			require.Equal(t, "120", serve(h, r).body)
		})
	}
}

// TestHeaderLeavesTheBody: with the token in the header nobody reads the body first.
func TestHeaderLeavesTheBody(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h, _ := protected(tokens)
	a := serve(h, request(brokenReader{}, token.Header, issue(t, tokens, "alice"), "Content-Type", urlencoded))
	require.Equal(t, http.StatusCreated, a.status)
}
