package debounce_test

import (
	"context"
	"fmt"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
)

// A filter in memory costs no disk access and forgets when the process ends. To
// remember across restarts, or between processes, give New another store.
func ExampleNew() {
	store := idem.NewMemoryStore(idem.MemoryConfig{MaxRecords: 100_000})
	defer store.Close()
	janitor, err := idem.StartJanitor(store, idem.JanitorConfig{}) // removes what has expired
	if err != nil {
		fmt.Println(err)
		return
	}
	defer janitor.Close()

	resend, err := debounce.New(store, "resend-mail", 5*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, user := range []string{"alice", "alice", "bob"} {
		d, err := resend.Allow(context.Background(), user)
		fmt.Println(user, d.Allowed, d.RetryAfter.Round(time.Second), err)
	}

	// Output:
	// alice true 0s <nil>
	// alice false 5s <nil>
	// bob true 0s <nil>
}
