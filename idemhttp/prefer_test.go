package idemhttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		want  time.Duration
	}{
		{"none", nil, 0},
		{"plain", []string{"wait=7"}, 7 * time.Second},
		{"bounded", []string{"wait=100"}, 30 * time.Second},
		{"among others", []string{"respond-async, WAIT = 7; foo=bar"}, 7 * time.Second},
		{"second line", []string{"return=minimal", "wait=7"}, 7 * time.Second},
		{"quoted", []string{`wait="7"`}, 7 * time.Second},
		{"the first counts", []string{"wait=7, wait=9"}, 7 * time.Second},
		{"negative", []string{"wait=-7"}, 0},
		{"no number", []string{"wait=soon"}, 0},
		{"no value", []string{"wait"}, 0},
		{"overflow", []string{"wait=99999999999999999999"}, 0},
		{"other name", []string{"waiting=7"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, preferredWait(http.Header{"Prefer": tt.lines}, 30*time.Second))
		})
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	p := newPace()
	require.Equal(t, 4*time.Second, p.remaining("a", 0, 4*time.Second), "the guess, as long as nothing is known")
	p.add("a", 10*time.Second)
	require.Equal(t, 7*time.Second, p.remaining("a", 3*time.Second, time.Second))
	require.Equal(t, 4*time.Second, p.remaining("b", 0, 4*time.Second))
	require.Equal(t, time.Second, p.remaining("a", 9900*time.Millisecond, time.Second), "at least a second")
	require.Equal(t, 12*time.Second, p.remaining("a", 11*time.Second, 12*time.Second), "the guess of a run that is late")
	p.add("a", 2*time.Second)
	require.Equal(t, 8*time.Second, p.remaining("a", 0, time.Second))
	for i := range 2 * maxRoutes {
		p.add(string(rune('a'+i)), time.Second)
	}
	require.Len(t, p.routes, maxRoutes)
}

func TestTraceParent(t *testing.T) {
	t.Parallel()
	tests := []struct{ header, want string }{
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"00-4bf92f3577b34da6a3ce929d0e0e473X-00f067aa0ba902b7-01", ""},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736", ""},
		{"", ""},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, traceParent(&http.Request{Header: http.Header{"Traceparent": {tt.header}}}))
	}
}
