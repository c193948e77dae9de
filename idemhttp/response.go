package idemhttp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
)

// Omission says why the body of a stored response is missing.
type Omission uint8

// The reasons for which a body is not kept.
const (
	// Kept: the body is there.
	Kept Omission = iota
	// TooLarge: it was longer than MaxStored, or than MaxResponse if that is not,
	// or could not be stored.
	TooLarge
	// Streamed: the handler flushed, so it was sent before it was complete.
	Streamed
	// Hijacked: the handler took the connection over.
	Hijacked
	// Withheld: StoreBody(Never) was set.
	Withheld
	// InChunks: it was longer than MaxResponse and is in records of its own.
	InChunks
)

// Response is what a record holds of a response: all that a repeat needs. Its
// binary form is the value of the record. A ReconcileFunc that knows what the
// first call should have answered returns that form:
//
//	value, err := idemhttp.Response{Status: 201, Body: body}.MarshalBinary()
//	…
//	return idem.Done(value), nil
type Response struct {
	// Status is the status code, 100 to 999.
	Status int
	// Header holds the headers to repeat, by canonical name. A name without
	// values keeps net/http from adding that header by itself.
	Header http.Header
	// Body is the body as it was sent; nil where Omitted is not Kept.
	Body []byte
	// Omitted says why there is no body. The zero value means that there is one.
	Omitted Omission
	// Length is the number of body bytes sent where Omitted is not Kept; 0 for
	// a hijacked connection.
	Length int64
	// SHA256 is the hash of those bytes. It is zero for a hijacked connection,
	// and for a withheld body, which could be guessed from it.
	SHA256 [32]byte
	// Chunks is the number of records that hold the body, and ChunkSet what their
	// keys have in common, if Omitted is InChunks.
	Chunks   int
	ChunkSet uint64
}

const (
	responseV1    = 1
	checksumBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errNotAResponse is returned for bytes that MarshalBinary has not written.
var errNotAResponse = errors.New("not a stored response")

// MarshalBinary encodes r: a format version, the fields, and a CRC-32C over all
// of it. It returns an error for a status outside of 100 to 999 and for an
// Omission it does not know.
func (r Response) MarshalBinary() ([]byte, error) {
	if r.Status < 100 || r.Status > 999 {
		return nil, fmt.Errorf("status %d is not between 100 and 999", r.Status)
	}
	if r.Omitted > InChunks {
		return nil, fmt.Errorf("unknown omission %d", r.Omitted)
	}
	b := make([]byte, 0, 64+r.headerBytes()+len(r.Body))
	b = append(b, responseV1, byte(r.Omitted))
	b = binary.BigEndian.AppendUint16(b, uint16(r.Status))
	b = binary.AppendUvarint(b, uint64(len(r.Header)))
	for _, name := range sortedNames(r.Header) {
		b = appendText(b, name)
		b = binary.AppendUvarint(b, uint64(len(r.Header[name])))
		for _, value := range r.Header[name] {
			b = appendText(b, value)
		}
	}
	if r.Omitted == Kept {
		b = appendText(b, r.Body)
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Length))
		b = append(b, r.SHA256[:]...)
	}
	if r.Omitted == InChunks {
		b = binary.BigEndian.AppendUint32(b, uint32(r.Chunks))
		b = binary.BigEndian.AppendUint64(b, r.ChunkSet)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func (r *Response) headerBytes() int {
	n := 0
	for name, values := range r.Header {
		n += len(name) + 8
		for _, v := range values {
			n += len(v) + 4
		}
	}
	return n
}

func appendText[T string | []byte](b []byte, text T) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// UnmarshalBinary reads what MarshalBinary wrote. Body shares the memory of
// data. It refuses anything that is damaged, written in another format, or
// longer or spelled otherwise than MarshalBinary would write it.
func (r *Response) UnmarshalBinary(data []byte) error {
	if len(data) < 2+checksumBytes {
		return fmt.Errorf("%w: it has only %d bytes", errNotAResponse, len(data))
	}
	if data[0] != responseV1 {
		return fmt.Errorf("%w: it has format %d, this build knows %d", errNotAResponse, data[0], responseV1)
	}
	body, sum := data[:len(data)-checksumBytes], binary.BigEndian.Uint32(data[len(data)-checksumBytes:])
	if crc32.Checksum(body, castagnoli) != sum {
		return fmt.Errorf("%w: its checksum is wrong", errNotAResponse)
	}
	d := decoder{rest: body[1:]}
	decoded := d.response()
	if d.bad || len(d.rest) > 0 {
		return fmt.Errorf("%w: its fields do not add up", errNotAResponse)
	}
	*r = decoded
	return nil
}

// decoder takes fields off the front of rest. After the first bad one it
// returns zero values.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) response() Response {
	r := Response{Omitted: Omission(d.take(1)[0])}
	r.Status = int(binary.BigEndian.Uint16(d.take(2)))
	r.Header = d.header()
	if r.Omitted == Kept {
		r.Body = d.text()
	} else {
		r.Length = int64(binary.BigEndian.Uint64(d.take(8)))
		copy(r.SHA256[:], d.take(32))
	}
	if r.Omitted == InChunks {
		r.Chunks = int(binary.BigEndian.Uint32(d.take(4)))
		r.ChunkSet = binary.BigEndian.Uint64(d.take(8))
	}
	d.bad = d.bad || r.Omitted > InChunks || r.Status < 100 || r.Status > 999 || r.Length < 0 || r.Chunks < 0
	return r
}

func (d *decoder) header() http.Header {
	n := d.count(2)
	h := make(http.Header, n)
	last := ""
	for range n {
		name := string(d.text())
		d.bad = d.bad || name <= last // names are sorted and unique
		last = name
		values := make([]string, d.count(1))
		for i := range values {
			values[i] = string(d.text())
		}
		h[name] = values
	}
	return h
}

// take returns the next n bytes, or n zero bytes if there are fewer. The
// callers' n is small or checked against rest.
func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.rest) {
		d.bad = true
		return make([]byte, n)
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

// count reads a number of items that take at least size bytes each, so that a
// forged number cannot ask for much memory.
func (d *decoder) count(size int) int {
	n, used := binary.Uvarint(d.rest)
	if d.bad || used <= 0 || used > 1 && d.rest[used-1] == 0 || n > uint64(len(d.rest)-used)/uint64(size) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[used:]
	return int(n)
}

func (d *decoder) text() []byte { return d.take(d.count(1)) }
