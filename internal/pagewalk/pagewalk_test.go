package pagewalk_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem/internal/pagewalk"
)

// image makes a bbolt file with branches, overflow pages, nested, inline and
// empty buckets, and free pages.
func image(t testing.TB, freelist bool) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: !freelist, NoSync: true})
	require.NoError(t, err)
	for round := range 4 {
		require.NoError(t, db.Update(func(tx *bolt.Tx) error {
			for _, name := range []string{"large", "small", "empty"} {
				_, err := tx.CreateBucketIfNotExists([]byte(name))
				require.NoError(t, err)
			}
			for i := range 300 {
				require.NoError(t, tx.Bucket([]byte("large")).Put(fmt.Appendf(nil, "%d-%d", i, round), make([]byte, 100)))
			}
			require.NoError(t, tx.Bucket([]byte("large")).Put([]byte("huge"), make([]byte, 10_000*(round+1))))
			nested, err := tx.Bucket([]byte("large")).CreateBucketIfNotExists([]byte("nested"))
			require.NoError(t, err)
			require.NoError(t, nested.Put([]byte("k"), make([]byte, 2000)))
			return tx.Bucket([]byte("small")).Put([]byte("k"), []byte("v"))
		}))
	}
	require.NoError(t, db.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func walk(t testing.TB, data []byte) []pagewalk.Problem {
	t.Helper()
	r := bytes.NewReader(data)
	m, err := pagewalk.ReadMeta(r, math.MaxUint64)
	require.NoError(t, err)
	var problems []pagewalk.Problem
	_, err = pagewalk.Walk(r, r.Size(), m, func(p pagewalk.Problem) bool {
		problems = append(problems, p)
		return len(problems) < 100
	})
	require.NoError(t, err)
	return problems
}

func TestSoundFilesHaveNoProblems(t *testing.T) {
	t.Parallel()
	for _, freelist := range []bool{true, false} {
		data := image(t, freelist)
		require.Empty(t, walk(t, data))
		m, err := pagewalk.ReadMeta(bytes.NewReader(data), math.MaxUint64)
		require.NoError(t, err)
		require.Equal(t, freelist, m.HasFreelist())
		older, err := pagewalk.ReadMeta(bytes.NewReader(data), m.TxID-1)
		require.NoError(t, err)
		require.Equal(t, m.TxID-1, older.TxID)
		_, err = pagewalk.ReadMeta(bytes.NewReader(data), m.TxID-2)
		require.ErrorIs(t, err, pagewalk.ErrNoMeta)

		copy(data[16:], make([]byte, 64)) // the first header page
		second, err := pagewalk.ReadMeta(bytes.NewReader(data), math.MaxUint64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, second.TxID, m.TxID-1)
	}
}

// Every page in use is damaged in turn: zeroed, filled, given another's number,
// made its own child, cut off. What bbolt would stumble over must be found.
func TestDamagedPagesAreFound(t *testing.T) {
	t.Parallel()
	sound := image(t, true)
	m, err := pagewalk.ReadMeta(bytes.NewReader(sound), math.MaxUint64)
	require.NoError(t, err)
	reached := make(map[uint64]bool)
	for id := uint64(2); id < m.Pages; id++ {
		data := bytes.Clone(sound)
		page := data[int64(id)*m.PageSize:][:m.PageSize]
		clear(page)
		if problems := walk(t, data); len(problems) > 0 {
			reached[id] = true
		}
		data = bytes.Clone(sound)
		copy(data[int64(id)*m.PageSize:], bytes.Repeat([]byte{0xFF}, int(m.PageSize)))
		require.Equal(t, reached[id], len(walk(t, data)) > 0, "page %d filled", id)
		if reached[id] {
			require.NotEmpty(t, walk(t, sound[:int64(id)*m.PageSize+8]), "cut at page %d", id)
		}
	}
	require.Greater(t, len(reached), 20)

	circle := bytes.Clone(sound)
	root := circle[int64(m.Root)*m.PageSize:]
	for i := range 3 { // the buckets of the root
		require.NotEmpty(t, root)
		element := root[16+16*i:]
		position, keySize := le(element[4:]), le(element[8:])
		value := element[position+keySize:]
		if value[0] != 0 {
			copy(value, []byte{byte(m.Root), 0, 0, 0, 0, 0, 0, 0})
		}
	}
	require.NotEmpty(t, walk(t, circle))
}

func le(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24 }

func TestRandomDamageEndsTheWalk(t *testing.T) {
	t.Parallel()
	sound := image(t, true)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		data := bytes.Clone(sound)
		for range 1 + random.IntN(8) {
			data[8192+random.IntN(len(data)-8192)] ^= byte(1 << random.IntN(8))
		}
		walk(t, data[:8192+random.IntN(len(data)-8192)])
	}
}

func FuzzWalk(f *testing.F) {
	f.Add(image(f, true))
	f.Add(image(f, false)[:32<<10])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		m, err := pagewalk.ReadMeta(r, math.MaxUint64)
		if err != nil {
			return
		}
		n := 0
		_, _ = pagewalk.Walk(r, r.Size(), m, func(pagewalk.Problem) bool {
			n++
			return n < 1000
		})
	})
}
