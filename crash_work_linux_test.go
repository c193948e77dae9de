package idem

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// crashWrite is one change of a key that a crash may lose, if it was not yet
// acknowledged.
type crashWrite struct {
	rec           Record // zero Version: removed
	issued, acked int    // moments of the disk log
}

// crashWork is what was done to a store, by key. The changes of one key are made
// one after the other.
type crashWork struct {
	log    *diskLog
	small  bool // many small records, so that a merge takes several transactions
	mu     sync.Mutex
	writes map[string][]crashWrite
	// transactions counts those that were found in images, complete.
	transactions int

	expire int // moment at which expired records were first removed; 0 if never
}

// lane works on keys of its own.
type crashLane struct {
	work   *crashWork
	store  *BoltStore
	random *rand.Rand
	id     int
	live   []Record
	made   int
}

// run lets lanes do random things at the same time.
func (w *crashWork) run(t *testing.T, s *BoltStore, seed uint64, lanes, steps int) {
	var working sync.WaitGroup
	for id := range lanes {
		working.Go(func() {
			l := &crashLane{work: w, store: s, id: id, random: rand.New(rand.NewPCG(seed, uint64(id)))}
			for range steps {
				if err := l.step(t); err != nil {
					t.Errorf("lane %d: %v", id, err)
					return
				}
			}
		})
	}
	working.Wait()
}

func (l *crashLane) step(t *testing.T) error {
	l.store.RecordEvent(Event{Kind: EventReplayed, Key: faultKey(fmt.Sprintf("%d-0", l.id)), Count: 1})
	switch n := l.random.IntN(20); {
	case n == 0 && l.id == 0:
		l.work.mu.Lock()
		if l.work.expire == 0 {
			l.work.expire = max(1, l.work.log.now())
		}
		l.work.mu.Unlock()
		_, err := l.store.Expire(t.Context(), 1+l.random.IntN(10))
		return err
	case n < 3:
		rec := completed(fmt.Sprintf("old-%d-%d", l.id, l.made), l.value())
		l.made++
		rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
		return l.write(rec.Key, func() (Record, error) { return l.store.Create(t.Context(), rec) })
	case n < 5:
		return l.transact(t)
	case n < 10 || len(l.live) == 0:
		rec := completed(fmt.Sprintf("%d-%d", l.id, l.made), l.value())
		l.made++
		return l.write(rec.Key, func() (Record, error) { return l.store.Create(t.Context(), rec) })
	case n < 17:
		i := l.random.IntN(len(l.live))
		old, rec := l.live[i], completed(l.live[i].Key.ID, l.value())
		l.live[i] = l.live[len(l.live)-1]
		l.live = l.live[:len(l.live)-1]
		return l.write(rec.Key, func() (Record, error) { return l.store.Swap(t.Context(), old.Version, rec) })
	default:
		i := l.random.IntN(len(l.live))
		old := l.live[i]
		l.live[i] = l.live[len(l.live)-1]
		l.live = l.live[:len(l.live)-1]
		if err := l.write(old.Key, func() (Record, error) { return Record{}, l.store.Delete(t.Context(), old.Key, old.Version) }); err != nil {
			return err
		}
		if l.random.IntN(2) == 0 {
			return nil
		}
		rec := completed(old.Key.ID, l.value())
		return l.write(rec.Key, func() (Record, error) { return l.store.Create(t.Context(), rec) })
	}
}

// transact creates a record, which stays as it is, together with a row and an event.
func (l *crashLane) transact(t *testing.T) error {
	rec := completed(fmt.Sprintf("tx-%d-%d", l.id, l.made), l.value())
	l.made++
	err := l.write(rec.Key, func() (Record, error) {
		err := l.store.Update(t.Context(), func(tx *Tx) error {
			_, err := tx.Records().Create(t.Context(), rec)
			return errors.Join(err, tx.Bucket("rows").Put([]byte(rec.Key.String()), rec.Value), tx.Bucket("events").Append([]byte(rec.Key.String())))
		})
		if err != nil {
			return Record{}, err
		}
		return l.store.Get(t.Context(), rec.Key)
	})
	if err == nil {
		l.live = l.live[:len(l.live)-1]
	}
	return err
}

// requireTogether requires that of every transaction all is there, or nothing.
func requireTogether(t *testing.T, s *BoltStore, found map[string]Record) (transactions int) {
	t.Helper()
	rows, events := make(map[string]string), make(map[string]int)
	require.NoError(t, s.View(t.Context(), func(tx *Tx) error {
		for p, err := range tx.Bucket("rows").Range(nil, nil) {
			require.NoError(t, err)
			rows[string(p.Key)] = string(p.Value)
		}
		for p, err := range tx.Bucket("events").Range(nil, nil) {
			require.NoError(t, err)
			events[string(p.Value)]++
		}
		return nil
	}))
	for key, rec := range found {
		if strings.HasPrefix(rec.Key.ID, "tx-") {
			transactions++
			require.Equal(t, rows[key], string(rec.Value), "row of %s", key)
			require.Equal(t, 1, events[key], "events of %s", key)
		}
	}
	require.Len(t, rows, transactions)
	require.Len(t, events, transactions)
	return transactions
}

// value is mostly small, and sometimes too large for the journal.
func (l *crashLane) value() string {
	if l.work.small {
		return faultValue(l.random.IntN(1000), 1+l.random.IntN(20))
	}
	size := 1 + l.random.IntN(1200)
	switch l.random.IntN(40) {
	case 0:
		size = directBytes + l.random.IntN(20_000)
	case 1, 2:
		size = 5000 + l.random.IntN(20_000)
	}
	return faultValue(l.random.IntN(1000), size)
}

func (l *crashLane) write(key Key, do func() (Record, error)) error {
	w := crashWrite{issued: l.work.log.now()}
	var err error
	if w.rec, err = do(); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	w.acked = l.work.log.now()
	if w.rec.Version != 0 && w.rec.ExpiresAt.After(time.Now()) {
		l.live = append(l.live, w.rec)
	}
	l.work.mu.Lock()
	defer l.work.mu.Unlock()
	l.work.writes[key.String()] = append(l.work.writes[key.String()], w)
	return nil
}

// verify opens what a crash at that moment has left and requires that every
// acknowledged change is there, unless a later one that had begun is, and nothing
// else.
func (w *crashWork) verify(t *testing.T, path string, at int) {
	s, err := OpenBoltStore(t.Context(), path, crashConfig)
	require.NoError(t, err)
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%v", report.Findings)
	found := make(map[string]Record)
	for rec, err := range s.Scan(t.Context(), Query{Expired: true}) {
		require.NoError(t, err)
		found[rec.Key.String()] = rec
	}
	w.transactions += requireTogether(t, s, found)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(found), info.Records)
	var highest uint64
	for text, writes := range w.writes {
		rec := found[text]
		delete(found, text)
		highest = max(highest, w.requirePossible(t, text, writes, rec, at))
	}
	require.Empty(t, found, "never written")
	probe, err := s.Create(t.Context(), completed("probe", ""))
	require.NoError(t, err)
	require.Greater(t, probe.Version, highest, "a version was given again")
	require.NoError(t, s.Delete(t.Context(), probe.Key, probe.Version))
	require.NoError(t, s.Close())
	require.NoFileExists(t, path+journal.Suffix, "a journal is left after a clean close")
}

// requirePossible requires that rec is what one of the writes has left that may be
// the last one on disk. It returns the highest version that was seen.
func (w *crashWork) requirePossible(t *testing.T, key string, writes []crashWrite, rec Record, at int) (highest uint64) {
	possible := []Record{{}}
	for _, write := range writes {
		switch {
		case write.acked <= at:
			possible = []Record{write.rec}
			highest = max(highest, write.rec.Version)
		case write.issued <= at:
			possible = append(possible, write.rec)
		}
	}
	if last := possible[len(possible)-1]; w.expire != 0 && w.expire <= at && last.ExpiresAt.Before(last.CreatedAt) {
		possible = append(possible, Record{}) // it may have been removed
	}
	for _, want := range possible {
		if want.Version == rec.Version {
			require.Equal(t, want.State, rec.State, key)
			require.True(t, bytes.Equal(want.Value, rec.Value), "value of %s", key)
			require.True(t, want.ExpiresAt.Equal(rec.ExpiresAt), key)
			return max(highest, rec.Version)
		}
	}
	require.Failf(t, "impossible", "%s: version %d at moment %d, possible %v", key, rec.Version, at, versionsOf(possible))
	return 0
}

func versionsOf(records []Record) (versions []uint64) {
	for _, r := range records {
		versions = append(versions, r.Version)
	}
	return versions
}
