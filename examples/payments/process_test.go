package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	paidOnce  = `invoice-1 is paid: {"id":"ch-1","invoice":"invoice-1","amount":1200,"currency":"EUR"}` + "\n"
	paidAgain = `invoice-1 is paid by an earlier request: {"id":"ch-1","invoice":"invoice-1","amount":1200,"currency":"EUR"}` + "\n"
)

func oneKey(t *testing.T, keys []string, least int) {
	t.Helper()
	require.GreaterOrEqual(t, len(keys), least)
	require.Regexp(t, `^"[0-9a-f-]{36}"$`, keys[0])
	require.Len(t, slices.Compact(keys), 1)
}

func TestPayTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := startService(t, dir)
	front := newFront(t, service.url)
	for _, want := range []string{paidOnce, paidAgain} {
		out, err := runPay(t, dir, front.URL, "invoice-1", "1200", "EUR")
		require.NoError(t, err, out)
		require.Equal(t, want, out)
	}
	oneKey(t, front.sent(), 2)

	// The amount is part of what was asked for: it is not a new order.
	out, err := runPay(t, dir, front.URL, "invoice-1", "1300", "EUR")
	require.Error(t, err)
	require.Contains(t, out, "needs somebody to look")
	require.Contains(t, out, "It differs in /amount.")
	require.Equal(t, []string{"invoice-1 charged as ch-1"}, service.kill(t))
}

// TestDeclined: a refusal is an answer, and the next run is a new try.
func TestDeclined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := startService(t, dir)
	front := newFront(t, service.url)
	for range 2 {
		out, err := runPay(t, dir, front.URL, "invoice-1", "2000000", "EUR")
		require.Error(t, err)
		require.Equal(t, "payments: the service answered 422: declined: over the limit of the card\n", out)
	}
	keys := front.sent()
	require.Len(t, keys, 2)
	require.NotEqual(t, keys[0], keys[1])
	require.Equal(t, []string{"invoice-1 declined", "invoice-1 declined"}, service.kill(t))
}

// TestServiceKilled kills the service when the provider has charged and not yet
// said so. The client tries on; the next service finds out and tells it.
func TestServiceKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := startService(t, dir, "--provider-delay", "1h", "--provider-timeout", "1h")
	front := newFront(t, service.url)
	pay := command(t.Context(), payArgs(dir, front.URL, "invoice-1", "1200", "EUR")...)
	var out, notes bytes.Buffer
	pay.Stdout, pay.Stderr = &out, &notes
	require.NoError(t, pay.Start())
	service.waitFor(t, "charged")
	require.Equal(t, []string{"invoice-1 charged as ch-1"}, service.kill(t))

	next := startService(t, dir)
	front.moveTo(next.url)
	require.NoError(t, pay.Wait(), notes.String())
	require.Equal(t, paidAgain, out.String())
	require.Contains(t, notes.String(), "trying again in ")
	oneKey(t, front.sent(), 2)
	require.Empty(t, next.kill(t), "the provider was asked to charge again")
}

// TestClientKilled kills the client when the service has answered and the answer
// is on its way.
func TestClientKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := startService(t, dir)
	front := newFront(t, service.url)
	answered := front.loseAnswer()
	pay := command(t.Context(), payArgs(dir, front.URL, "invoice-1", "1200", "EUR")...)
	require.NoError(t, pay.Start())
	<-answered
	require.NoError(t, pay.Process.Kill())
	require.Error(t, pay.Wait())

	out, err := runPay(t, dir, front.URL, "invoice-1", "1200", "EUR")
	require.NoError(t, err, out)
	require.Equal(t, paidAgain, out)
	oneKey(t, front.sent(), 2)
	require.Equal(t, []string{"invoice-1 charged as ch-1"}, service.kill(t))
}

// TestProviderTimeout: the provider has charged and is too slow to say so. The
// client is told that the outcome is unknown, and by its next try what it was.
func TestProviderTimeout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := startService(t, dir, "--provider-delay", "1h", "--provider-timeout", "50ms")
	out, err := runPay(t, dir, service.url, "invoice-1", "1200", "EUR")
	require.NoError(t, err, out)
	require.Contains(t, out, "the service answered 504: the provider did not answer, the outcome is unknown\n")
	require.Contains(t, out, paidAgain)
	require.Equal(t, []string{"invoice-1 charged as ch-1"}, service.kill(t))
}
