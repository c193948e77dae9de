// Package table keeps rows of one Go type under a business number, once each: an
// insert that is repeated gets the row that is there, an update that has seen an old
// version is refused and gets the current one.
//
//	orders, err := table.New[Order](store, "orders",
//		table.WithUnique("receipt", func(o Order) string { return o.Receipt }))
//	...
//	row, err := orders.Insert(ctx, order.Number, order) // row.Existing: it was there
//	row, err = orders.Update(ctx, order.Number, row.Version, changed)
//
// # When to use it
//
// Use it for what must exist once and is changed by several callers: orders,
// invoices, accounts, settings. If the work is to be done once, not the row, use
// [idem.Do]. For a state that may change only in declared ways use package fsm. For
// many rows that are read by anything but their numbers use buckets of your own in
// an [idem.DoTx], or a database: there are no other indexes, and no joins.
//
// # What a call finds
//
//   - Insert: no row: it is added. A row of that id: that one, with Existing set,
//     whatever its value. Another row with the same value in the unique column: a
//     *[DuplicateError] that has it;
//   - Update and Delete: the row at the version that was given: done. At another:
//     a *[ConflictError] that has the current row. Read its value, decide anew, and
//     call again with its version. No row: [idem.ErrNotFound].
//
// # The unique column
//
// On a *[idem.BoltStore], and on tx.Records(), a change and the index of the column
// are one commit. On other stores they are several writes, in an order that never
// lets two rows have one value, whoever dies between them; unique.go explains it. A
// caller who dies in the middle makes the next one for that row or value wait for
// one or two seconds.
//
// # What is stored
//
// A row is a record of kind "table" and state Completed, with the value
//
//	{"version":2718281828459045,"value":{…}}
//
// and in the middle of a change also "pending", a random token; without a version it
// is no row yet. A value of the unique column is a record of kind "table.unique" in
// the scope that ends in ":unique:" and the column's name, under the SHA-256 of the
// value:
//
//	{"row":"o-1042","token":"9f2c41d077ab03e1"}
//
// # Costs
//
// Reads and repeated inserts write nothing. Other calls cost one synced write; with
// a unique column one commit on a *idem.BoltStore, and on other stores two for a
// Delete and for an Update that leaves the column alone, three for an Insert, and up
// to four for an Update that changes it.
//
// # After a crash
//
// A call is done or not, and a repeat of it finds out. Index records that mean
// nothing any more may stay until the value is used again or their retention is over.
//
// # Limits
//
// A row is kept for its retention after it was last written, at most and by default
// [idem.MaxRetention]. A value is at most 16 MiB less 1 KiB of JSON; what JSON drops,
// such as unexported fields, is not stored. Purging index records by hand frees their
// values although rows have them.
package table
