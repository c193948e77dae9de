// Package token protects against double submits with one-time tokens: the server
// issues one with every form, the submit consumes it, and a second submit of the
// same form is refused.
//
//	tokens, err := token.New(guard.Store(), "order-form")
//	...
//	field, err := tokens.Field(r.Context(), userID)         // into the form, as {{.Token}}
//	mux.Handle("POST /orders", tokens.Protect(user)(orders)) // consumes it, or answers 409
//
// A program that has no forms fetches a token from Handler and sends it in a
// header. A handler that wants to show a page of its own to the second submit, or
// to consume the token in the transaction that does the work, calls Consume.
//
// # When not to use it
//
// The second submit is refused, it does not get the answer of the first. A client
// that retries because it has not heard the answer needs that: give it package
// idemhttp, where it brings a key of its own. Where the server does not make the
// form, there is nobody to issue a token. A message that may be delivered twice
// has an id already. To hold back what comes too often is package debounce.
//
// A token is no login and, without a subject, no protection against forged
// requests: anybody who has one may use it once.
//
// # Before or with the work
//
// Protect consumes the token before the handler runs. If the handler then fails,
// or the process dies, the token is used and the work is not done: the user loads
// the form again. At most once, never twice.
//
// In an idem.DoTx, or idem.BoltStore.Update, both commit together. The token is
// used exactly if the work is done:
//
//	err := store.Update(ctx, func(tx *idem.Tx) error {
//		if err := tokens.On(tx.Records()).Consume(ctx, value, userID); err != nil {
//			return err
//		}
//		return tx.Bucket("orders").Append(order)
//	})
//
// # What it costs
//
// One durable write to issue a token, one to consume it. A refusal writes nothing,
// and a text that cannot be a token does not even read.
//
// # After a crash
//
// On a store on disk a token that was issued can be consumed and one that was
// consumed stays used. On an idem.MemoryStore all are unknown after a restart,
// which refuses the forms that were open.
//
// # What is stored
//
// A token is 192 random bits. The store holds a record of kind "token" under its
// SHA-256 in hexadecimal, so that nobody who can read the file can use it. While
// the token is open the record is Processing, without an owner and with its whole
// retention as its lease; when it was used it is Completed, and its owner is a
// random text that stands for the call that used it. Its value is JSON:
//
//	expires   when the token runs out, RFC 3339
//	subject   HMAC-SHA-256 of the subject, keyed with the token, in hexadecimal;
//	          left out if there is none
//	used      when it was consumed; left out before
//
// # Limits
//
// A token is good for WithTTL, 5 minutes unless set, at most 24 hours. After that
// its record stays for WithMemory, a day unless set, so that used and expired
// tokens can be told from unknown ones. Whoever may load the form can fill the
// store: limit their rate, or the store with MaxRecords.
package token
