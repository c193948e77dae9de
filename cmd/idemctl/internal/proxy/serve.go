package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/idembolt/idem"
)

const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
)

// Server answers requests until it is told to stop.
type Server struct {
	Handler http.Handler
	Guard   *idem.Guard   // Serve shuts it down
	Log     slog.Handler  // what goes wrong with connections
	Drain   time.Duration // how long running requests may take when it stops
}

// DrainError says that requests were cut off when the server stopped.
type DrainError struct {
	Running int64 // requests that were not answered
	Waited  time.Duration
}

// Error says it in one line.
func (e *DrainError) Error() string {
	requests := "requests were"
	if e.Running == 1 {
		requests = "request was"
	}
	return fmt.Sprintf("%d %s still running after %s and cut off", e.Running, requests, e.Waited)
}

// Serve answers on the listener until ctx ends. Then it accepts nothing more,
// waits for the requests that are running, and shuts the guard down. It returns
// nil if all of them were answered and recorded, else a *DrainError. Connections
// that were taken over, as for web sockets, are not waited for.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var running atomic.Int64
	server := &http.Server{
		// No time limit on reading and writing: uploads and streams may take long.
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(s.Log, slog.LevelWarn),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Add(-1)
			s.Handler.ServeHTTP(w, r)
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended: // the listener failed
		return errors.Join(err, server.Close(), s.Guard.Close())
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
	defer cancel()
	err := server.Shutdown(limit)
	left := running.Load()
	<-ended
	if err == nil || left == 0 { // connections on which no request has begun do not count
		return errors.Join(server.Close(), s.Guard.Close())
	}
	// The guard first: it tells protected requests why they end, and their keys
	// are interrupted for whoever opens the file next. Its error is that of limit.
	_ = s.Guard.Shutdown(limit)
	_ = server.Close()
	return &DrainError{Running: left, Waited: s.Drain}
}
