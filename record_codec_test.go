package idem

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sampleRecord has something in every stored field.
func sampleRecord() Record {
	at := time.Date(2026, 11, 30, 12, 34, 56, 789_123_000, time.UTC)
	return Record{
		Key: Key{Scope: "charge", ID: "order/1 é"}, State: Failed, Version: 1<<40 + 7,
		Fingerprint: Fingerprint{version: fingerprintV1, parts: []partSum{{"amount", [16]byte{1, 2, 3}}, {"id", [16]byte{0xff}}}},
		Kind:        "func", Owner: "r:00112233#4455", Attempt: 3, TraceID: "4bf92f35",
		CreatedAt: at, StartedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Minute),
		LeaseUntil: at.Add(time.Hour), ExpiresAt: at.Add(24 * time.Hour),
		Value: []byte(`{"ok":true}`), ValueOmitted: 17, Error: "declined", Note: "checked by hand",
	}
}

func textOf(r Record) []byte { return []byte(r.Key.String()) }

func TestRecordFormatIsStable(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/record-v1.hex")
	require.NoError(t, err)
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(golden)), ""))
	require.NoError(t, err)
	rec := sampleRecord()
	require.Equal(t, hex.Dump(want), hex.Dump(encodeRecord(textOf(rec), &rec)))
	got, err := decodeRecord(textOf(rec), want, true)
	require.NoError(t, err)
	rec.Size = len(want)
	require.Equal(t, rec, got)
}

func anyRecord() *rapid.Generator[Record] {
	text := func(limit int) *rapid.Generator[string] { return rapid.StringN(0, -1, limit) }
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		return fromMicros(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-1<<52, 1<<56)).Draw(t, "microseconds"))
	})
	set := rapid.Custom(func(t *rapid.T) time.Time {
		return fromMicros(rapid.Int64Range(1, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()).Draw(t, "microseconds"))
	})
	part := rapid.Custom(func(t *rapid.T) partSum {
		return partSum{text(maxPartNameBytes).Draw(t, "name"), [partSumBytes]byte(rapid.SliceOfN(rapid.Byte(), partSumBytes, partSumBytes).Draw(t, "sum"))}
	})
	return rapid.Custom(func(t *rapid.T) Record {
		r := Record{
			Key: Key{
				Scope: rapid.StringMatching(`[a-zA-Z0-9._:@-]{1,128}`).Draw(t, "scope"),
				ID:    rapid.StringMatching(`[a-z/ é鍵]{1,60}`).Draw(t, "id"),
			},
			State: rapid.SampledFrom(States()).Draw(t, "state"), Version: rapid.Uint64().Draw(t, "version"),
			Kind: text(maxKindBytes).Draw(t, "kind"), Owner: text(maxOwnerBytes).Draw(t, "owner"),
			Attempt: rapid.IntRange(0, 1<<31-1).Draw(t, "attempt"), TraceID: text(maxTraceBytes).Draw(t, "trace"),
			CreatedAt: moment.Draw(t, "created"), StartedAt: moment.Draw(t, "started"), UpdatedAt: moment.Draw(t, "updated"),
			LeaseUntil: set.Draw(t, "lease"), ExpiresAt: set.Draw(t, "expires"),
			Value:        rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOf(rapid.Byte())).Draw(t, "value"),
			ValueOmitted: rapid.Int64Min(0).Draw(t, "omitted"),
			Error:        text(maxErrorBytes).Draw(t, "error"), Note: text(maxNoteBytes).Draw(t, "note"),
		}
		if r.State != Processing {
			r.LeaseUntil = rapid.OneOf(rapid.Just(time.Time{}), set).Draw(t, "any lease")
		}
		r.Resume = r.State == Interrupted && rapid.Bool().Draw(t, "resume")
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			step := StepResult{Name: text(MaxStepNameBytes).Draw(t, "step"), Value: rapid.SliceOf(rapid.Byte()).Draw(t, "result")}
			r.Steps = append(r.Steps, step)
		}
		if parts := rapid.SliceOfN(part, 0, maxParts).Draw(t, "parts"); len(parts) > 0 {
			r.Fingerprint = Fingerprint{version: fingerprintV1, parts: parts}
		}
		return r
	})
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rec := anyRecord().Draw(t, "record")
		enc := encodeRecord(textOf(rec), &rec)
		before := bytes.Clone(enc)
		rec.Size = len(enc)

		got, err := decodeRecord(textOf(rec), enc, true)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		for i := range got.Value {
			got.Value[i]++
		}
		require.Equal(t, before, enc, "the record shares no memory with its stored form")

		listed, err := decodeRecord(textOf(rec), enc, false)
		require.NoError(t, err)
		rec.Value = nil
		require.Equal(t, rec, listed)
	})
}

func TestDamagedRecordIsNeverRead(t *testing.T) {
	t.Parallel()
	rec := sampleRecord()
	key, enc := textOf(rec), encodeRecord(textOf(rec), &rec)
	refused := func(key, enc []byte, how string, i int) {
		t.Helper()
		got, err := decodeRecord(key, enc, true)
		require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFormat), "%s %d: %v", how, i, err)
		require.Equal(t, Record{}, got, "%s %d", how, i)
	}
	for bit := range len(enc) * 8 {
		flipped := bytes.Clone(enc)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused(key, flipped, "bit", bit)
	}
	for n := range enc {
		refused(key, enc[:n], "cut to", n)
	}
	refused(key, append(bytes.Clone(enc), 0), "longer by", 1)
	for bit := range len(key) * 8 {
		other := bytes.Clone(key)
		other[bit/8] ^= 1 << (bit % 8)
		refused(other, enc, "key bit", bit)
	}
	refused(nil, enc, "key of", 0)
}

// Even with a checksum that fits, what encodeRecord cannot have written is refused.
func TestRecordWithAValidChecksumIsChecked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(enc []byte) []byte
		want   error
	}{
		{"format of a later build", func(b []byte) []byte { b[0] = 2; return b }, ErrFormat},
		{"unknown flag", func(b []byte) []byte { b[2] |= 8; return b }, ErrFormat},
		{"steps that are not there", func(b []byte) []byte { b[2] |= flagSteps; return b }, ErrCorrupt},
		{"to be resumed though completed", func(b []byte) []byte { b[2] |= flagResume; return b }, ErrCorrupt},
		{"reserved byte", func(b []byte) []byte { b[3] = 1; return b }, ErrFormat},
		{"no state", func(b []byte) []byte { b[1] = 0; return b }, ErrCorrupt},
		{"state of nothing", func(b []byte) []byte { b[1] = 5; return b }, ErrCorrupt},
		{"no expiry", func(b []byte) []byte { clear(b[16:24]); return b }, ErrCorrupt},
		{"processing without a lease", func(b []byte) []byte { b[1] = byte(Processing); clear(b[24:32]); return b }, ErrCorrupt},
		{"last field cut", func(b []byte) []byte { return b[:len(b)-1] }, ErrCorrupt},
		{"trailing byte", func(b []byte) []byte { return append(b, 0) }, ErrCorrupt},
		{"header only", func(b []byte) []byte { return b[:recordHeaderSize] }, ErrCorrupt},
		{"fingerprint of a later build", func(b []byte) []byte {
			i := bytes.Index(b, []byte("amount"))
			b[i-2] = fingerprintV1 + 1
			return b
		}, ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rec := sampleRecord()
			enc := tt.change(encodeRecord(textOf(rec), &rec))
			binary.BigEndian.PutUint32(enc[4:], recordSum(textOf(rec), enc))
			_, err := decodeRecord(textOf(rec), enc, true)
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// FuzzDecodeRecord gives damaged bytes a checksum that fits, or the fuzzer would
// never get beyond it.
func FuzzDecodeRecord(f *testing.F) {
	rec := sampleRecord()
	f.Add(textOf(rec), encodeRecord(textOf(rec), &rec))
	small := Record{Key: Key{Scope: "s", ID: "i"}, State: Completed, ExpiresAt: rec.ExpiresAt}
	f.Add(textOf(small), encodeRecord(textOf(small), &small))
	f.Fuzz(func(t *testing.T, key, enc []byte) {
		if _, err := decodeRecord(key, enc, true); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
			t.Fatalf("decodeRecord: %v", err)
		}
		if len(enc) < recordHeaderSize {
			return
		}
		enc = bytes.Clone(enc)
		binary.BigEndian.PutUint32(enc[4:], recordSum(key, enc))
		got, err := decodeRecord(key, enc, true)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
				t.Fatalf("decodeRecord: %v", err)
			}
			return
		}
		again := encodeRecord(key, &got)
		back, err := decodeRecord(key, again, true)
		require.NoError(t, err)
		got.Size = len(again) // integers may have been spelled longer
		require.Equal(t, got, back)
	})
}
