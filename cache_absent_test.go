package idem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAbsentKeysAreForgotten: what a read found absent must not be believed once
// the key may have been written.
func TestAbsentKeysAreForgotten(t *testing.T) {
	t.Parallel()
	key := faultKey("k")
	rec := completed("k", "v")
	tests := []struct {
		name string
		do   func(c *cache)
		want bool
	}{
		{"read", func(c *cache) { c.fillAbsent(c.mark(key), key) }, true},
		{"another key", func(c *cache) { c.fillAbsent(c.mark(key), faultKey("another")) }, false},
		{"read, then written", func(c *cache) {
			c.fillAbsent(c.mark(key), key)
			c.write(key)
		}, false},
		{"read while it is written", func(c *cache) {
			mark := c.mark(key)
			c.write(key)
			c.fillAbsent(mark, key)
			c.wrote(key, &rec)
		}, false},
		{"read before, kept after the write", func(c *cache) {
			mark := c.mark(key)
			c.write(key)
			c.wrote(key, &rec)
			c.fillAbsent(mark, key)
		}, false},
		{"read after it was removed", func(c *cache) {
			c.write(key)
			c.wrote(key, nil)
			c.fillAbsent(c.mark(key), key)
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCache(1 << 20)
			tt.do(c)
			require.Equal(t, tt.want, c.isAbsent(key))
		})
	}
	var off *cache
	off.fillAbsent(off.mark(key), key)
	require.False(t, off.isAbsent(key))
}

// TestReadThatFoundNothingIsLate stops a read that found nothing until its key
// was created: the next claim of the key must meet the record all the same.
func TestReadThatFoundNothingIsLate(t *testing.T) {
	t.Parallel()
	s, e := openGated(t)
	e.afterRead.armed.Store(true)
	read := make(chan error)
	go func() {
		_, err := s.Get(t.Context(), faultKey("new"))
		read <- err
	}()
	<-e.afterRead.reached
	first, err := s.Create(t.Context(), completed("new", "first"))
	require.NoError(t, err)
	e.afterRead.open()
	require.ErrorIs(t, <-read, ErrNotFound)
	stored, err := s.Create(t.Context(), completed("new", "second"))
	require.ErrorIs(t, err, ErrConflict)
	require.Equal(t, first.Value, stored.Value)
}
