//go:build unix

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStopped stops the service while it works on a request: that is answered,
// and the store is closed in order, which removes its journal.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			service := startService(t, dir, "--provider-delay", "200ms")
			pay := command(t.Context(), payArgs(dir, service.url, "invoice-1", "1200", "EUR")...)
			require.NoError(t, pay.Start())
			service.waitFor(t, "charged")
			require.NoError(t, service.cmd.Process.Signal(signal))
			require.Equal(t, []string{"invoice-1 charged as ch-1"}, service.ended(t, true))
			require.NoError(t, pay.Wait())
			require.NoFileExists(t, filepath.Join(dir, "payments.db-wal"))
		})
	}
}

// TestGivenUp interrupts the client when its first try has failed. The next run
// sends the same key.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	front := newFront(t, "http://127.0.0.1:0") // nobody there
	pay := command(t.Context(), payArgs(dir, front.URL, "invoice-1", "1200", "EUR")...)
	notes, err := pay.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, pay.Start())
	said := bufio.NewScanner(notes)
	require.True(t, said.Scan())
	require.Contains(t, said.Text(), "trying again in ")
	require.NoError(t, pay.Process.Signal(os.Interrupt))
	var last string
	for said.Scan() {
		last = said.Text()
	}
	require.Error(t, pay.Wait())
	require.True(t, strings.HasPrefix(last, "payments: it is not known whether invoice-1 is paid, run it again: "), last)

	service := startService(t, dir)
	front.moveTo(service.url)
	out, err := runPay(t, dir, front.URL, "invoice-1", "1200", "EUR")
	require.NoError(t, err, out)
	require.Equal(t, paidOnce, out)
	oneKey(t, front.sent(), 2)
}
