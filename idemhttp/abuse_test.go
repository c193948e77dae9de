package idemhttp_test

import (
	"bufio"
	"errors"
	"io"
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

const (
	abuseMaxBody     = 1000
	abuseMaxHeader   = 8 << 10
	abuseBodyTimeout = 100 * time.Millisecond
	abuseHead        = "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\n"
	genuine          = abuseHead + "Content-Length: 2\r\n\r\n{}"
	genuineLast      = abuseHead + "Connection: close\r\nContent-Length: 2\r\n\r\n{}"
)

// abuseServer is set up tightly, so that every limit can be gone over.
func abuseServer(t *testing.T, guard *idem.Guard, runs *atomic.Int64) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(protect(t, guard, func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		_, _ = io.Copy(w, r.Body)
	}, idemhttp.MaxBody(abuseMaxBody), idemhttp.BodyMemory(100), idemhttp.BodyTimeout(abuseBodyTimeout), idemhttp.SpoolDir(t.TempDir())))
	server.Config.MaxHeaderBytes = abuseMaxHeader
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// sendRaw writes text to the connection as it is. What the server no longer reads is
// lost, which is what some of the tests are about.
func sendRaw(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// sendAndClose also says that nothing will follow, which the server takes for a
// client that hung up.
func sendAndClose(text string) func(net.Conn) {
	return func(conn net.Conn) {
		sendRaw(text)(conn)
		_ = conn.(*net.TCPConn).CloseWrite()
	}
}

// drip sends the head and then a byte of the body now and then, until the server
// has had enough.
func drip(conn net.Conn) {
	_, err := io.WriteString(conn, abuseHead+"Content-Length: 500\r\n\r\n")
	pace := time.NewTicker(abuseBodyTimeout / 20)
	defer pace.Stop()
	for n := 0; err == nil && n < 500; n++ {
		<-pace.C
		_, err = conn.Write([]byte("x"))
	}
}

// answersTo reads what the server says on a connection until it is closed.
func answersTo(t *testing.T, server *httptest.Server, write func(net.Conn)) []answer {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	written := make(chan struct{})
	go func() {
		defer close(written)
		write(conn)
	}()
	var answers []answer
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		if errors.Is(err, io.ErrUnexpectedEOF) || err != nil && len(answers) > 0 { // closed, or reset for what it did not read
			break
		}
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		answers = append(answers, answer{res.StatusCode, res.ProtoMajor, res.Header, res.Trailer, string(body)})
		if res.Close {
			break
		}
	}
	_ = conn.Close() // ends a writer that the server no longer reads
	<-written
	return answers
}

func statuses(answers []answer) []int {
	var all []int
	for _, a := range answers {
		all = append(all, a.status)
	}
	return all
}

// TestAbuse: whatever bytes come, the handler runs once at most, what is refused
// leaves no claim and no goroutine, and the next genuine request is served. It
// cannot run in parallel: it counts goroutines.
func TestAbuse(t *testing.T) {
	tests := []struct {
		name     string
		write    func(net.Conn)
		statuses []int
		said     idemhttp.Status // of the genuine request that follows
	}{
		{"body byte by byte", drip, []int{408}, idemhttp.StatusExecuted},
		{"header over the limit", sendRaw("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nX-Bomb: " + strings.Repeat("x", 3*abuseMaxHeader)),
			[]int{431}, idemhttp.StatusExecuted},
		{"headers over the limit", sendRaw(abuseHead + strings.Repeat("X-Bomb: 0123456789\r\n", 3*abuseMaxHeader/20)), []int{431}, idemhttp.StatusExecuted},
		{"500 keys", sendAndClose("POST / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("Idempotency-Key: k\r\n", 500) + "Content-Length: 2\r\n\r\n{}"),
			[]int{400}, idemhttp.StatusExecuted},
		{"length over the limit", sendRaw(abuseHead + "Content-Length: 1001\r\n\r\n"), []int{413}, idemhttp.StatusExecuted},
		{"absurd length", sendRaw(abuseHead + "Content-Length: 9223372036854775807\r\n\r\n{}"), []int{413}, idemhttp.StatusExecuted},
		{"chunks over the limit", sendRaw(abuseHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("64\r\n"+strings.Repeat("x", 100)+"\r\n", 11)),
			[]int{413}, idemhttp.StatusExecuted},
		{"chunk breaks off", sendAndClose(abuseHead + "Transfer-Encoding: chunked\r\n\r\nff\r\nhalf"), []int{400}, idemhttp.StatusExecuted},
		{"absurd chunk", sendAndClose(abuseHead + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nhalf"), []int{400}, idemhttp.StatusExecuted},
		{"shorter than its length", sendAndClose(abuseHead + "Content-Length: 100\r\n\r\nhalf"), []int{400}, idemhttp.StatusExecuted},
		{"two lengths", sendRaw(abuseHead + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), []int{400}, idemhttp.StatusExecuted},
		{"length and chunks", sendRaw(abuseHead + "Connection: close\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), []int{200}, idemhttp.StatusReplayed},
		{"one length twice", sendRaw(abuseHead + "Connection: close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"), []int{200}, idemhttp.StatusReplayed},
		{"expects to be refused", sendRaw("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: a,b\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"),
			[]int{400}, idemhttp.StatusExecuted},
		{"expects and is too long", sendRaw(abuseHead + "Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n"), []int{413}, idemhttp.StatusExecuted},
		{"pipelined", sendRaw(strings.Repeat(genuine, 20) + genuineLast), times(21, 200), idemhttp.StatusReplayed},
		{"garbage behind", sendRaw(genuine + "\x00\xff not http\r\n\r\n"), []int{200, 400}, idemhttp.StatusReplayed},
		{"refused, then pipelined", sendRaw(abuseHead + "Content-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001) + genuine), []int{413}, idemhttp.StatusExecuted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guard := newGuard(t)
			var runs atomic.Int64
			server := abuseServer(t, guard, &runs)
			goroutines := runtime.NumGoroutine()
			answers := answersTo(t, server, tt.write)
			require.Equal(t, tt.statuses, statuses(answers))
			requireIdle(t, goroutines)
			if tt.said == idemhttp.StatusExecuted {
				require.Zero(t, runs.Load())
				requireNoRecords(t, guard)
			}
			a := answersTo(t, server, sendRaw(genuineLast))
			require.Equal(t, []int{200}, statuses(a))
			require.Equal(t, "{}", a[0].body)
			require.Equal(t, tt.said, a[0].said())
			require.EqualValues(t, 1, runs.Load())
			requireIdle(t, goroutines)
		})
	}
}

// TestPipelined: each of many requests on one connection gets its answer, in
// turn, and the first one is the one that ran.
func TestPipelined(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	answers := answersTo(t, abuseServer(t, newGuard(t), &runs), sendRaw(strings.Repeat(genuine, 4)+genuineLast))
	require.Len(t, answers, 5)
	for i, a := range answers {
		require.Equal(t, "{}", a.body)
		require.Equal(t, i > 0, a.said() == idemhttp.StatusReplayed, a.said())
	}
	require.EqualValues(t, 1, runs.Load())
}

func times(n, status int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = status
	}
	return all
}
