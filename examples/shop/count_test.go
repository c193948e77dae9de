//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// counted is all that a shop has left behind.
type counted struct {
	rows                map[string]order
	states              map[string]string
	left, mails, ledger map[string]int64
	waiting, parked     uint64
	moved               map[string][]string // by order: what the provider did, in its order
	keys                map[string]bool     // of the provider
}

func countAll(t *testing.T, dir string) *counted {
	t.Helper()
	p, err := openProvider(filepath.Join(dir, "provider.jsonl"), 0)
	require.NoError(t, err)
	defer p.close()
	guard, err := idem.Open(filepath.Join(dir, "shop.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, guard.Close()) }()
	s, err := newShop(guard, guard.Store().(*idem.BoltStore), p)
	require.NoError(t, err)

	c := &counted{rows: make(map[string]order), states: make(map[string]string), moved: make(map[string][]string), keys: make(map[string]bool)}
	for row, err := range s.orders.All(t.Context(), "") {
		require.NoError(t, err)
		c.rows[row.ID] = row.Value
	}
	for rec, err := range s.store.Scan(t.Context(), idem.Query{Prefix: "order.state/"}) {
		require.NoError(t, err)
		state, err := s.states.Get(t.Context(), rec.Key.ID)
		require.NoError(t, err)
		c.states[rec.Key.ID] = state.State
	}
	c.left, c.mails, c.ledger = bucket(t, s, "stock"), bucket(t, s, "mails"), bucket(t, s, "ledger")
	stats, err := s.events.Stats(t.Context())
	require.NoError(t, err)
	c.waiting, c.parked = stats.Depth, stats.Parked
	c.readMovements(t, filepath.Join(dir, "provider.jsonl"))
	return c
}

func bucket(t *testing.T, s *shop, name string) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	require.NoError(t, s.store.View(t.Context(), func(tx *idem.Tx) error {
		for pair, err := range tx.Bucket(name).Range(nil, nil) {
			if err != nil {
				return err
			}
			var n int64
			if err := json.Unmarshal(pair.Value, &n); err != nil {
				return err
			}
			all[string(pair.Key)] = n
		}
		return nil
	}))
	return all
}

func (c *counted) readMovements(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m movement
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		require.False(t, c.keys[m.Key], "%s twice under one key", m.Op)
		c.keys[m.Key] = true
		c.moved[m.Order] = append(c.moved[m.Order], m.Op)
	}
	require.NoError(t, lines.Err())
}

// orders compares what customers were told with what there is: nothing else.
func (c *counted) orders(t *testing.T, all []told) {
	t.Helper()
	placed := make(map[string]order)
	ends := make(map[string]int)
	for _, w := range all {
		state, there := c.states[w.number]
		ends[state]++
		if w.placed.status == http.StatusConflict {
			require.Equal(t, errSoldOut.Error(), w.placed.body)
			require.False(t, there, "%+v", w)
			continue
		}
		placed[w.number] = w.order
		want := "PLACED"
		switch {
		case w.shipped.status == http.StatusOK:
			want = "SHIPPED"
		case w.canceled.status == http.StatusOK:
			want = "CANCELED"
		case w.paid.status == http.StatusOK:
			want = "PAID"
		}
		require.Equal(t, want, state, "%+v", w)
		if w.paid.status == http.StatusConflict {
			require.Contains(t, []string{errDeclined.Error(), errCanceled.Error()}, w.paid.body)
		}
	}
	require.Equal(t, placed, c.rows)
	require.Len(t, c.states, len(placed))
	t.Logf("%d orders: %v", len(all), ends)
}

func (c *counted) stock(t *testing.T) {
	t.Helper()
	want := map[string]int64{"chair": initialStock, "lamp": initialStock}
	for number, o := range c.rows {
		if c.states[number] != "CANCELED" {
			want[o.Item] -= o.Quantity
		}
	}
	require.Equal(t, want, c.left)
	require.GreaterOrEqual(t, min(want["chair"], want["lamp"]), int64(0))
}

// events: every event was handled once by each consumer, and no other.
func (c *counted) events(t *testing.T) {
	t.Helper()
	require.Zero(t, c.waiting)
	require.Zero(t, c.parked)
	mails, ledger := make(map[string]int64), make(map[string]int64)
	for number, o := range c.rows {
		mails[number+".OrderPlaced"] = 1
		switch c.states[number] {
		case "SHIPPED":
			mails[number+".OrderShipped"] = 1
			fallthrough
		case "PAID":
			mails[number+".OrderPaid"] = 1
			ledger[number] = o.amount()
		case "CANCELED":
			mails[number+".OrderCanceled"] = 1
		}
	}
	require.Empty(t, differences(mails, c.mails))
	require.Empty(t, differences(ledger, c.ledger))
}

// differences has a line for every key whose number is not the one it should be.
func differences(want, got map[string]int64) []string {
	var lines []string
	for key, n := range want {
		if got[key] != n {
			lines = append(lines, fmt.Sprintf("%s: %d, not %d", key, got[key], n))
		}
	}
	for key, n := range got {
		if _, ok := want[key]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %d, and should not be there", key, n))
		}
	}
	return lines
}

// money: who has paid was charged once, who has canceled got back what was charged.
func (c *counted) money(t *testing.T) {
	t.Helper()
	for number := range c.rows {
		moved := strings.Join(c.moved[number], " ")
		switch c.states[number] {
		case "PAID", "SHIPPED":
			require.Equal(t, "authorize capture", moved, number)
		default:
			require.Contains(t, []string{"", "authorize capture refund void"}, moved, number)
		}
	}
	for number := range c.moved {
		require.Contains(t, c.rows, number)
	}
}
