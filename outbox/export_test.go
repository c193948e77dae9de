package outbox

// WithWindow makes everything small that a relay reads ahead.
func WithWindow(events, bytes, waiting, read int) RelayOption {
	return func(r *Relay) {
		r.limits = limits{
			windowEvents: events, windowBytes: bytes, waiting: waiting, readEvents: read, readBytes: bytes,
			commitBytes: bytes,
		}
	}
}
