package idem_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/internal/torture"
)

// journalMachine is a boltMachine whose store has a journal, crashes, and is
// opened on machines whose clocks disagree.
type journalMachine struct {
	boltMachine
	dir   string
	opens int

	looked  time.Time // time of the store at the last look
	written time.Time // time before the last write; it is durable
	top     uint64    // version of that write
}

// TestTortureModel does random things to a store with a journal, and looks at the
// whole store after each.
func TestTortureModel(t *testing.T) {
	t.Parallel()
	torture.Rounds(t, 1, func(t *testing.T, _ *rand.Rand) {
		rapid.Check(t, func(rt *rapid.T) {
			m := &journalMachine{dir: idem.MemoryDir(t)}
			m.ctx, m.path = t.Context(), filepath.Join(m.dir, "model.db")
			m.config = idem.WithJournal(idem.BoltConfig{Grace: -1, CacheBytes: 2 << 10})
			m.records, m.highest = map[string]modelRecord{}, map[string]uint64{}
			m.open(rt)
			defer func() { require.NoError(rt, m.store.Close()) }()
			rt.Repeat(map[string]func(*rapid.T){
				"create":    m.create,
				"swap":      m.swap,
				"delete":    m.remove,
				"get":       m.get,
				"expire":    m.expire,
				"burst":     m.burst,
				"reopen":    m.reopenElsewhere,
				"crash":     m.crash,
				"read only": m.readOnly,
				"":          m.look,
			})
			report, err := m.store.Check(m.ctx)
			require.NoError(rt, err)
			require.Zero(rt, report.Problems, "%+v", report.Findings)
			require.Len(rt, m.records, report.Records)
		})
	})
}

// burst writes enough for a merge or two.
func (m *journalMachine) burst(rt *rapid.T) {
	n := rapid.IntRange(5, 60).Draw(rt, "records")
	size := rapid.SampledFrom([]int{100, 3000, 70_000}).Draw(rt, "size")
	if size > 10_000 {
		n = min(n, 5)
	}
	for i := range n {
		key := idem.Key{Scope: "burst", ID: fmt.Sprintf("%03d", i)}
		model := modelRecord{state: idem.Completed, value: strings.Repeat("b", size)}
		rec := idem.Record{Key: key, State: model.state, Value: []byte(model.value), ExpiresAt: time.Now().Add(time.Hour)}
		var stored idem.Record
		var err error
		if old, ok := m.current(key); ok {
			stored, err = m.store.Swap(m.ctx, old.version, rec)
		} else {
			stored, err = m.store.Create(m.ctx, rec)
		}
		require.NoError(rt, err)
		m.wrote(rt, stored, model)
	}
}

// step sets the clock of the next machine that opens the store. Nothing that the
// model knows expires by it.
func (m *journalMachine) step(rt *rapid.T) {
	minutes := rapid.IntRange(-20, 20).Draw(rt, "clock")
	m.config = idem.WithClock(m.config, time.Duration(minutes)*time.Minute)
}

func (m *journalMachine) reopenElsewhere(rt *rapid.T) {
	require.NoError(rt, m.store.Close())
	require.NoFileExists(rt, m.path+"-wal")
	m.step(rt)
	m.open(rt)
}

// crash goes on with a copy of the files.
func (m *journalMachine) crash(rt *rapid.T) {
	m.copyFiles(rt)
	m.step(rt)
	m.open(rt)
}

// copyFiles copies both files as a crash would leave them, when no merge writes,
// and gives up the store.
func (m *journalMachine) copyFiles(rt *rapid.T) {
	require.NoError(rt, idem.WaitForMerge(m.store))
	m.opens++
	copied := filepath.Join(m.dir, fmt.Sprintf("crashed-%d.db", m.opens))
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(m.path + suffix)
		if suffix != "" && os.IsNotExist(err) {
			continue
		}
		require.NoError(rt, err)
		require.NoError(rt, os.WriteFile(copied+suffix, data, 0o600))
	}
	require.NoError(rt, m.store.Close())
	require.NoError(rt, os.Remove(m.path))
	m.path = copied
}

// readOnly has a reader look at the files after a crash.
func (m *journalMachine) readOnly(rt *rapid.T) {
	m.copyFiles(rt)
	config := m.config
	m.config.ReadOnly = true
	m.open(rt)
	m.check(rt)
	require.NoError(rt, m.store.Close())
	m.config = config
	m.open(rt)
	if _, err := os.Stat(m.path + "-wal"); err != nil {
		require.ErrorIs(rt, err, fs.ErrNotExist, "it was to be recovered")
	} else {
		rt.Fatal("a journal was left after opening")
	}
}

func (m *journalMachine) look(rt *rapid.T) {
	m.check(rt)
	if top := slices.Max(append(slices.Collect(maps.Values(m.highest)), 0)); top > m.top {
		m.top, m.written = top, m.looked
	}
	m.looked = m.store.Now()
	require.False(rt, m.looked.Before(m.written), "the store's time goes back")
	info, err := m.store.Info(m.ctx)
	require.NoError(rt, err)
	require.EqualValues(rt, len(m.records), info.Records)
}
