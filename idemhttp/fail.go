package idemhttp

import (
	"context"
	"sync"
)

// Fail tells the middleware how the handler's work has failed where the status
// of its response does not. The error means what it means as the result of a
// function given to idem.Do: a plain one that nothing was done, so that the key
// is free again; idem.Unknown(err) that nobody knows; idem.Permanent(err) that the
// response is final, whatever its status. The client gets the handler's response
// in each case.
//
// The context is that of the handler's request, or one made from it. A later call
// replaces an earlier one, and a nil error takes it back. Fail reports false, and
// does nothing, if the request is not protected by a middleware of this package.
// It may be called concurrently, until the handler returns.
func Fail(ctx context.Context, err error) bool {
	x := exchangeOf(ctx)
	if x != nil {
		x.failed.set(err)
	}
	return x != nil
}

type exchangeKey struct{}

// exchangeOf returns the exchange whose handler was given ctx, or nil.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// failure is what a handler has said with Fail.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
