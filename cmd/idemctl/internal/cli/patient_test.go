package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestPatientWait(t *testing.T) {
	t.Parallel()
	const timeout, look = time.Second, 250 * time.Millisecond
	tests := []struct {
		name    string
		timeout time.Duration
		holder  func(call int) int // 0 where nobody holds it
		took    time.Duration
		locked  bool
	}{
		{"free", timeout, func(int) int { return 0 }, 0, false},
		{"held by one", timeout, func(int) int { return 7 }, timeout, true},
		{"tried once", -1, func(int) int { return 7 }, 0, true},
		{"busy, then free", timeout, func(call int) int { return max(0, 20-call) }, 20 * look, false},
		{"busy, then held", timeout, func(call int) int { return 1 + min(call, 20) }, 21*look + timeout, true},
		{"busy for ever", timeout, func(call int) int { return 1 + call }, timeout + busyLimit + look, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &patientStore{timeout: tt.timeout}
				calls := 0
				began := time.Now()
				err := s.wait(t.Context(), func() error {
					pid := tt.holder(calls)
					calls++
					if pid == 0 {
						return nil
					}
					if tt.timeout > 0 {
						time.Sleep(look)
					}
					return &idem.LockedError{PID: pid}
				})
				if tt.locked {
					require.ErrorIs(t, err, idem.ErrLocked)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, tt.took, time.Since(began))
			})
		})
	}
}
