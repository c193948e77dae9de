package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such customer")
	tests := []struct {
		name string
		err  error
		want idem.Outcome
	}{
		{"plain", plain, idem.OutcomeNothing},
		{"end of file", io.ErrUnexpectedEOF, idem.OutcomeNothing},
		{"permanent", idem.Permanent(plain), idem.OutcomePermanent},
		{"permanent, wrapped", fmt.Errorf("charge: %w", idem.Permanent(plain)), idem.OutcomePermanent},
		{"unknown", idem.Unknown(plain), idem.OutcomeUnknown},
		{"outermost mark wins", idem.Permanent(idem.Unknown(plain)), idem.OutcomePermanent},
		{"mark wins over an ended context", idem.Permanent(context.Canceled), idem.OutcomePermanent},
		{"cancelled", fmt.Errorf("charge: %w", context.Canceled), idem.OutcomeUnknown},
		{"deadline", context.DeadlineExceeded, idem.OutcomeUnknown},
		{"network timeout", fmt.Errorf("post: %w", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), idem.OutcomeUnknown},
		{"name lookup timed out", &net.DNSError{IsTimeout: true}, idem.OutcomeUnknown},
		{"connection refused", &net.OpError{Op: "dial", Err: errors.New("refused")}, idem.OutcomeNothing},
		{"joined", errors.Join(plain, context.Canceled), idem.OutcomeUnknown},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, idem.Classify(tt.err), tt.name)
	}
}

func TestMarksKeepTheError(t *testing.T) {
	t.Parallel()
	require.NoError(t, idem.Permanent(nil))
	require.NoError(t, idem.Unknown(nil))
	for _, mark := range []func(error) error{idem.Permanent, idem.Unknown} {
		err := mark(io.EOF)
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, io.EOF.Error())
	}
}
