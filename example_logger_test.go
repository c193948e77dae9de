package idem_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/idembolt/idem"
)

// What needs a person's eye is logged as a warning, with the id hashed.
func ExampleWithLogger() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithLogger(handler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	for _, cents := range []int{100, 200} {
		input := map[string]int{"cents": cents}
		_, _ = idem.Do(context.Background(), guard, idem.Key{Scope: "charge", ID: "o-1"}, input,
			func(context.Context, *idem.Attempt) (string, error) { return "receipt-1", nil })
	}

	// Output:
	// level=WARN msg=idem event=mismatch scope=charge id_hash=5cbdcb742069 version=2 attempt=1 parts=[cents]
}
