package idem

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// The stored form of a record, format 1. Integers are big-endian, "varint" is
// encoding/binary's, "text" is a uvarint length and that many bytes.
//
//	 0  1  format: 1
//	 1  1  state
//	 2  1  flags: bit 0, the value is not nil; bit 1, there are steps; bit 2, Resume
//	 3  1  0
//	 4  4  CRC-32C of the key's text form and of every byte here but these four
//	 8  8  version
//	16  8  ExpiresAt in microseconds since 1970 UTC
//	24  8  LeaseUntil, 0 for none
//	32     varint CreatedAt, StartedAt, UpdatedAt; uvarint Attempt, ValueOmitted
//	       text Kind, Owner, TraceID, Error, Note
//	       uvarint number of fingerprint parts; if not 0: 1 byte version, then
//	       per part text name and 16 bytes sum
//	       if there are steps: uvarint their number, per step text name and value
//	       uvarint value length, value, end of record
//
// bbolt has no checksum over values, so the record carries its own. It covers
// the key too: a record that ended up under another key is damaged.
const (
	recordFormat     = 1
	recordHeaderSize = 32
	flagValue        = 1
	flagSteps        = 2
	flagResume       = 4
)

// recordSum is the checksum over the key and both sides of the checksum's own four bytes.
func recordSum(key []byte, enc []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Checksum(key, table)
	sum = crc32.Update(sum, table, enc[:4])
	return crc32.Update(sum, table, enc[8:])
}

// MarshalRecord returns the stored form of a record, for stores outside of this
// package. The key is not in it, but is checked on reading. The form is
// described in docs/format.md. It returns the error of Record.Validate.
func MarshalRecord(rec Record) ([]byte, error) {
	if err := rec.Validate(); err != nil {
		return nil, err
	}
	return encodeRecord([]byte(rec.Key.String()), &rec), nil
}

// UnmarshalRecord reads what MarshalRecord has made of the record of key. It
// returns an error that matches ErrCorrupt for bytes that it cannot have made,
// ErrFormat for those of a later build.
func UnmarshalRecord(key Key, data []byte) (Record, error) {
	return decodeRecord([]byte(key.String()), data, true)
}

// encodeRecord returns the stored form of a valid record.
func encodeRecord(key []byte, r *Record) []byte {
	b := make([]byte, recordHeaderSize, recordHeaderSize+128+len(r.Kind)+len(r.Owner)+len(r.TraceID)+
		len(r.Error)+len(r.Note)+40*len(r.Fingerprint.parts)+len(r.Value))
	b[0], b[1] = recordFormat, byte(r.State)
	if r.Value != nil {
		b[2] |= flagValue
	}
	if r.Resume {
		b[2] |= flagResume
	}
	binary.BigEndian.PutUint64(b[8:], r.Version)
	binary.BigEndian.PutUint64(b[16:], uint64(toMicros(r.ExpiresAt)))
	binary.BigEndian.PutUint64(b[24:], uint64(toMicros(r.LeaseUntil)))
	for _, t := range []time.Time{r.CreatedAt, r.StartedAt, r.UpdatedAt} {
		b = binary.AppendVarint(b, toMicros(t))
	}
	b = binary.AppendUvarint(b, uint64(r.Attempt))
	b = binary.AppendUvarint(b, uint64(r.ValueOmitted))
	for _, s := range []string{r.Kind, r.Owner, r.TraceID, r.Error, r.Note} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Fingerprint.parts)))
	if len(r.Fingerprint.parts) > 0 {
		b = append(b, r.Fingerprint.version)
		for _, p := range r.Fingerprint.parts {
			b = appendText(b, p.name)
			b = append(b, p.sum[:]...)
		}
	}
	if len(r.Steps) > 0 {
		b[2] |= flagSteps
		b = binary.AppendUvarint(b, uint64(len(r.Steps)))
		for _, s := range r.Steps {
			b = appendText(b, s.Name)
			b = appendText(b, s.Value)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.Value)))
	b = append(b, r.Value...)
	binary.BigEndian.PutUint32(b[4:], recordSum(key, b))
	return b
}

// decodeRecord reads the stored form under the key's text form. It copies: the
// record shares no memory with enc. It returns ErrFormat for a format of another
// build and ErrCorrupt for anything that encodeRecord cannot have written.
func decodeRecord(key, enc []byte, withValue bool) (Record, error) {
	if len(enc) < recordHeaderSize {
		return Record{}, damaged(key, "it is cut short")
	}
	if enc[0] != recordFormat {
		return Record{}, fmt.Errorf("%w: record of %q has format %d, this build knows %d", ErrFormat, key, enc[0], recordFormat)
	}
	if binary.BigEndian.Uint32(enc[4:]) != recordSum(key, enc) {
		return Record{}, damaged(key, "its checksum does not match")
	}
	if enc[2]&^(flagValue|flagSteps|flagResume) != 0 || enc[3] != 0 {
		return Record{}, fmt.Errorf("%w: record of %q has unknown flags", ErrFormat, key)
	}
	k, err := ParseKey(string(key))
	if err != nil {
		return Record{}, damaged(key, "its key is not valid")
	}
	r := Record{
		Key: k, State: State(enc[1]), Version: binary.BigEndian.Uint64(enc[8:]),
		ExpiresAt:  fromMicros(int64(binary.BigEndian.Uint64(enc[16:]))),
		LeaseUntil: fromMicros(int64(binary.BigEndian.Uint64(enc[24:]))),
		Size:       len(enc),
		Resume:     enc[2]&flagResume != 0,
	}
	d := decoder{rest: enc[recordHeaderSize:]}
	for _, t := range []*time.Time{&r.CreatedAt, &r.StartedAt, &r.UpdatedAt} {
		*t = fromMicros(d.varint())
	}
	r.Attempt = int(d.uvarint())
	r.ValueOmitted = int64(d.uvarint())
	for _, s := range []*string{&r.Kind, &r.Owner, &r.TraceID, &r.Error, &r.Note} {
		*s = string(d.bytes(d.uvarint()))
	}
	if err := d.fingerprint(key, &r.Fingerprint); err != nil {
		return Record{}, err
	}
	if enc[2]&flagSteps != 0 {
		r.Steps = d.steps()
	}
	value := d.bytes(d.uvarint())
	if withValue && enc[2]&flagValue != 0 {
		r.Value = append([]byte{}, value...)
	}
	if d.failed || len(d.rest) != 0 {
		return Record{}, damaged(key, "its fields do not add up")
	}
	if err := r.Validate(); err != nil {
		return Record{}, damaged(key, err.Error())
	}
	return r, nil
}

func (d *decoder) fingerprint(key []byte, fp *Fingerprint) error {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	version := d.bytes(1)
	if len(version) == 1 && version[0] != fingerprintV1 {
		return fmt.Errorf("%w: record of %q has fingerprint version %d", ErrFormat, key, version[0])
	}
	if n > maxParts {
		d.failed = true
		return nil
	}
	fp.version, fp.parts = fingerprintV1, make([]partSum, n)
	for i := range fp.parts {
		fp.parts[i].name = string(d.bytes(d.uvarint()))
		copy(fp.parts[i].sum[:], d.bytes(partSumBytes))
	}
	return nil
}

func (d *decoder) steps() []StepResult {
	n := d.uvarint()
	if n == 0 || n > MaxSteps {
		d.failed = true
		return nil
	}
	steps := make([]StepResult, n)
	for i := range steps {
		steps[i].Name = string(d.bytes(d.uvarint()))
		steps[i].Value = append([]byte{}, d.bytes(d.uvarint())...)
	}
	return steps
}

func damaged(key []byte, how string) error {
	return fmt.Errorf("%w: record of %q: %s", ErrCorrupt, key, how)
}

// decoder takes fields off the front of rest. After the first field that does
// not fit it has failed and yields zero values.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) take(n int) {
	if n <= 0 {
		d.failed, d.rest = true, nil
		return
	}
	d.rest = d.rest[n:]
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	d.take(n)
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.take(n)
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// toMicros maps the zero time to 0, which no record uses otherwise.
func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
