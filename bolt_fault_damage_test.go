package idem

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/require"
)

// TestFlippedByte flips each byte of each stored record in the file, one at a
// time. The record must be ErrCorrupt (or ErrFormat where its format byte was
// hit) for every method, never replayed, never absent, never overwritten; its
// neighbours must be served and Check must find it.
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	const records = 3
	path := faultFile(t, records, 60)
	encoded := encodedRecords(t, path)
	require.Len(t, encoded, records)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for key, enc := range encoded {
		t.Run(key[len(faultScope)+1:], func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			require.Equal(t, 1, bytes.Count(whole, enc))
			at := bytes.Index(whole, enc)
			for i := range enc {
				damagedFile := bytes.Clone(whole)
				damagedFile[at+i] ^= byte(1 + i%255)
				require.NoError(t, os.WriteFile(path, damagedFile, 0o600))
				want := ErrCorrupt
				if i == 0 {
					want = ErrFormat
				}
				requireDamaged(t, path, key, want, records)
			}
		})
	}
}

// encodedRecords reads the stored form of all records of a file.
func encodedRecords(t *testing.T, path string) map[string][]byte {
	t.Helper()
	encoded := make(map[string][]byte)
	inFile(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket(bucketRecords).ForEach(func(k, v []byte) error {
			encoded[string(k)] = bytes.Clone(v)
			return nil
		})
	})
	return encoded
}

// inFile changes or reads a closed store behind its back.
func inFile(t *testing.T, path string, fn func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

// requireDamaged requires that the one record of key is refused with want, and
// that the others are served.
func requireDamaged(t *testing.T, path, key string, want error, records int) {
	t.Helper()
	s := openFault(t, path, BoltConfig{})
	bad, err := ParseKey(key)
	require.NoError(t, err)
	for range 2 { // the second time after everything else was tried
		_, err = s.Get(t.Context(), bad)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, key)
		_, err = s.Create(t.Context(), completed(bad.ID, "over it"))
		require.ErrorIs(t, err, want)
		_, err = s.Swap(t.Context(), 1, completed(bad.ID, "over it"))
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, s.Delete(t.Context(), bad, 1), want)
	}
	seen := 0
	for rec, err := range s.Scan(t.Context(), Query{}) {
		seen++
		if rec.Key == bad {
			require.ErrorIs(t, err, want)
			continue
		}
		require.NoError(t, err)
		got, err := s.Get(t.Context(), rec.Key)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	}
	require.Equal(t, records, seen)
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Positive(t, report.Problems)
	require.Equal(t, Finding{CheckRecords, key, report.Findings[0].Detail}, report.Findings[0])
	require.NoError(t, s.Close())
}

// TestDamagedRecordAndJanitor damages the oldest of several expired records: it
// must stay, be reported, and not keep the janitor from removing the others.
func TestDamagedRecordAndJanitor(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{})
	for i := range 20 {
		rec := completed(fmt.Sprintf("k%02d", i), "v")
		rec.ExpiresAt = rec.CreatedAt.Add(time.Duration(i) * time.Microsecond)
		_, err := s.Create(t.Context(), rec)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	damage(t, path, "k00", func(enc []byte) []byte { enc[len(enc)-1] ^= 1; return enc })

	s = openFault(t, path, BoltConfig{Grace: -1})
	removed, rounds := 0, 0
	var err error
	for err == nil {
		var n int
		n, err = s.Expire(t.Context(), 5)
		removed += n
		rounds++
		require.Less(t, rounds, 20)
	}
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "k00")
	require.Equal(t, 19, removed)
	_, err = s.Get(t.Context(), faultKey("k00"))
	require.ErrorIs(t, err, ErrCorrupt)
}

// damage changes one stored record behind the store's back.
func damage(t *testing.T, path, id string, change func(enc []byte) []byte) {
	t.Helper()
	inFile(t, path, func(tx *bolt.Tx) error {
		key := []byte(faultKey(id).String())
		records := tx.Bucket(bucketRecords)
		return records.Put(key, change(bytes.Clone(records.Get(key))))
	})
}

// TestUnknownRecordFormat stores what a later build might: another format and
// flags that this one does not know. Such a record must be ErrFormat and stay
// byte for byte as it is.
func TestUnknownRecordFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(enc []byte)
	}{
		{"format 9", func(enc []byte) { enc[0] = 9 }},
		{"flag 0x80", func(enc []byte) { enc[2] |= 0x80 }},
		{"reserved byte", func(enc []byte) { enc[3] = 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultFile(t, 3, 50)
			key := faultKey("k1").String()
			damage(t, path, "k1", func(enc []byte) []byte {
				tt.change(enc)
				binary.BigEndian.PutUint32(enc[4:], recordSum([]byte(key), enc)) // as its own build would
				return enc
			})
			want := encodedRecords(t, path)[key]
			requireDamaged(t, path, key, ErrFormat, 3)
			require.Equal(t, want, encodedRecords(t, path)[key], "it was rewritten")
		})
	}
}

// TestUnknownFileFormat stores the mark of a later build of the whole file.
func TestUnknownFileFormat(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 1, 50)
	inFile(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(metaFormat, binary.BigEndian.AppendUint32(nil, fileFormat+1))
	})
	same := untouched(t, path)
	for _, c := range []BoltConfig{{}, {ReadOnly: true}, {Visitor: true}} {
		_, err := OpenBoltStore(t.Context(), path, c)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, path)
		same()
	}
}

// TestBothMetaPagesDamaged damages both of bbolt's header pages in several ways.
// Opening must be ErrCorrupt and leave the file as it is. With one page intact
// the file must open.
func TestBothMetaPagesDamaged(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	tests := []struct {
		name   string
		damage func(meta []byte)
	}{
		{"checksum", func(meta []byte) { meta[16+56] ^= 1 }},
		{"zeroed", func(meta []byte) { clear(meta) }},
		{"garbage", func(meta []byte) { copy(meta, bytes.Repeat([]byte{0xA5}, len(meta))) }},
		{"magic", func(meta []byte) { meta[16] ^= 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultFile(t, 10, 1000)
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			tt.damage(whole[:page])
			require.NoError(t, os.WriteFile(path, whole, 0o600))
			require.NoError(t, openFault(t, path, BoltConfig{ReadOnly: true}).Close(), "one page is intact")

			tt.damage(whole[page : 2*page])
			require.NoError(t, os.WriteFile(path, whole, 0o600))
			same := untouched(t, path)
			for _, c := range []BoltConfig{{}, {ReadOnly: true}, {Visitor: true}} {
				_, err := OpenBoltStore(t.Context(), path, c)
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, path)
				same()
			}
		})
	}
}
