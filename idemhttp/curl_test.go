package idemhttp_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
	"github.com/idembolt/idem/internal/needs"
)

// TestCurl runs the scripts under testdata/script, each against a service of its
// own: what a client sees that shares no code with this package.
func TestCurl(t *testing.T) {
	t.Parallel()
	needs.Programs(t, "curl")
	version, err := exec.Command("curl", "--version").Output()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			server := curlServer(env.T().(testing.TB))
			env.Defer(server.Close)
			env.Setenv("URL", server.URL)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "http2" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return strings.Contains(string(version), "HTTP2"), nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"blob": writeBlob, "sameheader": sameHeader,
		},
	})
}

// curlServer speaks HTTP/1.1 and HTTP/2 without TLS. Every run of a handler is
// counted in its response.
func curlServer(t testing.TB) *httptest.Server {
	var runs atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/charges/1")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "{\"run\":%d}\n", runs.Add(1))
	})
	mux.HandleFunc("POST /empty", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", fmt.Sprintf(`"run %d"`, runs.Add(1)))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("POST /compressed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, "run %d\n", runs.Add(1))
		_ = z.Close()
	})
	mux.HandleFunc("POST /slow", func(w http.ResponseWriter, r *http.Request) {
		n := runs.Add(1)
		waitUntilGone(r)
		fmt.Fprintf(w, "run %d\n", n)
	})
	server := httptest.NewUnstartedServer(exposeConnection(protect(t, boltGuard(t), mux.ServeHTTP)))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	return server
}

// writeBlob writes a file of bytes that are no text.
//
//	blob FILE BYTES
func writeBlob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: blob FILE BYTES")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	blob := make([]byte, size)
	for i := range blob {
		blob[i] = byte(rand.Uint32())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), blob, 0o600))
}

// sameHeader fails unless two responses as written by curl -i or -D have the same
// status and headers, but for those that say which of them was replayed, and the
// second one was.
//
//	sameheader FIRST AGAIN
func sameHeader(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameheader FIRST AGAIN")
	}
	first, again := headOf(ts, args[0]), headOf(ts, args[1])
	if s := again.Header.Get(idemhttp.HeaderStatus); s != string(idemhttp.StatusReplayed) {
		ts.Fatalf("%s: %s is %q", args[1], idemhttp.HeaderStatus, s)
	}
	if s := first.Header.Get(idemhttp.HeaderStatus); s != string(idemhttp.StatusExecuted) {
		ts.Fatalf("%s: %s is %q", args[0], idemhttp.HeaderStatus, s)
	}
	for _, name := range []string{"Date", idemhttp.HeaderStatus, idemhttp.HeaderReplayed} {
		first.Header.Del(name)
		again.Header.Del(name)
	}
	a, b := fmt.Sprint(first.StatusCode, first.Header), fmt.Sprint(again.StatusCode, again.Header)
	if a != b {
		ts.Fatalf("%s: %s\n%s: %s", args[0], a, args[1], b)
	}
}

func headOf(ts *testscript.TestScript, file string) *http.Response {
	text := strings.Replace(ts.ReadFile(file), "HTTP/2 ", "HTTP/2.0 ", 1)
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	ts.Check(err)
	return res
}
