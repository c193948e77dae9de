package token

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// maxPeek is how much of a body is looked through, and held in memory, for the
// token.
const maxPeek = 1 << 20

// tokenOf returns the token that a request carries, or "" if it carries none, or
// several. The error says why its body could not be read.
func tokenOf(r *http.Request) (string, error) {
	switch values := r.Header.Values(Header); len(values) {
	case 0:
	case 1:
		return values[0], nil
	default:
		return "", nil
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	switch mediaType {
	case "application/x-www-form-urlencoded":
		if value := r.PostForm.Get(FormField); value != "" {
			return value, nil // somebody before has read the body
		}
		head, whole, err := peek(r)
		return urlencodedToken(head, whole), err
	case "multipart/form-data":
		if r.MultipartForm != nil {
			return url.Values(r.MultipartForm.Value).Get(FormField), nil
		}
		head, _, err := peek(r)
		return multipartToken(head, params["boundary"]), err
	}
	return "", nil
}

// peek returns the beginning of the body, and whether that is all of it, and lets
// the next reader begin at the beginning again. The request is changed in place:
// the server removes the files of its MultipartForm, not of a copy's.
func peek(r *http.Request) (head []byte, whole bool, err error) {
	body := r.Body
	if body == nil { // of a request that no server has made
		return nil, true, nil
	}
	head, err = io.ReadAll(io.LimitReader(body, maxPeek+1))
	if err != nil {
		return nil, false, fmt.Errorf("read the form: %w", err)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
	return head, len(head) <= maxPeek, nil
}

// urlencodedToken goes through the pairs one by one: a form may have so many that
// a map of them would be a burden.
func urlencodedToken(head []byte, whole bool) string {
	text := string(head)
	if !whole { // the last pair may have been cut
		text = text[:strings.LastIndexByte(text, '&')+1]
	}
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != FormField {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value
		}
	}
	return ""
}

func multipartToken(head []byte, boundary string) string {
	if boundary == "" {
		return ""
	}
	parts := multipart.NewReader(bytes.NewReader(head), boundary)
	for {
		part, err := parts.NextPart()
		if err != nil {
			return "" // the end, that of what is looked through, or no multipart
		}
		if part.FormName() != FormField || part.FileName() != "" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, valueLength+1))
		if err != nil {
			return "" // it is cut
		}
		return string(value)
	}
}
