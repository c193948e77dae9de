package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecorder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		room    int64
		write   []string // "1text" or "2text"
		want    []string
		notKept int64
	}{
		{"nothing", 10, nil, nil, 0},
		{"order", 10, []string{"1a", "2b", "1c"}, []string{"1a", "2b", "1c"}, 0},
		{"joined", 10, []string{"1a", "1b", "2c", "2d"}, []string{"1ab", "2cd"}, 0},
		{"exactly full", 4, []string{"1ab", "2cd"}, []string{"1ab", "2cd"}, 0},
		{"cut inside", 3, []string{"1ab", "2cd"}, []string{"1ab", "2c"}, 1},
		{"nothing after a gap", 4, []string{"1abc", "2defg", "1h"}, []string{"1abc", "2d"}, 4},
		{"no room", 0, []string{"1ab"}, nil, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{room: tt.room}
			for _, w := range tt.write {
				r.add(Stream(w[0]-'0'), []byte(w[1:]))
			}
			var res Result
			r.fill(&res)
			var got []string
			for _, c := range res.Chunks {
				got = append(got, string('0'+byte(c.Stream))+string(c.Data))
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.notKept, res.NotKept)
			r.add(Stdout, []byte("late"))
			require.Equal(t, len(tt.want), len(r.chunks), "recorded after the end")
		})
	}
}

// However output is chopped, a result is small enough to be stored.
func TestResultSize(t *testing.T) {
	t.Parallel()
	r := &recorder{room: MaxKeep}
	for range maxChunks {
		r.add(Stdout, []byte("a"))
		r.add(Stderr, []byte("b"))
	}
	r.add(Stdout, bytes.Repeat([]byte("x"), MaxKeep))
	var chopped Result
	r.fill(&chopped)
	require.Len(t, chopped.Chunks, maxChunks)
	require.Equal(t, int64(maxChunks+MaxKeep), chopped.NotKept)

	whole := Result{Chunks: make([]Chunk, maxChunks), StartedAt: time.Now()}
	for i := range whole.Chunks {
		whole.Chunks[i] = Chunk{Stream: Stderr, Data: make([]byte, MaxKeep/maxChunks)}
	}
	for _, res := range []Result{chopped, whole} {
		enc, err := json.Marshal(res)
		require.NoError(t, err)
		require.Less(t, len(enc), 16<<20)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	res := Result{Chunks: []Chunk{{Stdout, []byte("a")}, {Stderr, []byte("\xff\x00")}, {Stdout, []byte("c")}}}
	enc, err := json.Marshal(res)
	require.NoError(t, err)
	var again Result
	require.NoError(t, json.Unmarshal(enc, &again))
	require.Equal(t, res, again)

	var out, errOut strings.Builder
	require.NoError(t, Replay(again, &out, &errOut))
	require.Equal(t, "ac", out.String())
	require.Equal(t, "\xff\x00", errOut.String())

	broken := errors.New("broken")
	errOut.Reset()
	require.ErrorIs(t, Replay(again, failingWriter{broken}, &errOut), broken)
	require.Equal(t, "\xff\x00", errOut.String(), "one broken stream must not silence the other")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
