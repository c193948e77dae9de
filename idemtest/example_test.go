package idemtest_test

import (
	"path/filepath"
	"testing"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemtest"
)

// A test of your store package calls Exercise with a function that makes an
// empty store and cleans up after it.
func ExampleExercise() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		idemtest.Exercise(t, func(t *testing.T) idem.Store {
			store := idem.NewMemoryStore(idem.MemoryConfig{})
			t.Cleanup(func() { store.Close() })
			return store
		})
	}
}

// A store that outlives its process is certified a second time, closed and
// opened again between any two steps.
func ExampleExerciseReopen() {
	_ = func(t *testing.T) { // func TestStoreReopened(t *testing.T)
		idemtest.ExerciseReopen(t, func(t *testing.T) (idem.Store, func() idem.Store) {
			path := filepath.Join(t.TempDir(), "store.db")
			open := func() *idem.BoltStore {
				store, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{Grace: -1})
				if err != nil {
					t.Fatal(err)
				}
				return store
			}
			store := open()
			t.Cleanup(func() { store.Close() })
			return store, func() idem.Store {
				store.Close()
				store = open()
				return store
			}
		})
	}
}
