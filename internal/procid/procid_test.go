package procid

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const boot = "01234567-89ab-4cde-8f01-23456789abcd"

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want ID
	}{
		{"full", "p1:" + boot + ":4026531836:4026531834:77:60410", ID{boot, 4026531836, 4026531834, 77, 60410}},
		{"no time namespaces", "p1:" + boot + ":4026531836:0:1:0", ID{boot, 4026531836, 0, 1, 0}},
		{"pid only", "p1:unknown:77", ID{pid: 77}},
		{"largest", "p1:" + boot + strings.Repeat(":18446744073709551615", 2) + ":2147483647:18446744073709551615",
			ID{boot, 1<<64 - 1, 1<<64 - 1, maxPID, 1<<64 - 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.in)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.in, got.String())
			require.Equal(t, tt.want.pid, got.PID())
			require.LessOrEqual(t, len(tt.in), 120)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in string }{
		{"empty", ""},
		{"zero ID", ID{}.String()},
		{"other version", "p2:unknown:77"},
		{"bare pid", "77"},
		{"pid zero", "p1:unknown:0"},
		{"pid negative", "p1:unknown:-1"},
		{"pid too large", "p1:unknown:2147483648"},
		{"pid beyond 64 bits", "p1:unknown:99999999999999999999"},
		{"leading zero", "p1:unknown:077"},
		{"plus sign", "p1:unknown:+77"},
		{"trailing newline", "p1:unknown:77\n"},
		{"extra field", "p1:" + boot + ":1:1:77:5:6"},
		{"missing field", "p1:" + boot + ":1:77:5"},
		{"short boot id", "p1:65bc413b:1:1:77:5"},
		{"upper-case boot id", "p1:" + strings.ToUpper(boot) + ":1:1:77:5"},
		{"boot id with slash", "p1:" + strings.Replace(boot, "a", "/", 1) + ":1:1:77:5"},
		{"namespace not a number", "p1:" + boot + ":x:1:77:5"},
		{"time namespace not a number", "p1:" + boot + ":1:x:77:5"},
		{"start negative", "p1:" + boot + ":1:1:77:-5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.in)
			require.Error(t, err)
			require.Zero(t, got)
		})
	}
}

func TestSelf(t *testing.T) {
	t.Parallel()
	id := Self()
	require.Equal(t, os.Getpid(), id.PID())
	require.Equal(t, Alive, id.Liveness())

	again, err := Parse(id.String())
	require.NoError(t, err)
	require.Equal(t, id, again)
	require.Equal(t, Alive, again.Liveness())
}

func TestLivenessOfUnidentified(t *testing.T) {
	t.Parallel()
	require.Equal(t, Unknown, ID{}.Liveness())
	require.Equal(t, Unknown, ID{pid: os.Getppid()}.Liveness(), "parent, pid only")
}

func TestLivenessString(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   Liveness
		want string
	}{
		{0, "Liveness(0)"},
		{Alive, "alive"},
		{Dead, "dead"},
		{Unknown, "unknown"},
		{-3, "Liveness(-3)"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.in.String())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("p1:" + boot + ":4026531836:4026531834:77:60410")
	f.Add("p1:unknown:77")
	f.Add(Self().String())
	f.Add("p1:" + boot + ":::-1:")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse(s)
		if err != nil {
			require.Zero(t, id)
			return
		}
		require.Equal(t, s, id.String())
		require.LessOrEqual(t, len(s), 120)
		require.False(t, strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~' || r == '#' || r == '/'
		}), s)
		require.Positive(t, id.PID())
		require.Contains(t, []Liveness{Alive, Dead, Unknown}, id.Liveness())
	})
}
