// Package lock gives out named leases, so that one holder at a time works on
// something: between the goroutines of a service, or between processes that share
// a file through idem.TransientStore.
//
//	locks, err := lock.New(guard, "reports")
//	...
//	held, err := locks.Lock(ctx, "2026-11") // TryLock does not wait
//	if err != nil {
//		return err
//	}
//	defer held.Unlock(ctx)
//	return storage.Write(ctx, report, held.Fence())
//
// # A lock is not enough
//
// A lease can be lost: the process is paused, the store cannot be written to, and
// somebody else takes the lock over while the first holder still believes that it
// is its own. Three things tell them apart. Lost is closed, a twelfth of the lease
// before anybody else can have the lock, unless the whole process stands still.
// Unlock says ErrLost. And Fence is a number that is higher with every holder of a
// name: what is written to can remember the highest that it has seen and refuse a
// lower one. Only the last is safe at every moment.
//
// # When not to use it
//
// Work that must be done once, rather than once at a time, is idem.Do: it
// remembers the result, a lock remembers nothing. Within one process, where
// nothing outlives it, a sync.Mutex does the same without a disk. A limit of how
// often something happens is package debounce.
//
// # What it costs
//
// One durable write to take a lock and one to give it back, one more per third of
// the lease while it is held, and a goroutine. A refused TryLock writes nothing.
// Waiting is woken by the store within one process; between processes it polls, in
// the long run about every half second. Who waits longest has no precedence.
//
// # After a crash
//
// A lock whose holder was killed is free for the next one to ask: at once where
// the store knows that the holder is gone (a reopened idem.BoltStore always,
// idem.TransientStore on Linux), else when its lease is over. The next holder does
// not learn from the lock that its predecessor stopped half way.
//
// # Limits
//
// The lease, see WithTTL, is at least a second. A lock is not re-entrant: who
// holds it and asks again waits for itself. A lock that is never unlocked is
// renewed as long as the process lives, and the guard's Close waits for it;
// Shutdown does not. A lock belongs to a machine, as the file does.
//
// A lock is a record of kind "lock", without a value, while it is held. Unlock
// removes it. One that was lost stays for a day, or until somebody takes it over.
package lock
