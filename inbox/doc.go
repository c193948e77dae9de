// Package inbox handles a message once, however often the broker delivers it.
//
// Brokers deliver at least once. The handler's effect is written by a transaction
// of the store's file, and the mark that the message was handled commits with it:
//
//	payments, err := inbox.New(guard, "payments-queue")
//	...
//	outcome, err := payments.Handle(ctx, msg.ID, func(ctx context.Context, tx *idem.Tx) error {
//		return tx.Bucket("balances").Put(account, balance)
//	})
//
// Use it where the effect is in buckets of the store's file. A handler that works
// elsewhere, by calling another service, can take part in no transaction: use
// idem.Do, which knows of outcomes that nobody knows. To hand on events that follow
// from the message, append them to an outbox in the same transaction.
//
// # What to tell the broker
//
//   - nil, with [Handled] or [Duplicate]: acknowledge.
//   - [ErrBusy]: the message is being handled by another delivery. Do not
//     acknowledge, have it delivered again later.
//   - *idem.FailedError: handled before, and it failed for good; see idem.Permanent.
//     Acknowledge, or move it to the dead letters.
//   - *idem.MismatchError: another content was handled under this id, see
//     [WithContent]. Two messages share an id: move it to the dead letters.
//   - idem.ErrInterrupted: the handler said idem.Unknown, because it did something
//     outside of its transaction. The policy of the guard says what a redelivery
//     gets.
//   - idem.ErrInvalidKey: the id is empty, too long or no text, see [ID].
//   - any other error is the handler's or the store's. Nothing was kept, so a
//     redelivery runs the handler again. That includes the delivery on which the
//     handler returns idem.Permanent: its error is returned as it is, and the
//     redelivery gets the *idem.FailedError.
//
// If the handler panics nothing was kept either, and the panic goes on.
//
// # What holds
//
// Of all deliveries of an id within the retention, the effect of exactly one is
// kept, or of none while the handler fails. After a crash there is the effect and
// the mark or neither. The handler itself may run more often, see idem.Tx.
//
// The retention is the window: a message that comes again after it is handled
// again. It must be longer than the broker may redeliver, dead letters that a
// person puts back included.
//
// # Costs
//
// A message takes one commit of the file, shared with what else commits at that
// time; a duplicate takes none, and most take no disk access. Each handled message
// keeps a record until the retention has passed, which a Janitor removes.
//
// # In the file
//
// Records of kind "inbox" under the key inbox:SOURCE/ID, without a value worth
// reading.
package inbox
