package idemtest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/idembolt/idem"
)

// flaw is a bug that stores have, and a subtest that must find it.
type flaw struct {
	name  string
	found string // topic and check
	plant func(f *flawed)
}

func flaws() []flaw {
	return slices.Concat(swapFlaws(), createFlaws(), deleteFlaws(), versionFlaws(), getFlaws(), contentFlaws(), scanFlaws(), expireFlaws(), contextFlaws())
}

func swapFlaws() []flaw {
	return []flaw{
		{"Swap ignores the version", "Swap/wrong version returns the current record with ErrConflict", func(f *flawed) {
			f.swap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				if now, err := f.Store.Get(ctx, rec.Key); err == nil {
					version = now.Version
				}
				return f.Store.Swap(ctx, version, rec)
			}
		}},
		{"Swap checks, then writes", "Concurrency/exactly one of many Swaps of a version wins", func(f *flawed) {
			f.swap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				now, err := f.Store.Get(ctx, rec.Key)
				if err != nil || now.Version != version {
					return f.Store.Swap(ctx, version, rec)
				}
				time.Sleep(time.Millisecond)
				for {
					stored, err := f.Store.Swap(ctx, now.Version, rec)
					if !errors.Is(err, idem.ErrConflict) {
						return stored, err
					}
					now = stored
				}
			}
		}},
		{"Swap creates what is not there", "Swap/no record returns the zero Record with ErrConflict", func(f *flawed) {
			f.swap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				if _, err := f.Store.Get(ctx, rec.Key); errors.Is(err, idem.ErrNotFound) {
					return f.Store.Create(ctx, rec)
				}
				return f.Store.Swap(ctx, version, rec)
			}
		}},
	}
}

func createFlaws() []flaw {
	return []flaw{
		{"Create overwrites", "Create/existing live key returns it with ErrConflict", func(f *flawed) {
			f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				if now, err := f.Store.Get(ctx, rec.Key); err == nil {
					return f.Store.Swap(ctx, now.Version, rec)
				}
				return f.Store.Create(ctx, rec)
			}
		}},
		{"Create returns a conflict without the record", "Create/existing live key returns it with ErrConflict", func(f *flawed) {
			f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				stored, err := f.Store.Create(ctx, rec)
				if err != nil {
					return idem.Record{}, err
				}
				return stored, nil
			}
		}},
		{"Create takes an expired record for a conflict", "Create/expired record is replaced as if absent", func(f *flawed) {
			f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				for _, old := range f.all(ctx, idem.Query{Prefix: rec.Key.String(), Expired: true}) {
					if old.Key == rec.Key {
						return old, idem.ErrConflict
					}
				}
				return f.Store.Create(ctx, rec)
			}
		}},
	}
}

func deleteFlaws() []flaw {
	return []flaw{
		{"Delete ignores the version", "Delete/wrong version returns ErrConflict and removes nothing", func(f *flawed) {
			f.remove = func(ctx context.Context, key idem.Key, version uint64) error {
				if now, err := f.Store.Get(ctx, key); err == nil {
					version = now.Version
				}
				return f.Store.Delete(ctx, key, version)
			}
		}},
		{"Delete of nothing succeeds", "Delete/no record returns ErrNotFound", func(f *flawed) {
			f.remove = func(ctx context.Context, key idem.Key, version uint64) error {
				if err := f.Store.Delete(ctx, key, version); !errors.Is(err, idem.ErrNotFound) {
					return err
				}
				return nil
			}
		}},
	}
}

func versionFlaws() []flaw {
	return []flaw{
		{"versions restart after Delete", "Versions/greater after Delete and Create", func(f *flawed) {
			f.remove = func(ctx context.Context, key idem.Key, version uint64) error {
				err := f.Store.Delete(ctx, key, version)
				f.forgetting(ctx)
				return err
			}
		}},
		{"versions restart after Expire", "Versions/greater after Expire removed the record", func(f *flawed) {
			f.expire = func(ctx context.Context, limit int) (int, error) {
				n, err := f.Store.Expire(ctx, limit)
				f.forgetting(ctx)
				return n, err
			}
		}},
	}
}

func getFlaws() []flaw {
	return []flaw{
		{"Get shows expired records", "Get/expired record returns ErrNotFound", func(f *flawed) {
			f.get = func(ctx context.Context, key idem.Key) (idem.Record, error) {
				for _, rec := range f.all(ctx, idem.Query{Prefix: key.String(), Expired: true}) {
					if rec.Key == key {
						return rec, nil
					}
				}
				return f.Store.Get(ctx, key)
			}
		}},
		{"Get returns one slice to all", "Slices/value returned by Get is a copy", func(f *flawed) {
			shared := map[uint64]idem.Record{}
			f.get = func(ctx context.Context, key idem.Key) (idem.Record, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				rec, err := f.Store.Get(ctx, key)
				if _, ok := shared[rec.Version]; !ok {
					shared[rec.Version] = rec
				}
				return shared[rec.Version], err
			}
		}},
		{"Create keeps the caller's slice", "Slices/value given to Create is copied", func(f *flawed) {
			given := map[uint64][]byte{}
			f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				stored, err := f.Store.Create(ctx, rec)
				given[stored.Version] = rec.Value
				return stored, err
			}
			f.get = func(ctx context.Context, key idem.Key) (idem.Record, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				rec, err := f.Store.Get(ctx, key)
				if value, ok := given[rec.Version]; ok {
					rec.Value = value
				}
				return rec, err
			}
		}},
	}
}

func contentFlaws() []flaw {
	return []flaw{
		{"empty values become nil", "Values/empty stays empty and is not nil", func(f *flawed) {
			f.written(func(rec *idem.Record) {
				if len(rec.Value) == 0 {
					rec.Value = nil
				}
			})
		}},
		{"values are cut at 64 KiB", "Values/value of 65537 bytes comes back", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.Value = rec.Value[:min(len(rec.Value), 64<<10)] })
		}},
		{"times are cut to milliseconds", "Fields/times keep every microsecond", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.CreatedAt = rec.CreatedAt.Truncate(time.Millisecond) })
		}},
		{"the note is forgotten", "Fields/every field comes back from every method", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.Note = "" })
		}},
		{"keys fold case", "Keys/keys that differ in any byte do not share a record", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.Key.ID = strings.ToLower(rec.Key.ID) })
		}},
		{"invalid keys are mended", "Keys/scope with a space is refused", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.Key.Scope = strings.ReplaceAll(rec.Key.Scope, " ", "_") })
		}},
		{"invalid records are mended", "Invalid/negative attempt number is refused by Create", func(f *flawed) {
			f.written(func(rec *idem.Record) { rec.Attempt = max(0, rec.Attempt) })
		}},
	}
}

func scanFlaws() []flaw {
	return []flaw{
		{"Scan goes backwards", "Scan/records come in byte order of their text form", func(f *flawed) {
			f.sorted(func(a, b idem.Record) int { return cmp.Compare(b.Key.String(), a.Key.String()) })
		}},
		{"Scan sorts by scope, then id", "Scan/records come in byte order of their text form", func(f *flawed) {
			f.sorted(func(a, b idem.Record) int {
				return cmp.Or(cmp.Compare(a.Key.Scope, b.Key.Scope), cmp.Compare(a.Key.ID, b.Key.ID))
			})
		}},
		{"Scan includes After", "Query/After skips keys up to and including it", func(f *flawed) {
			f.query(func(q *idem.Query) {
				if q.After != "" {
					q.After = q.After[:len(q.After)-1]
				}
			})
		}},
		{"Scan forgets the prefix", "Query/Prefix selects keys that begin with it", func(f *flawed) {
			f.query(func(q *idem.Query) { q.Prefix = "" })
		}},
		{"Scan always shows expired records", "Query/expired records do not come unless asked for", func(f *flawed) {
			f.query(func(q *idem.Query) { q.Expired = true })
		}},
		{"Scan never shows expired records", "Query/Expired shows expired records in their place", func(f *flawed) {
			f.query(func(q *idem.Query) { q.Expired = false })
		}},
		{"Scan yields values that were to be left out", "Query/OmitValues leaves out the value and nothing else", func(f *flawed) {
			f.query(func(q *idem.Query) { q.OmitValues = false })
		}},
	}
}

func expireFlaws() []flaw {
	return []flaw{
		{"Expire ignores the limit", "Expire/at most limit records are removed", func(f *flawed) {
			f.expire = func(ctx context.Context, limit int) (int, error) { return f.Store.Expire(ctx, limit*100) }
		}},
		{"Expire counts wrong", "Expire/expired records are removed and counted", func(f *flawed) {
			f.expire = func(ctx context.Context, limit int) (int, error) {
				_, err := f.Store.Expire(ctx, limit)
				return limit, err
			}
		}},
		{"Expire removes live Processing records", "Expire/Processing record is never removed while its lease runs", func(f *flawed) {
			f.expire = func(ctx context.Context, limit int) (int, error) {
				n, err := f.Store.Expire(ctx, limit)
				for _, rec := range f.all(ctx, idem.Query{}) {
					if err == nil && time.Now().After(rec.ExpiresAt) {
						n, err = n+1, f.Store.Delete(ctx, rec.Key, rec.Version)
					}
				}
				return n, err
			}
		}},
	}
}

func contextFlaws() []flaw {
	return []flaw{
		{"ended contexts are ignored", "Context/cancelled before Create is its error and nothing is written", func(f *flawed) {
			f.create = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				return f.Store.Create(context.WithoutCancel(ctx), rec)
			}
		}},
		{"ended contexts are noticed after the write", "Context/cancelled before Swap is its error and nothing is written", func(f *flawed) {
			f.swap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				stored, err := f.Store.Swap(context.WithoutCancel(ctx), version, rec)
				return stored, cmp.Or(ctx.Err(), err)
			}
		}},
	}
}
