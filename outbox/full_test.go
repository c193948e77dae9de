package outbox

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// TestFullDisk: marks are written when there is room again, or given up when the
// relay is to stop.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("commit: %w", idem.ErrFull)
	fatal := errors.New("fatal")
	tests := []struct {
		name   string
		errs   []error // of each try, the last one's from then on
		stopAt time.Duration
		want   error
		tries  int
		least  time.Duration
	}{
		{"room", []error{nil}, time.Hour, nil, 1, 0},
		{"room later", []error{full, full, full, nil}, time.Hour, nil, 4, 3500 * time.Millisecond},
		{"another error", []error{full, fatal}, time.Hour, fatal, 2, 500 * time.Millisecond},
		{"stopped", []error{full}, 100 * time.Millisecond, idem.ErrFull, 1, 100 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSession(&Relay{minBackoff: time.Second, maxBackoff: time.Minute}, "")
				stop := time.AfterFunc(tt.stopAt, func() { close(s.stopped) })
				defer stop.Stop()
				began, tries := time.Now(), 0
				err := s.patiently(func() error {
					tries++
					return tt.errs[min(tries, len(tt.errs))-1]
				})
				require.ErrorIs(t, err, tt.want)
				require.Equal(t, tt.tries, tries)
				require.GreaterOrEqual(t, time.Since(began), tt.least)
			})
		})
	}
}
