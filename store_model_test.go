package idem_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
)

// modelRecord is what the model knows of a record. Times are either an hour
// past or an hour ahead, so that nothing expires while the test looks.
type modelRecord struct {
	version      uint64
	state        idem.State
	value        string
	expired      bool // its ExpiresAt is over
	leaseRunning bool
}

func (r modelRecord) live() bool { return !r.expired || r.state == idem.Processing && r.leaseRunning }

// boltMachine compares a BoltStore, closed and opened at any time, with a map.
type boltMachine struct {
	ctx     context.Context
	path    string
	config  idem.BoltConfig
	store   *idem.BoltStore
	records map[string]modelRecord // expired ones that were not removed included
	highest map[string]uint64      // version each key ever had
}

// TestBoltStoreFollowsModel does random things, also closing and opening the
// file, and looks at the whole store after each.
func TestBoltStoreFollowsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &boltMachine{
			ctx: t.Context(), path: filepath.Join(t.TempDir(), "model.db"),
			config:  idem.BoltConfig{Grace: -1, CacheBytes: 2 << 10},
			records: map[string]modelRecord{}, highest: map[string]uint64{},
		}
		m.open(rt)
		defer func() { require.NoError(rt, m.store.Close()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"swap":   m.swap,
			"delete": m.remove,
			"get":    m.get,
			"expire": m.expire,
			"reopen": m.reopen,
			"":       m.check,
		})
		report, err := m.store.Check(m.ctx)
		require.NoError(rt, err)
		require.Zero(rt, report.Problems, "%+v", report.Findings)
		require.Len(rt, m.records, report.Records)
	})
}

func (m *boltMachine) open(rt *rapid.T) {
	var err error
	m.store, err = idem.OpenBoltStore(m.ctx, m.path, m.config)
	require.NoError(rt, err)
}

func (m *boltMachine) reopen(rt *rapid.T) {
	require.NoError(rt, m.store.Close())
	m.open(rt)
}

// drawKey takes few keys, so that operations meet, with separators that sort
// oddly.
func drawKey(rt *rapid.T) idem.Key {
	return idem.Key{
		Scope: rapid.SampledFrom([]string{"a", "a.b", "a0"}).Draw(rt, "scope"),
		ID:    rapid.SampledFrom([]string{"1", "1/2", "2"}).Draw(rt, "id"),
	}
}

func drawRecord(rt *rapid.T, key idem.Key) (idem.Record, modelRecord) {
	model := modelRecord{
		state:        rapid.SampledFrom(idem.States()).Draw(rt, "state"),
		value:        strings.Repeat("v", rapid.IntRange(0, 3000).Draw(rt, "size")),
		expired:      rapid.IntRange(0, 3).Draw(rt, "expired") == 0,
		leaseRunning: rapid.Bool().Draw(rt, "lease"),
	}
	at := func(past bool) time.Time {
		if past {
			return time.Now().Add(-time.Hour)
		}
		return time.Now().Add(time.Hour)
	}
	rec := idem.Record{Key: key, State: model.state, Value: []byte(model.value), ExpiresAt: at(model.expired)}
	if model.state == idem.Processing {
		rec.LeaseUntil = at(!model.leaseRunning)
	}
	return rec, model
}

// current returns the live record of the model.
func (m *boltMachine) current(key idem.Key) (modelRecord, bool) {
	rec, ok := m.records[key.String()]
	return rec, ok && rec.live()
}

// drawVersion is mostly the right one.
func (m *boltMachine) drawVersion(rt *rapid.T, key idem.Key) uint64 {
	if rapid.IntRange(0, 3).Draw(rt, "guess") > 0 {
		return m.records[key.String()].version
	}
	return rapid.Uint64Range(0, 40).Draw(rt, "version")
}

// wrote takes a successful write over into the model.
func (m *boltMachine) wrote(rt *rapid.T, stored idem.Record, model modelRecord) {
	text := stored.Key.String()
	require.Greater(rt, stored.Version, m.highest[text], "version of %s", text)
	model.version = stored.Version
	m.records[text], m.highest[text] = model, stored.Version
}

func requireRecord(rt *rapid.T, want modelRecord, got idem.Record) {
	require.Equal(rt, want.version, got.Version, "version of %s", got.Key)
	require.Equal(rt, want.state, got.State, "state of %s", got.Key)
	require.Equal(rt, want.value, string(got.Value), "value of %s", got.Key)
}

func (m *boltMachine) create(rt *rapid.T) {
	key := drawKey(rt)
	rec, model := drawRecord(rt, key)
	stored, err := m.store.Create(m.ctx, rec)
	if current, ok := m.current(key); ok {
		require.ErrorIs(rt, err, idem.ErrConflict)
		requireRecord(rt, current, stored)
		return
	}
	require.NoError(rt, err)
	m.wrote(rt, stored, model)
}

func (m *boltMachine) swap(rt *rapid.T) {
	key := drawKey(rt)
	rec, model := drawRecord(rt, key)
	version := m.drawVersion(rt, key)
	stored, err := m.store.Swap(m.ctx, version, rec)
	current, ok := m.current(key)
	if !ok || current.version != version {
		require.ErrorIs(rt, err, idem.ErrConflict)
		if ok {
			requireRecord(rt, current, stored)
		} else {
			require.Zero(rt, stored)
		}
		return
	}
	require.NoError(rt, err)
	m.wrote(rt, stored, model)
}

func (m *boltMachine) remove(rt *rapid.T) {
	key := drawKey(rt)
	version := m.drawVersion(rt, key)
	err := m.store.Delete(m.ctx, key, version)
	current, ok := m.current(key)
	switch {
	case !ok:
		require.ErrorIs(rt, err, idem.ErrNotFound)
	case current.version != version:
		require.ErrorIs(rt, err, idem.ErrConflict)
	default:
		require.NoError(rt, err)
		delete(m.records, key.String())
	}
}

func (m *boltMachine) get(rt *rapid.T) {
	key := drawKey(rt)
	got, err := m.store.Get(m.ctx, key)
	current, ok := m.current(key)
	if !ok {
		require.ErrorIs(rt, err, idem.ErrNotFound)
		return
	}
	require.NoError(rt, err)
	requireRecord(rt, current, got)
}

// expire removes everything that is due: which of several with nearly one
// expiry goes first is not the model's to say.
func (m *boltMachine) expire(rt *rapid.T) {
	due := 0
	for text, rec := range m.records {
		if !rec.live() {
			due++
			delete(m.records, text)
		}
	}
	removed, err := m.store.Expire(m.ctx, 100)
	require.NoError(rt, err)
	require.Equal(rt, due, removed, "removed")
}

// check compares everything that can be seen.
func (m *boltMachine) check(rt *rapid.T) {
	var all []string
	for rec, err := range m.store.Scan(m.ctx, idem.Query{Expired: true}) {
		require.NoError(rt, err)
		all = append(all, rec.Key.String())
		requireRecord(rt, m.records[rec.Key.String()], rec)
	}
	require.Equal(rt, slices.Sorted(maps.Keys(m.records)), all)
	live := 0
	for rec, err := range m.store.Scan(m.ctx, idem.Query{}) {
		require.NoError(rt, err)
		require.True(rt, m.records[rec.Key.String()].live(), fmt.Sprintf("%s came although it has expired", rec.Key))
		live++
	}
	for _, rec := range m.records {
		if rec.live() {
			live--
		}
	}
	require.Zero(rt, live, "live records that did not come, or too many")
}
