package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// statistics is what one pass over the records and the history tells. Its size
// does not depend on theirs.
type statistics struct {
	info    idem.BoltInfo
	states  map[string]*stateCount
	total   int64
	damaged int64
	// ownerGone and leaseOver say why records that are stored as processing
	// count as interrupted.
	ownerGone, leaseOver int64
	createdPerHour       [24]int64 // the last element is the hour that is running
	replays, mismatches  uint64
	replayed             int64 // records that have answered a repeat
	hold                 histogram
	largest, mostReplay  topList
	suspects, unsettled  topList
	history              []idem.HourCounts
}

type stateCount struct {
	count  int64
	bytes  int64
	oldest time.Time
}

// collect reads everything once. top bounds the lists.
func (a *app) collect(ctx context.Context, top int) (*statistics, error) {
	r, err := a.newReader(ctx)
	if err != nil {
		return nil, err
	}
	s := newStatistics(r.info, top)
	if err := r.with(ctx, func(store *idem.BoltStore) (err error) {
		s.history, err = store.History(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	for e, err := range r.entries(ctx, idem.Query{Expired: true, OmitValues: true}) {
		if err != nil {
			return nil, err
		}
		s.add(&e)
	}
	return s, nil
}

func newStatistics(info idem.BoltInfo, top int) *statistics {
	list := func(order func(a, b *entry) int) topList { return topList{limit: max(top, 1), order: order} }
	return &statistics{
		info:       info,
		states:     make(map[string]*stateCount),
		largest:    list(func(a, b *entry) int { return cmp.Compare(b.Size, a.Size) }),
		mostReplay: list(func(a, b *entry) int { return cmp.Compare(b.Replays, a.Replays) }),
		suspects: list(func(a, b *entry) int {
			return cmp.Or(cmp.Compare(b.DistinctMismatches, a.DistinctMismatches), cmp.Compare(b.Mismatches, a.Mismatches))
		}),
		unsettled: list(func(a, b *entry) int { return a.StartedAt.Compare(b.StartedAt) }),
	}
}

func (s *statistics) now() time.Time { return s.info.Now }

func (s *statistics) add(e *entry) {
	s.total++
	if e.Damage != nil {
		s.damaged++
		return
	}
	state := s.states[e.State]
	if state == nil {
		state = &stateCount{oldest: e.CreatedAt}
		s.states[e.State] = state
	}
	state.count++
	state.bytes += int64(e.Size)
	if e.CreatedAt.Before(state.oldest) {
		state.oldest = e.CreatedAt
	}
	s.addTimes(e)
	s.addLists(e)
}

func (s *statistics) addTimes(e *entry) {
	if hour := hoursBetween(e.CreatedAt, s.now()); hour >= 0 && hour < len(s.createdPerHour) {
		s.createdPerHour[len(s.createdPerHour)-1-hour]++
	}
	finished := e.Record.State == idem.Completed || e.Record.State == idem.Failed
	if took, known := e.took(); finished && known {
		s.hold.add(took)
	}
	if e.Record.State == idem.Processing && e.State == idem.Interrupted.String() {
		if !*e.OwnerAlive {
			s.ownerGone++
		} else {
			s.leaseOver++
		}
	}
}

func (s *statistics) addLists(e *entry) {
	s.replays += e.Replays
	s.mismatches += e.Mismatches
	s.largest.add(*e)
	if e.Replays > 0 {
		s.replayed++
		s.mostReplay.add(*e)
	}
	if e.Mismatches > 0 {
		s.suspects.add(*e)
	}
	if e.State == idem.Interrupted.String() {
		s.unsettled.add(*e)
	}
}

// hoursBetween counts whole hours of the clock, as the history does.
func hoursBetween(then, now time.Time) int {
	return int(now.Unix()/3600 - then.Unix()/3600)
}

// count is the number of records in a state.
func (s *statistics) count(state string) int64 {
	if c := s.states[state]; c != nil {
		return c.count
	}
	return 0
}

// activity sums up hours of the history.
type activity struct {
	events   map[idem.EventKind]uint64
	rejected map[idem.RejectReason]uint64
}

func sumHours(hours []idem.HourCounts) activity {
	sum := activity{make(map[idem.EventKind]uint64), make(map[idem.RejectReason]uint64)}
	for _, h := range hours {
		for kind, n := range h.Events {
			sum.events[kind] += n
		}
		for reason, n := range h.Rejected {
			sum.rejected[reason] += n
		}
	}
	return sum
}

// ran is the number of calls that ran the function to a known end.
func (a activity) ran() uint64 {
	return a.events[idem.EventExecuted] + a.events[idem.EventFailed] + a.events[idem.EventReleased]
}

// answered is the number of calls that hitRate is a share of.
func (a activity) answered() uint64 { return a.events[idem.EventReplayed] + a.ran() }

// hitRate is as idem.Counters.HitRate: what was answered from a record.
func (a activity) hitRate() float64 {
	if a.answered() == 0 {
		return 0
	}
	return float64(a.events[idem.EventReplayed]) / float64(a.answered())
}

func (a activity) conflicts() uint64 {
	return a.events[idem.EventInProgress] + a.events[idem.EventMismatch]
}

func (a activity) failures() uint64 {
	return a.events[idem.EventFailed] + a.events[idem.EventReleased] + a.events[idem.EventInterrupted] +
		a.events[idem.EventLeaseLost] + a.events[idem.EventStoreError]
}

// cutHistory cuts the history into count periods of so many hours each, the last
// one being that of now.
func cutHistory(history []idem.HourCounts, now time.Time, hours, count int) []activity {
	cut := make([][]idem.HourCounts, count)
	for _, h := range history {
		if ago := hoursBetween(h.Hour, now) / hours; ago >= 0 && ago < count {
			cut[count-1-ago] = append(cut[count-1-ago], h)
		}
	}
	sums := make([]activity, count)
	for i, hours := range cut {
		sums[i] = sumHours(hours)
	}
	return sums
}

// presentStates are the states there are records of, in a fixed order.
func (s *statistics) presentStates() []string {
	return slices.DeleteFunc(stateNames(), func(name string) bool { return s.states[name] == nil })
}
