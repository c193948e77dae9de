package idemtest_test

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/idembolt/idem"
)

// flawed is a store in memory without optional interfaces, in which single
// methods can be replaced. The zero hooks leave it right.
type flawed struct {
	idem.Store
	mu     sync.Mutex
	create func(ctx context.Context, rec idem.Record) (idem.Record, error)
	swap   func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error)
	remove func(ctx context.Context, key idem.Key, version uint64) error
	get    func(ctx context.Context, key idem.Key) (idem.Record, error)
	scan   func(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error]
	expire func(ctx context.Context, limit int) (int, error)
}

// newFlawed returns a store whose embedded Store is the right one.
func newFlawed() *flawed {
	f := &flawed{}
	f.reset()
	return f
}

func (f *flawed) reset() { f.Store = idem.NewMemoryStore(idem.MemoryConfig{}) }

func (f *flawed) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	if f.create != nil {
		return f.create(ctx, rec)
	}
	return f.Store.Create(ctx, rec)
}

func (f *flawed) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	if f.swap != nil {
		return f.swap(ctx, version, rec)
	}
	return f.Store.Swap(ctx, version, rec)
}

func (f *flawed) Delete(ctx context.Context, key idem.Key, version uint64) error {
	if f.remove != nil {
		return f.remove(ctx, key, version)
	}
	return f.Store.Delete(ctx, key, version)
}

func (f *flawed) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	if f.get != nil {
		return f.get(ctx, key)
	}
	return f.Store.Get(ctx, key)
}

func (f *flawed) Scan(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error] {
	if f.scan != nil {
		return f.scan(ctx, q)
	}
	return f.Store.Scan(ctx, q)
}

func (f *flawed) Expire(ctx context.Context, limit int) (int, error) {
	if f.expire != nil {
		return f.expire(ctx, limit)
	}
	return f.Store.Expire(ctx, limit)
}

// all collects what the right store holds.
func (f *flawed) all(ctx context.Context, q idem.Query) []idem.Record {
	var recs []idem.Record
	for rec, err := range f.Store.Scan(ctx, q) {
		if err == nil {
			recs = append(recs, rec)
		}
	}
	return recs
}

// sorted replaces the order of a scan.
func (f *flawed) sorted(compare func(a, b idem.Record) int) {
	f.scan = func(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error] {
		return func(yield func(idem.Record, error) bool) {
			recs := f.all(ctx, q)
			slices.SortStableFunc(recs, compare)
			for _, rec := range recs {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// query changes what a scan is asked for.
func (f *flawed) query(change func(q *idem.Query)) {
	f.scan = func(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error] {
		change(&q)
		return f.Store.Scan(ctx, q)
	}
}

// written changes records on their way in.
func (f *flawed) written(change func(rec *idem.Record)) {
	f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
		change(&rec)
		return f.Store.Create(ctx, rec)
	}
	f.swap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
		change(&rec)
		return f.Store.Swap(ctx, version, rec)
	}
}

// forgetting starts anew, with versions from 1, when the last record is gone.
func (f *flawed) forgetting(ctx context.Context) {
	if len(f.all(ctx, idem.Query{Expired: true})) == 0 {
		f.reset()
	}
}
