package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// A report that fails in the middle goes on after the last step that finished.
func ExampleStep() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	mailServer := errors.New("mail server is down")
	report := func(ctx context.Context, a *idem.Attempt) (string, error) {
		file, err := idem.Step(ctx, a, "export", func(context.Context) (string, error) {
			fmt.Println("exporting")
			return "report.pdf", nil
		})
		if err != nil {
			return "", err
		}
		return idem.Step(ctx, a, "mail", func(context.Context) (string, error) {
			return "mailed " + file, mailServer
		})
	}
	for range 2 {
		res, err := idem.Do(context.Background(), guard, idem.Key{Scope: "report", ID: "2026-11"}, nil, report)
		fmt.Printf("%q %v\n", res.Value, err)
		mailServer = nil
	}

	// Output:
	// exporting
	// "mailed report.pdf" mail server is down
	// "mailed report.pdf" <nil>
}
