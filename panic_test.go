package idem_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// A panic in code of the user that runs after the function must leave the key
// as a panic in the function does, and no lease that is renewed for ever.
func TestPanicAfterTheFunctionInterrupts(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	key := idem.Key{Scope: "test", ID: "k"}
	classifier := idem.WithClassifier(func(error) idem.Outcome { panic("classifier") })
	require.PanicsWithValue(t, "classifier", func() {
		_, _ = idem.Do(t.Context(), g, key, nil, returns("", errors.New("plain")), classifier)
	})
	_, err := idem.Do(t.Context(), g, key, nil, mustNotRun[string](t))
	require.ErrorIs(t, err, idem.ErrInterrupted)
}
