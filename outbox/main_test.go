package outbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(relayEnv); dir != "" {
		fmt.Println(runKilledRelay(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func openStore(t testing.TB, path string) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(context.Background(), path, idem.BoltConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newOutbox(t testing.TB) (*idem.BoltStore, *outbox.Outbox) {
	t.Helper()
	s := openStore(t, filepath.Join(t.TempDir(), "outbox.db"))
	o, err := outbox.New(s)
	require.NoError(t, err)
	return s, o
}

// event is the nth of an aggregate.
func event(aggregate string, n int) outbox.Event {
	return outbox.Event{
		ID: fmt.Sprintf("%s-%d", aggregate, n), AggregateType: "order", AggregateID: aggregate, Type: "Changed",
		Payload: fmt.Appendf(nil, `{"n":%d}`, n),
	}
}

func appendEvents(t testing.TB, s *idem.BoltStore, o *outbox.Outbox, events ...outbox.Event) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error { return o.Append(tx, events...) }))
}

// running is a relay that runs until stop.
type running struct {
	cancel context.CancelFunc
	ended  chan error
}

func start(t testing.TB, o *outbox.Outbox, publish func(context.Context, outbox.Event) error, opts ...outbox.RelayOption) *running {
	t.Helper()
	relay, err := outbox.NewRelay(o, publish, opts...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, ended: make(chan error, 1)}
	t.Cleanup(cancel)
	go func() { r.ended <- relay.Run(ctx) }()
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	require.NoError(t, <-r.ended)
}

// publisher notes what it is given, and fails as it is told to.
type publisher struct {
	mu    sync.Mutex
	seen  []string
	count map[string]int
	fault func(e outbox.Event, attempt int) error // nil: never
	done  chan struct{}                           // closed after the number wanted
	want  int                                     // successes
}

func newPublisher(want int, fault func(e outbox.Event, attempt int) error) *publisher {
	return &publisher{count: make(map[string]int), fault: fault, done: make(chan struct{}), want: want}
}

func (p *publisher) publish(_ context.Context, e outbox.Event) error {
	p.mu.Lock()
	p.count[e.ID]++
	attempt := p.count[e.ID]
	p.mu.Unlock()
	if p.fault != nil {
		if err := p.fault(e, attempt); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, e.ID)
	if len(p.seen) == p.want {
		close(p.done)
	}
	return nil
}

// of are the events of one aggregate that got through.
func (p *publisher) of(aggregate string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.seen {
		if len(id) > len(aggregate) && id[:len(aggregate)+1] == aggregate+"-" {
			ids = append(ids, id)
		}
	}
	return ids
}

func ids(aggregate string, from, to int) (list []string) {
	for n := from; n <= to; n++ {
		list = append(list, fmt.Sprintf("%s-%d", aggregate, n))
	}
	return list
}

func stats(t testing.TB, o *outbox.Outbox) outbox.Stats {
	t.Helper()
	s, err := o.Stats(context.Background())
	require.NoError(t, err)
	return s
}
