package idemhttp

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestResponseRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.String(), 0, 3)
		r := Response{
			Status:  rapid.IntRange(100, 999).Draw(t, "status"),
			Header:  rapid.MapOfN(rapid.StringN(1, 20, -1), values, 0, 5).Draw(t, "header"),
			Omitted: Omission(rapid.IntRange(0, int(InChunks)).Draw(t, "omitted")),
		}
		if r.Omitted == Kept {
			r.Body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		} else {
			r.Length = rapid.Int64Min(0).Draw(t, "length")
			copy(r.SHA256[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sum"))
		}
		if r.Omitted == InChunks {
			r.Chunks = rapid.IntRange(0, 1<<31-1).Draw(t, "chunks")
			r.ChunkSet = rapid.Uint64().Draw(t, "set")
		}
		data, err := r.MarshalBinary()
		require.NoError(t, err)
		var got Response
		require.NoError(t, got.UnmarshalBinary(data))
		require.Equal(t, r, got)
	})
}

func TestResponseRefusesToMarshal(t *testing.T) {
	t.Parallel()
	for _, r := range []Response{{}, {Status: 99}, {Status: 1000}, {Status: 200, Omitted: InChunks + 1}} {
		_, err := r.MarshalBinary()
		require.Error(t, err, "%+v", r)
	}
}

func TestResponseRefusesDamage(t *testing.T) {
	t.Parallel()
	data, err := Response{Status: 201, Header: http.Header{"Location": {"/a"}}, Body: []byte("done")}.MarshalBinary()
	require.NoError(t, err)
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		require.ErrorIs(t, new(Response).UnmarshalBinary(damaged), errNotAResponse, "byte %d", i)
		require.ErrorIs(t, new(Response).UnmarshalBinary(data[:i]), errNotAResponse, "cut at %d", i)
	}
	newer := bytes.Clone(data)
	newer[0] = responseV1 + 1
	require.ErrorContains(t, new(Response).UnmarshalBinary(newer), "format 2")
}

// TestResponseRefusesForgeries has correct checksums over fields that do not add
// up.
func TestResponseRefusesForgeries(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields string }{
		{"no fields", "\x01\x00"},
		{"status 0", "\x01\x00\x00\x00\x00\x00"},
		{"unknown omission", "\x01\x05\x00\xc8\x00" + strings.Repeat("\x00", 40)},
		{"negative length", "\x01\x01\x00\xc8\x00\xff" + strings.Repeat("\x00", 39)},
		{"more headers than bytes", "\x01\x00\x00\xc8\xff\xff\xff\xff\x0f"},
		{"body longer than the rest", "\x01\x00\x00\xc8\x00\x05a"},
		{"something after the body", "\x01\x00\x00\xc8\x00\x00x"},
		{"number written too long", "\x01\x00\x00\xc8\x80\x00\x00"},
		{"number too large", "\x01\x00\x00\xc8\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{"headers out of order", "\x01\x00\x00\xc8\x02\x01B\x00\x01A\x00\x00"},
		{"header twice", "\x01\x00\x00\xc8\x02\x01A\x00\x01A\x00\x00"},
		{"header without a name", "\x01\x00\x00\xc8\x01\x00\x00\x00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, new(Response).UnmarshalBinary(withChecksum([]byte(tt.fields))), errNotAResponse)
		})
	}
}

func withChecksum(fields []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(fields), crc32.Checksum(fields, castagnoli))
}

// FuzzResponse: whatever decodes is encoded to the same bytes again. The
// checksum is put right, so that the fields behind it are reached.
func FuzzResponse(f *testing.F) {
	for _, r := range []Response{
		{Status: 204},
		{Status: 201, Header: http.Header{"Location": {"/a"}, "Vary": {"a", "b"}, "Content-Type": {}}, Body: []byte("done")},
		{Status: 200, Omitted: Streamed, Length: 12, SHA256: [32]byte{1}},
		{Status: 200, Omitted: InChunks, Length: 1 << 20, SHA256: [32]byte{1}, Chunks: 4, ChunkSet: 7},
	} {
		data, err := r.MarshalBinary()
		require.NoError(f, err)
		f.Add(data[:len(data)-checksumBytes])
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		data := withChecksum(fields)
		var r Response
		if err := r.UnmarshalBinary(data); err != nil {
			require.ErrorIs(t, err, errNotAResponse)
			return
		}
		again, err := r.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, data, again)
	})
}
