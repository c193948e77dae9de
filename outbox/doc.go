// Package outbox publishes events that commit with the work they tell of, and a
// relay that hands them on.
//
// A service that changes its data and then tells a broker has two writes and can
// die between them. With an outbox the event is written by the transaction that
// does the work, to a bucket of the same file. A [Relay] reads the bucket and
// calls the caller's function for each event until it succeeds:
//
//	events, err := outbox.New(store)
//	...
//	err = store.Update(ctx, func(tx *idem.Tx) error {
//		if err := tx.Bucket("orders").Put(id, order); err != nil {
//			return err
//		}
//		return events.Append(tx, outbox.Event{AggregateType: "order", AggregateID: "o-1", Type: "OrderPlaced", Payload: order})
//	})
//	...
//	relay, err := outbox.NewRelay(events, publish)
//	...
//	err = relay.Run(ctx)
//
// Use it where the data is in buckets of the store's file. Use idem.Do with
// Attempt.ChildKey where one call to another system is all that follows from the
// work. The receiving side is package inbox, or whatever drops repeats by the
// event's ID.
//
// # What holds
//
//   - An event whose transaction committed is published at least once, by the same
//     ID each time; one whose transaction did not is never published.
//   - Events of one aggregate (AggregateType and AggregateID) are published one
//     after the other, in the order of their commits. Aggregates do not wait for
//     each other, but for one of the relay's workers.
//   - After a crash the events that were published last and not yet marked are
//     published again. Of one aggregate these are the last ones, in their order.
//   - An event that fails holds back its own aggregate only. After WithMaxAttempts
//     it is parked, that is moved out of the way, and its aggregate goes on
//     without it: for consumers that must not miss one, turn parking off.
//   - A publisher that panics has failed. One that never returns holds back its
//     aggregate and keeps a worker; it should obey its context and have a timeout.
//
// A relay keeps at most 4096 events, or 32 MiB of them, in memory, whatever the
// backlog. When that gets scarce, it keeps of an aggregate in back-off only where it
// stands. When 65,536 aggregates are in back-off it is the broker that fails, and
// the relay reads on when some of them have been tried again; see [Unavailable].
//
// # Crashes and attempts
//
// A failed attempt is counted in the file by the next commit. An attempt that ends
// the process cannot be counted when it has happened, and to count each one before
// would cost a sync per event. So a relay that finds that the one before did not
// stop in an orderly way is careful for the first 4096 publishes: it writes down,
// with one sync for all workers, what it is about to publish. What is written
// there after another crash has had a failed attempt, and at most one such event
// is published at a time from then on. An event that kills the process is so
// parked after one crash more than WithMaxAttempts allows.
//
// # Costs
//
// Append adds no sync to its transaction. Published events are removed by
// transactions of the relay, one at a time, each for all that were published
// during the one before: one commit for a lone event, one for thousands under
// load. Nothing polls; a relay without work waits for the bucket to change.
//
// # In the file
//
// Buckets, for the default name: "outbox" (key: number, 8 bytes big-endian),
// "outbox.attempts" (the same number, for events that have failed),
// "outbox.parked" (key: id, a zero byte, number), and "outbox.relay" (keys "run",
// "inflight", "state", "returned"). Values are JSON. Events have the members id,
// at (aggregate type), ai (aggregate id), t (type), p (payload, base64),
// h (headers), tr (trace id) and c (created, microseconds since 1970). A note of
// attempts has n (count), e (last error) and x (true after a crash). A parked event
// has ev (the event), n, e, pa (parked, microseconds) and s (its number). Events
// and their buckets must be changed by this package only.
//
// The fields of an event are the columns that Debezium's outbox event router
// expects by default, so moving to PostgreSQL is a copy of List into
//
//	CREATE TABLE outbox (
//	    id            varchar(255) NOT NULL PRIMARY KEY, -- uuid if Append made all of them
//	    aggregatetype varchar(255) NOT NULL,
//	    aggregateid   varchar(255) NOT NULL,
//	    type          varchar(255) NOT NULL,
//	    payload       bytea,                             -- or jsonb
//	    headers       jsonb,
//	    traceid       varchar(128),
//	    created       timestamptz  NOT NULL
//	);
//
// in the order of the numbers.
//
// # Limits
//
// One relay per outbox; a second one gets [ErrRunning]. The events of a
// transaction have at most idem.MaxTxBytes together. See [Event] for one.
package outbox
