package idemhttp

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// TestReadStart: the promised length of a body is a hint and no more, however the
// body comes.
func TestReadStart(t *testing.T) {
	t.Parallel()
	ways := map[string]func(io.Reader) io.Reader{
		"at once":       func(r io.Reader) io.Reader { return r },
		"by bytes":      iotest.OneByteReader,
		"end with data": iotest.DataErrReader,
	}
	for way, wrap := range ways {
		for _, size := range []int{0, 1, 2, 511, 512, 513, 8192, 8193, 20_000} {
			for _, promised := range []int64{-1, 0, 1, int64(size), 1 << 40} {
				for _, most := range []int64{1, 512, int64(size), int64(size) + 1, 1 << 20} {
					content := strings.Repeat("x", size)
					got, err := readStart(wrap(strings.NewReader(content)), promised, max(most, 1))
					require.NoError(t, err, way)
					require.Equal(t, content[:min(int64(size), max(most, 1))], string(got), "%s, %d of %d promised %d", way, most, size, promised)
					require.LessOrEqual(t, cap(got), 4*max(size, 8<<10), "a promise costs no memory")
				}
			}
		}
	}
	_, err := readStart(iotest.ErrReader(io.ErrUnexpectedEOF), 10, 10)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestBodyIsLongerThanItsLength: a middleware around may have replaced the body,
// by what it has unpacked, without telling.
func TestBodyIsLongerThanItsLength(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 5000)))
	r.ContentLength = 10
	s, err := spool(r, 64<<10, 1<<20, t.TempDir())
	require.NoError(t, err)
	require.EqualValues(t, 5000, s.size)
}

// TestNoBodyLimit: the largest limit there is lets everything in.
func TestNoBodyLimit(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("x", 5000)
	for _, memory := range []int64{0, 100, math.MaxInt64} {
		for _, promised := range []int64{-1, int64(len(content))} {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(content))
			r.ContentLength = promised
			s, err := spool(r, memory, math.MaxInt64, t.TempDir())
			require.NoError(t, err)
			got, err := io.ReadAll(s.reader())
			require.NoError(t, err)
			require.Equal(t, content, string(got))
			s.close()
		}
	}
}
