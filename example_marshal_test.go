package idem_test

import (
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// A store outside of this module keeps records in the form that MarshalRecord
// makes. It carries a checksum over the record and its key.
func ExampleMarshalRecord() {
	key := idem.Key{Scope: "charge", ID: "order-1042"}
	data, err := idem.MarshalRecord(idem.Record{
		Key: key, State: idem.Completed, Version: 7, ExpiresAt: time.Unix(1_800_000_000, 0), Value: []byte("receipt"),
	})
	if err != nil {
		panic(err)
	}
	rec, err := idem.UnmarshalRecord(key, data)
	fmt.Println(rec.State, rec.Version, string(rec.Value), err)

	_, err = idem.UnmarshalRecord(idem.Key{Scope: "charge", ID: "order-1043"}, data)
	fmt.Println(err)
	// Output:
	// completed 7 receipt <nil>
	// stored data is damaged: record of "charge/order-1043": its checksum does not match
}
