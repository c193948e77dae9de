package idem

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func journaled(t testing.TB, path string, c BoltConfig) *BoltStore {
	t.Helper()
	c.journalAfter = -1
	s, err := OpenBoltStore(context.Background(), path, c)
	require.NoError(t, err)
	return s
}

func testRecord(id string, value string) Record {
	now := time.Now()
	return Record{
		Key: Key{Scope: "test", ID: id}, State: Completed, ExpiresAt: now.Add(time.Hour), CreatedAt: now,
		Value: []byte(value),
	}
}

func TestJournalBasics(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	s := journaled(t, path, BoltConfig{SegmentBytes: minSegmentBytes, CacheBytes: -1})
	ctx := t.Context()
	versions := map[string]Record{}
	for i := range 3000 {
		id := fmt.Sprint(i % 1500)
		rec := testRecord(id, fmt.Sprintf("value %d of %s", i, id))
		var err error
		if old, ok := versions[id]; ok {
			rec, err = s.Swap(ctx, old.Version, rec)
		} else {
			rec, err = s.Create(ctx, rec)
		}
		require.NoError(t, err)
		versions[id] = rec
		if i%7 == 0 {
			require.NoError(t, s.Delete(ctx, rec.Key, rec.Version))
			delete(versions, id)
		}
	}
	checkAll := func(s *BoltStore) {
		t.Helper()
		n := 0
		last := ""
		for rec, err := range s.Scan(ctx, Query{}) {
			require.NoError(t, err)
			require.Equal(t, versions[rec.Key.ID].Version, rec.Version)
			require.Equal(t, versions[rec.Key.ID].Value, rec.Value)
			require.Greater(t, rec.Key.String(), last)
			last = rec.Key.String()
			n++
		}
		require.Equal(t, len(versions), n)
		info, err := s.Info(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n, info.Records)
	}
	checkAll(s)
	require.FileExists(t, path+"-wal")

	// A copy of both files is what a crash leaves.
	crashed := filepath.Join(t.TempDir(), "idem.db")
	copyFile(t, path, crashed)
	copyFile(t, path+"-wal", crashed+"-wal")
	reader := journaled(t, crashed, BoltConfig{ReadOnly: true})
	checkAll(reader)
	require.NoError(t, reader.Close())
	require.FileExists(t, crashed+"-wal")
	again := journaled(t, crashed, BoltConfig{})
	checkAll(again)
	report, err := again.Check(ctx)
	require.NoError(t, err)
	require.Zero(t, report.Problems, report.Findings)
	require.NoError(t, again.Close())

	require.NoError(t, s.Close())
	require.NoFileExists(t, path+"-wal")
	s = journaled(t, path, BoltConfig{})
	checkAll(s)
	report, err = s.Check(ctx)
	require.NoError(t, err)
	require.Zero(t, report.Problems, report.Findings)
	require.NoError(t, s.Close())
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

func BenchmarkJournal(b *testing.B) {
	for _, callers := range []int{1, 32, 128} {
		for _, mode := range []string{"journal", "bolt"} {
			b.Run(fmt.Sprintf("%s/callers=%d", mode, callers), func(b *testing.B) {
				c := BoltConfig{journalAfter: -1}
				if mode == "bolt" {
					c.journalAfter = 1 << 30
				}
				g, err := Open(filepath.Join(b.TempDir(), "x.db"), WithBolt(c))
				require.NoError(b, err)
				_, err = Do(b.Context(), g, Key{"w", "w"}, nil, func(context.Context, *Attempt) ([]byte, error) { return nil, nil })
				require.NoError(b, err)
				var mu sync.Mutex
				n := 0
				var wg sync.WaitGroup
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						for {
							mu.Lock()
							n++
							i := n
							mu.Unlock()
							if i > b.N {
								return
							}
							_, err := Do(b.Context(), g, Key{"bench", fmt.Sprintf("%016x-%013d", uint64(i)*0x9E3779B97F4A7C15, i)}, nil,
								func(context.Context, *Attempt) ([]byte, error) { return make([]byte, 400), nil })
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
				b.StopTimer()
				require.NoError(b, g.Close())
			})
		}
	}
}
