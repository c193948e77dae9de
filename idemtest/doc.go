// Package idemtest certifies implementations of [idem.Store].
//
// A guard relies on every sentence of the Store contract: a store that breaks
// one runs somebody's work twice. [Exercise] turns the contract into subtests,
// each on a store of its own, so that a failing name says which sentence is
// broken:
//
//	func TestStore(t *testing.T) {
//		idemtest.Exercise(t, func(t *testing.T) idem.Store {
//			store := mystore.Open(t.TempDir())
//			t.Cleanup(func() { store.Close() })
//			return store
//		})
//	}
//
// # What is certified
//
//   - Create, Swap, Delete and Get are compare-and-swap on one key: exactly one
//     of any number of concurrent callers wins, a conflict brings the record
//     that is there, and expired is the same as absent.
//   - Versions of a key only ever grow, also across delete, expiry and purge.
//   - Every field comes back as it was written, times to the microsecond, values
//     from nil and empty to [idem.MaxValueBytes], keys with any printable text.
//   - Scan yields byte order, obeys every field of a Query, and bears changes
//     under way. Expire removes what has expired, oldest first, and nothing else.
//   - An ended context, an invalid key or an invalid record writes nothing.
//   - The optional interfaces Waiter, Liveness, Clock and SecretKeeper, where
//     the store implements them. Checks of others are skipped, saying so.
//   - A guard on the store runs one function once for a hundred callers, and
//     refuses the late write of an attempt that was taken over.
//
// Durability cannot be seen from inside one process. [ExerciseReopen] comes
// close: it runs the same checks on a store that is closed and opened again
// between any two steps.
//
// # What the store must provide
//
// newStore returns an empty store and registers its own cleanup. Checks of one
// topic run in parallel, so it is called concurrently, and two stores must not
// see each other's records: give each its own directory, schema or key prefix.
// Run go test with -parallel 1 if they cannot live side by side.
//
// A store that may keep records beyond their ExpiresAt (BoltConfig.Grace) must
// be configured not to, and one with limits must have room for a thousand
// records and some values of MaxValueBytes. A store whose server keeps another
// time than this machine must implement Clock.
//
// The suite runs in real time and needs a few tens of milliseconds of it where
// something has to expire. Stores that do not talk to a network can be tested
// in fake time; see [InBubble].
package idemtest
