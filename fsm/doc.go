// Package fsm keeps the state of business objects and lets it change only along
// declared transitions: an order goes from PENDING to PAID or to CANCELED, never
// from COMPLETED to CANCELED, and of two callers who try at once one wins.
//
//	orders, err := fsm.New(store, "order-state", fsm.Definition{
//		Initial: "PENDING",
//		Transitions: map[string][]string{
//			"PENDING":   {"PAID", "CANCELED"},
//			"PAID":      {"COMPLETED"},
//			"COMPLETED": nil, // final
//			"CANCELED":  nil,
//		},
//	})
//	...
//	_, err = orders.Start(ctx, orderID)
//	res, err := orders.Fire(ctx, orderID, "PAID", receipt)
//
// # When to use it
//
// Use it where what has happened to an object decides what may happen next, and
// where the same change may be asked for more than once. It guards the state, not
// the work: a caller who was told Applied does what belongs to the state, and may
// die before it has. If the work must be done once use [idem.Do]; if it is done in
// the same file use [idem.DoTx] and [Machine.On], and state and work commit
// together. For rows with more content than a state use package table. For work
// of several steps by one caller a plain [idem.Do] is simpler.
//
// # What Fire answers
//
//   - Applied: this call has made the transition;
//   - Already: the instance is in that state, or came through it earlier. That is
//     success: a repeat of a finished transition changes nothing, whatever its
//     payload;
//   - *[IllegalError]: the state can not follow the present one, which the error
//     names;
//   - [idem.ErrNotFound]: nobody has started that instance, or its retention is
//     over;
//   - [ErrUnknownState]: the machine does not know the name.
//
// A transition that is declared is made before it is asked whether it was made
// earlier. So where states can be reached again (OPEN to CLOSED and back) a late
// repeat of the first closing closes again. Where that matters make the call once
// per intent, in an [idem.DoTx].
//
// A state can not follow itself: it would look like a repeat.
//
// # What is stored
//
// One record per instance, of kind "fsm", state Completed, whose value is JSON:
//
//	{"state":"PAID","definition":"9f2c41d077ab03e1",
//	 "history":[{"from":"PENDING","to":"PAID","at":"2026-11-30T08:00:00Z","trace":"t-1","payload":"base64"}],
//	 "dropped":0,"passed":["…"]}
//
// The history holds the last [MaxHistory] transitions; dropped counts the earlier
// ones, and passed names the states that only those led to.
//
// The definition may change between two runs of a program, as long as it still
// knows the states that are stored. One that does not makes every call for such an
// instance return a [*DefinitionError], with nothing changed.
//
// # Costs
//
// Start and an Applied Fire each cost one synced write, everything else none. Each
// transition writes the whole history, with its payloads, again: small payloads,
// such as the number of a receipt, are cheap, and [MaxPayloadBytes] is not.
//
// # After a crash
//
// A transition is one write: it was made or not. A caller who does not know
// repeats the call, and is told Already if it was.
//
// # Limits
//
// An instance is kept for its retention after the last transition, at most and by
// default [idem.MaxRetention]; what must be kept longer is business data. The
// scope must be used by nothing else.
package fsm
