package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

const (
	keyBytes    = 36
	claimBytes  = 120
	resultBytes = 400
)

// errTaken is what Do returns for a key that has been claimed before.
var errTaken = errors.New("the key is taken")

// errNotInstalled explains why a store is left out; any other error of Setup is
// a failure of the run.
var errNotInstalled = errors.New("not installed")

// store is one way to keep a claim and its result. Do makes both durable, one
// after the other, the way a program would that has nothing else: the claim only
// if the key is new, then the result in its place.
type store interface {
	// Setup makes the store with its records, or returns errNotInstalled.
	Setup(t target) error
	// Do returns errTaken for a key that has been claimed before. It is called
	// by many callers at once.
	Do(key string, claim, result []byte) error
	// Read returns the result that Do has stored.
	Read(key string) (result []byte, err error)
	// Close does what was put off and ends a server that Setup has started.
	Close() error
}

// target says where a store is made and how.
type target struct {
	Dir     string `json:"dir"`
	Records int    `json:"records"` // already in it
	Callers int    `json:"callers"` // that will call Do at once
}

// limiter stands in for a store: what the disk could do for that many callers.
type limiter interface {
	// DoGroup writes one claim for each caller and makes them durable, and then
	// the results.
	DoGroup(callers int) error
}

// candidate is a store by name. The first one is what the others are held against.
type candidate struct {
	name string
	open func() store
}

func candidates() []candidate {
	return []candidate{
		{"idem", func() store { return &idemStore{} }},
		{"bbolt-update", func() store { return &bboltStore{} }},
		{"bbolt-batch", func() store { return &bboltStore{batch: true} }},
		{"sqlite", func() store { return &sqliteStore{} }},
		{"pebble", func() store { return &pebbleStore{} }},
		{"badger", func() store { return &badgerStore{} }},
		{"redis", func() store { return &redisStore{} }},
		{"postgres", func() store { return &postgresStore{} }},
		{"raw-limit", func() store { return &rawLimit{} }},
	}
}

// chosen keeps the candidates whose names are in a comma-separated list; "" keeps all.
func chosen(list string) ([]candidate, error) {
	all := candidates()
	if list == "" {
		return all, nil
	}
	var some []candidate
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(c candidate) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown store %q", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// newKey makes a key that no other call makes. It has the form of idem's keys,
// scope/id, so that every store gets the same bytes.
func newKey() string {
	var random [(keyBytes - len(keyScope) - 1) / 2]byte
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	return keyScope + "/" + hex.EncodeToString(random[:])
}

const keyScope = "bench"

// load hands the keys of records that are in the store from the start to put, in
// random order, in chunks that are sorted as bulk loading likes them.
func load(records int, put func(keys []string) error) error {
	const chunk = 20_000
	for records > 0 {
		keys := make([]string, min(chunk, records))
		for i := range keys {
			keys[i] = newKey()
		}
		slices.Sort(keys)
		if err := put(keys); err != nil {
			return fmt.Errorf("load: %w", err)
		}
		records -= len(keys)
	}
	return nil
}

// keyLocks makes check-then-write safe in stores without transactions.
type keyLocks struct {
	seed  maphash.Seed
	locks [1024]sync.Mutex
}

func newKeyLocks() *keyLocks { return &keyLocks{seed: maphash.MakeSeed()} }

func (l *keyLocks) of(key string) *sync.Mutex {
	return &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
}
