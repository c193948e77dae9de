package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

// commandEnv makes the test binary the command.
const commandEnv = "PAYMENTS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), commandEnv+"=yes")
	return cmd
}

// running is a service in a process of its own.
type running struct {
	cmd    *exec.Cmd
	output *bufio.Scanner
	url    string
	said   []string
}

// startService runs the service on the files in dir until the test ends.
func startService(t *testing.T, dir string, flags ...string) *running {
	t.Helper()
	args := append([]string{"serve", "--listen", "127.0.0.1:0",
		"--db", filepath.Join(dir, "payments.db"), "--charges", filepath.Join(dir, "charges.jsonl")}, flags...)
	s := &running{cmd: command(t.Context(), args...)}
	s.cmd.Stderr = t.Output()
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { // both fail if the test has ended it
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.output = bufio.NewScanner(out)
	_, address, _ := strings.Cut(s.waitFor(t, "listening on "), "listening on ")
	s.url = address
	return s
}

// waitFor returns the line with the text.
func (s *running) waitFor(t *testing.T, text string) string {
	t.Helper()
	for s.output.Scan() {
		s.said = append(s.said, s.output.Text())
		if strings.Contains(s.output.Text(), text) {
			return s.output.Text()
		}
	}
	require.FailNow(t, "the service ended and did not say "+text)
	return ""
}

// kill ends the service and returns what the provider has done in it.
func (s *running) kill(t *testing.T) []string {
	t.Helper()
	require.NoError(t, s.cmd.Process.Kill())
	return s.ended(t, false)
}

func (s *running) ended(t *testing.T, well bool) []string {
	t.Helper()
	for s.output.Scan() {
		s.said = append(s.said, s.output.Text())
	}
	if err := s.cmd.Wait(); well {
		require.NoError(t, err)
	} else {
		require.Error(t, err)
	}
	var provider []string
	for _, line := range s.said {
		if did, ok := strings.CutPrefix(line, "provider: "); ok {
			provider = append(provider, did)
		}
	}
	return provider
}

// front is what clients call: it notes their keys and hands requests to a service
// that may be replaced.
type front struct {
	*httptest.Server
	mu       sync.Mutex
	service  string
	keys     []string
	answered chan struct{} // if not nil: the next answer is announced, and lost
}

func newFront(t *testing.T, service string) *front {
	t.Helper()
	f := &front{service: service}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.keys = append(f.keys, r.Header.Get(idemhttp.HeaderKey))
	url, answered := f.service, f.answered
	f.answered = nil
	f.mu.Unlock()
	res, body, err := forward(r, url)
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees a broken connection
	}
	if answered != nil {
		close(answered)
		<-r.Context().Done()
		return
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(body)
}

func forward(r *http.Request, url string) (*http.Response, []byte, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequest(r.Method, url+r.URL.Path, bytes.NewReader(sent))
	if err != nil {
		return nil, nil, err
	}
	req.Header = r.Header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// moveTo sends what comes from now on to another service.
func (f *front) moveTo(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.service = url
}

// loseAnswer makes the next answer one that no client gets. The channel is closed
// when the service has given it.
func (f *front) loseAnswer() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = make(chan struct{})
	return f.answered
}

func (f *front) sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.keys...)
}

// runPay runs the client to its end and returns what it printed.
func runPay(t *testing.T, dir, server string, args ...string) (string, error) {
	t.Helper()
	out, err := command(t.Context(), payArgs(dir, server, args...)...).CombinedOutput()
	return string(out), err
}

func payArgs(dir, server string, args ...string) []string {
	return append([]string{"pay", "--server", server, "--db", filepath.Join(dir, "client.db")}, args...)
}
