package render

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestConfirm(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in     string
		want   bool
		output string
	}{
		{"y\n", true, "Delete? [y/N] "},
		{"YES\r\n", true, "Delete? [y/N] "},
		{" yes \n", true, "Delete? [y/N] "},
		{"\n", false, "Delete? [y/N] "},
		{"n\n", false, "Delete? [y/N] "},
		{"yep\n", false, "Delete? [y/N] "},
		{"y y\n", false, "Delete? [y/N] "},
		{"", false, "Delete? [y/N] \n"},
		{"y", false, "Delete? [y/N] \n"},
		{strings.Repeat("y", 5000), false, "Delete? [y/N] "},
		{strings.Repeat(" ", 5000) + "y\n", false, "Delete? [y/N] "},
	}
	for _, tt := range tests {
		var out strings.Builder
		got, err := Confirm(t.Context(), strings.NewReader(tt.in), &out, "Delete?")
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%q", tt.in)
		require.Equal(t, tt.output, out.String(), "%q", tt.in)
	}
}

func TestConfirmLeavesTheNextAnswer(t *testing.T) {
	t.Parallel()
	in := strings.NewReader("y\nidem.db\nother\n\n")
	out := new(strings.Builder)
	yes, err := Confirm(t.Context(), in, out, "Delete?")
	require.NoError(t, err)
	require.True(t, yes)

	for _, want := range []bool{true, false, false} {
		same, err := ConfirmPhrase(t.Context(), in, out, "Type idem.db:", "idem.db")
		require.NoError(t, err)
		require.Equal(t, want, same)
	}
}

func TestConfirmPhraseNeverMatchesNothing(t *testing.T) {
	t.Parallel()
	same, err := ConfirmPhrase(t.Context(), strings.NewReader(""), new(strings.Builder), "Type:", "")
	require.NoError(t, err)
	require.False(t, same)
}

func TestConfirmReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	yes, err := Confirm(t.Context(), iotest.ErrReader(broken), new(strings.Builder), "Delete?")
	require.ErrorIs(t, err, broken)
	require.False(t, yes)
}

// A question ends with its context, although the terminal says nothing.
func TestConfirmIsInterrupted(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	out := new(strings.Builder)
	yes, err := Confirm(ctx, in, out, "Delete?")
	require.ErrorIs(t, err, stopped)
	require.False(t, yes)
	require.Equal(t, "Delete? [y/N] \n", out.String())
}
