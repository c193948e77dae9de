package idem

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/require"
)

// TestCreateLeftovers injects what a creation that was cut short leaves beside
// the path: its temporary file in every stage. Opening must give a whole store
// and clear the leftover away.
func TestCreateLeftovers(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(faultFile(t, 0, 0))
	require.NoError(t, err)
	garbage := []byte(strings.Repeat("\xde\xad\xbe\xef", 4<<10))
	tests := []struct {
		name string
		temp []byte
	}{
		{"directory entry only", nil},
		{"one byte", whole[:1]},
		{"first header page", whole[:4<<10]},
		{"bbolt's first 16 KiB", whole[:16<<10]},
		{"garbage of 16 KiB", garbage},
		{"complete, not yet renamed", whole},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, existing := range []bool{false, true} {
				path := filepath.Join(t.TempDir(), "a [b] c.db")
				if existing {
					require.NoError(t, os.Rename(faultFile(t, 3, 100), path))
				}
				require.NoError(t, os.WriteFile(path+temporaryInfix+"0123456789abcdef", tt.temp, 0o600))

				s := openFault(t, path, BoltConfig{})
				records := 0
				for _, err := range s.Scan(t.Context(), Query{}) {
					require.NoError(t, err)
					records++
				}
				require.Equal(t, map[bool]int{false: 0, true: 3}[existing], records)
				_, err := s.Create(t.Context(), completed("x", "v"))
				require.NoError(t, err)
				require.NoError(t, s.Close())
				names, err := os.ReadDir(filepath.Dir(path))
				require.NoError(t, err)
				require.Len(t, names, 1, "the leftover is still there")
				requireSound(t, path)
			}
		})
	}
}

// TestHalfFile injects a half-made file under the real name, as a copy that was
// cut short leaves it: every length that ends a page, and some in between. It
// must be refused or be sound, and never be written to.
func TestHalfFile(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(faultFile(t, 0, 0))
	require.NoError(t, err)
	page := os.Getpagesize()
	require.Greater(t, len(whole), 4*page)
	refused := 0
	for end := 0; end < len(whole); end += page / 2 {
		path := faultPath(t)
		require.NoError(t, os.WriteFile(path, whole[:end], 0o600))
		same := untouched(t, path)
		s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
		if err == nil { // only what a store never used is missing
			_, err := s.Get(t.Context(), faultKey("x"))
			require.ErrorIs(t, err, ErrNotFound)
			require.NoError(t, s.Close())
			requireSound(t, path)
			continue
		}
		refused++
		require.Truef(t, isAny(err, ErrNotIdem, ErrCorrupt), "%d bytes: %v", end, err)
		same()
	}
	require.Positive(t, refused)
	t.Run("bbolt file without buckets", func(t *testing.T) {
		path := faultPath(t)
		db, err := bolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		same := untouched(t, path)
		_, err = OpenBoltStore(t.Context(), path, BoltConfig{})
		require.ErrorIs(t, err, ErrNotIdem)
		same()
	})
}

// TestCreateKilled kills a process that does nothing but make stores. Every
// store it leaves must be whole or not be there.
func TestCreateKilled(t *testing.T) {
	if isFaultChild(t) {
		for i := 0; ; i++ {
			s, err := OpenBoltStore(t.Context(), filepath.Join(os.Getenv("IDEM_FAULT_PATH"), fmt.Sprintf("%d.db", i)), BoltConfig{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			fmt.Println("made", i)
		}
	}
	t.Parallel()
	rounds, seed := 24, rand.Uint64()
	if testing.Short() {
		rounds = 8
	}
	t.Logf("%d rounds, seed %d", rounds, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cut := 0
	for range rounds {
		dir := t.TempDir()
		cmd := faultChild(t, "IDEM_FAULT_PATH="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		time.AfterFunc(time.Duration(random.IntN(10_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		require.Error(t, cmd.Wait())

		left, err := filepath.Glob(filepath.Join(dir, "*"+temporaryInfix+"*"))
		require.NoError(t, err)
		cut += len(left)
		made, err := filepath.Glob(filepath.Join(dir, "*.db"))
		require.NoError(t, err)
		require.NotEmpty(t, made)
		for _, path := range made[max(0, len(made)-3):] {
			requireSound(t, path)
		}
		for _, name := range left {
			path, _, _ := strings.Cut(name, temporaryInfix)
			requireSound(t, path)
			require.NoFileExists(t, name)
		}
	}
	require.Positive(t, cut, "no kill hit a creation")
}

// TestCreateRace injects the race of several openers that all find nothing:
// there must be one store, and everything acknowledged must be in it.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	for range 10 {
		path := faultPath(t)
		var openers sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			openers.Go(func() {
				s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: 30 * time.Second})
				if err != nil {
					t.Errorf("opener %d: %v", i, err)
					return
				}
				ids[i] = fmt.Sprintf("%x", s.file.id)
				if _, err := s.Create(t.Context(), completed(fmt.Sprint(i), "v")); err != nil {
					t.Errorf("opener %d: %v", i, err)
				}
				if err := s.Close(); err != nil {
					t.Errorf("opener %d: %v", i, err)
				}
			})
		}
		openers.Wait()
		s := openFault(t, path, BoltConfig{})
		for i, id := range ids {
			require.Equal(t, fmt.Sprintf("%x", s.file.id), id)
			_, err := s.Get(t.Context(), faultKey(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		names, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, names, 1)
	}
}
