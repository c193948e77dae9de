package lock

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// TestEnd: what Unlock says of an attempt that has ended, also in ways that need
// bad luck in time.
func TestEnd(t *testing.T) {
	t.Parallel()
	down := errors.New("the store is down")
	tests := []struct {
		name string
		err  error
		want error
		lost bool
	}{
		{"released", ErrReleased, nil, false},
		{"lost while it was given back", &idem.InterruptedError{Cause: ErrReleased}, idem.ErrLeaseLost, true},
		{"taken over before", &idem.NotRecordedError{Store: idem.ErrLeaseLost, Func: ErrReleased}, idem.ErrLeaseLost, true},
		{"store down", &idem.NotRecordedError{Store: down, Func: ErrReleased}, down, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHeld("a")
			h.fence = 1
			h.end(idem.Record{}, tt.err)
			err := h.Unlock(t.Context())
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, tt.lost, errors.Is(err, ErrLost))
		})
	}
}
