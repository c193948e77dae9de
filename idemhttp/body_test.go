package idemhttp_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

var idemQuery = idem.Query{}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func requireNoRecords(t *testing.T, guard *idem.Guard) {
	t.Helper()
	for rec, err := range guard.Store().Scan(t.Context(), idemQuery) {
		require.NoError(t, err)
		require.Fail(t, "claimed", rec.Key.String())
	}
}

// TestBodyReachesTheHandler: whole, whatever its size and however it is sent.
func TestBodyReachesTheHandler(t *testing.T) {
	t.Parallel()
	const memory, limit = 1000, 100_000
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		dir := t.TempDir()
		server := start(t, protect(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
			first, err := io.ReadAll(io.LimitReader(r.Body, 10))
			rest, err2 := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d %s %v %v", len(first)+len(rest), hexSHA256(string(first)+string(rest)), err, err2)
		}, idemhttp.BodyMemory(memory), idemhttp.MaxBody(limit), idemhttp.SpoolDir(dir)))
		for _, size := range []int{0, 1, memory - 1, memory, memory + 1, limit - 1, limit} {
			for _, chunked := range []bool{false, true} {
				content := make([]byte, size)
				rand.Read(content)
				var body io.Reader = bytes.NewReader(content)
				if chunked {
					body = struct{ io.Reader }{body} // hides the length
				}
				key := fmt.Sprint(size, chunked)
				a, err := try(t.Context(), server, http.MethodPost, "/", key, body, "Content-Type", "application/octet-stream")
				require.NoError(t, err)
				require.Equal(t, idemhttp.StatusExecuted, a.said())
				require.Equal(t, fmt.Sprintf("%d %s <nil> <nil>", size, hexSHA256(string(content))), a.body)

				again, err := try(t.Context(), server, http.MethodPost, "/", key, bytes.NewReader(content), "Content-Type", "application/octet-stream")
				require.NoError(t, err)
				require.Equal(t, idemhttp.StatusReplayed, again.said(), "also when it is sent in another way")
				if size > 0 {
					content[size-1] ^= 1
					other, err := try(t.Context(), server, http.MethodPost, "/", key, bytes.NewReader(content), "Content-Type", "application/octet-stream")
					require.NoError(t, err)
					require.Equal(t, []string{"body"}, other.problem(t).Parts)
				}
			}
		}
		requireEmpty(t, dir)
	})
}

// TestSpoolIsPrivate looks at the file through the process's own descriptors,
// where the system has them: the name is gone by the time the handler runs.
func TestSpoolIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	dir := t.TempDir()
	modes := make(chan os.FileMode, 10)
	server := serve(t, newGuard(t), func(http.ResponseWriter, *http.Request) {
		descriptors, _ := os.ReadDir("/proc/self/fd")
		for _, d := range descriptors {
			path := "/proc/self/fd/" + d.Name()
			if target, _ := os.Readlink(path); strings.HasPrefix(target, dir) {
				if info, err := os.Stat(path); err == nil {
					modes <- info.Mode()
				}
			}
		}
	}, idemhttp.BodyMemory(10), idemhttp.SpoolDir(dir))
	require.Equal(t, http.StatusOK, post(t, server, "/", "k", strings.Repeat("x", 11)).status)
	require.Equal(t, os.FileMode(0o600), <-modes)
	requireEmpty(t, dir)
}

func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		guard, dir := newGuard(t), t.TempDir()
		server := start(t, protect(t, guard, func(http.ResponseWriter, *http.Request) {},
			idemhttp.BodyMemory(10), idemhttp.MaxBody(1000), idemhttp.SpoolDir(dir)))
		for _, body := range []io.Reader{
			strings.NewReader(strings.Repeat("x", 1001)), struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 1001))},
		} {
			a, err := try(t.Context(), server, http.MethodPost, "/", "k", body)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
			require.Equal(t, idemhttp.ProblemBodyTooLarge, a.problem(t).Type)
		}
		requireNoRecords(t, guard)
		requireEmpty(t, dir)
	})
}

// dialogue sends raw bytes over a connection and reads what comes until it is
// closed.
func dialogue(t *testing.T, server *httptest.Server, send string, thenClose bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, send)
	require.NoError(t, err)
	if thenClose {
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	}
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(said)
}

func TestBrokenBodyClaimsNothing(t *testing.T) {
	t.Parallel()
	const head = "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\n"
	tests := []struct {
		name, send string
		thenClose  bool
		status     int
		kind       string
	}{
		{"slow", head + "Content-Length: 100\r\n\r\nhalf", false, 408, idemhttp.ProblemBodyTimeout},
		{"slow chunks", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", false, 408, idemhttp.ProblemBodyTimeout},
		{"slow, spooled", head + "Content-Length: 100\r\n\r\n" + strings.Repeat("x", 50), false, 408, idemhttp.ProblemBodyTimeout},
		{"cut off", head + "Content-Length: 100\r\n\r\nhalf", true, 400, idemhttp.ProblemBodyUnreadable},
		{"cut off, spooled", head + "Content-Length: 100\r\n\r\n" + strings.Repeat("x", 50), true, 400, idemhttp.ProblemBodyUnreadable},
		{"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n", false, 400, idemhttp.ProblemBodyUnreadable},
		{"chunk cut off", head + "Transfer-Encoding: chunked\r\n\r\nff\r\nhalf\r\n", true, 400, idemhttp.ProblemBodyUnreadable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			guard, dir := newGuard(t), t.TempDir()
			var runs atomic.Int64
			server := serve(t, guard, func(http.ResponseWriter, *http.Request) { runs.Add(1) },
				idemhttp.BodyTimeout(100*time.Millisecond), idemhttp.BodyMemory(20), idemhttp.SpoolDir(dir))
			res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(dialogue(t, server, tt.send, tt.thenClose))), nil)
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, tt.status, res.StatusCode)
			content, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Contains(t, string(content), tt.kind)
			require.Zero(t, runs.Load())
			requireNoRecords(t, guard)
			requireEmpty(t, dir)
		})
	}
}

// TestServersOwnTimeout: a server with a ReadTimeout keeps it.
func TestServersOwnTimeout(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(protect(t, newGuard(t), func(http.ResponseWriter, *http.Request) {}))
	server.Config.ReadTimeout = 100 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	said := dialogue(t, server, "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\nhalf", false)
	require.Contains(t, said, "HTTP/1.1 408 ")
}

// TestExpectContinue: the body is asked for only when the key is in order.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	server := serve(t, newGuard(t), func(http.ResponseWriter, *http.Request) {})
	const rest = "Host: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	require.True(t, strings.HasPrefix(dialogue(t, server, "POST / HTTP/1.1\r\nIdempotency-Key: k\r\n"+rest+"{}", false), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 "))
	require.True(t, strings.HasPrefix(dialogue(t, server, "POST / HTTP/1.1\r\nIdempotency-Key: \"\r\n"+rest, false), "HTTP/1.1 400 "))
}

// TestFormFilesAreRemoved: the server removes only those of the request it made.
func TestFormFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("upload", "a.bin")
	require.NoError(t, err)
	_, err = part.Write(bytes.Repeat([]byte("x"), 200_000))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	files := make(chan int, 1)
	server := serve(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			panic(err)
		}
		left, _ := os.ReadDir(dir)
		files <- len(left)
	})
	a, err := try(t.Context(), server, http.MethodPost, "/", "k", &body, "Content-Type", form.FormDataContentType())
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.status)
	require.Positive(t, <-files)
	requireEmpty(t, dir)
}
