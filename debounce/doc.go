// Package debounce answers whether a thing was already let through a moment ago:
// not twice within five seconds, per user and action. It is a cheap filter in
// front of work that is costly to begin or tiresome to receive twice: a
// "resend the mail" button, an alert, a rebuild that is triggered by every change.
//
//	resend, err := debounce.New(guard.Store(), "resend-mail", 5*time.Second)
//	...
//	d, err := resend.Allow(ctx, userID)
//	if err != nil {
//		return err
//	}
//	if !d.Allowed {
//		return tooSoon(d.RetryAfter)
//	}
//
// # When not to use it
//
// It forgets, and it does not know whether the work was done: a call that comes
// after the interval runs again, and one that was let through and then failed is
// refused until the interval is over. It is no protection against doing work
// twice. That is idem.Do, or package idemhttp for HTTP; a form that must not be
// submitted twice is package token; work that must not overlap is package lock.
// It does not count either: it is no rate limiter that allows ten in a minute.
//
// # What it costs
//
// One durable write for a call that is let through, none for one that is refused.
// On an idem.MemoryStore neither touches a disk, which is often enough: what is
// lost when the process ends is a few seconds of memory. An idem.TransientStore
// opens and closes the file for every call.
//
// # After a crash
//
// On a store on disk a call that was let through is remembered, whether or not
// what it let through was done.
//
// # Limits
//
// An interval is 1 millisecond to 24 hours. It begins when a call is let through;
// refused calls do not extend it. Of concurrent calls exactly one is let through.
//
// Every name that is let through is a record of kind "debounce", without a value,
// that expires with the interval. The janitor of idem.Open removes those that
// have expired; on other stores run an idem.Janitor. A store that is full
// refuses with idem.ErrFull; the caller decides whether to go on then.
package debounce
