package idemhttp_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// serviceEnv makes the test binary the service that TestKilledService kills.
const serviceEnv = "IDEMHTTP_TEST_SERVICE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serviceEnv); dir != "" {
		fmt.Println(runService(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runService serves until it is killed. Its handler does its work and never
// gets to answer.
func runService(dir string) error {
	guard, err := idem.Open(filepath.Join(dir, "http.db"))
	if err != nil {
		return err
	}
	protect, err := idemhttp.New(guard, testScope)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if err := os.Mkdir(filepath.Join(dir, "work done"), 0o700); err != nil {
			fmt.Println(err)
		}
		fmt.Println("worked")
		select {}
	})))
}

// TestKilledService: the service dies between its work and the record of it. The
// retry is told so by the next one; the work is not done again.
func TestKilledService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := exec.CommandContext(t.Context(), os.Args[0])
	service.Env = append(os.Environ(), serviceEnv+"="+dir)
	out, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	address := said.Text()
	require.Contains(t, address, "http://")

	lost := make(chan error, 1)
	go func() {
		_, err := try(t.Context(), &httptest.Server{URL: address}, http.MethodPost, "/", "k", strings.NewReader("{}"))
		lost <- err
	}()
	require.True(t, said.Scan())
	require.Equal(t, "worked", said.Text())
	require.NoError(t, service.Process.Kill())
	require.Error(t, service.Wait())
	require.Error(t, <-lost)

	guard, err := idem.Open(filepath.Join(dir, "http.db"))
	require.NoError(t, err)
	defer guard.Close()
	server := serve(t, guard, func(http.ResponseWriter, *http.Request) { panic("again") })
	for range 2 {
		a := post(t, server, "/", "k", "{}")
		require.Equal(t, http.StatusConflict, a.status)
		require.Equal(t, idemhttp.StatusInterrupted, a.said())
		require.Equal(t, idemhttp.ProblemInterrupted, a.problem(t).Type)
	}
	require.DirExists(t, filepath.Join(dir, "work done"))
}
