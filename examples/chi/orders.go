package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-chi/chi/v5"
)

type order struct {
	ID     int    `json:"id"`
	Item   string `json:"item"`
	State  string `json:"state"`
	tenant string
}

// orders are kept in memory: what is shown here is around them.
type orders struct {
	mu     sync.Mutex
	states map[int]order
}

func (o *orders) place(w http.ResponseWriter, r *http.Request) {
	var placed order
	if err := json.NewDecoder(r.Body).Decode(&placed); err != nil || placed.Item == "" {
		http.Error(w, "name an item", http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	placed.ID, placed.State, placed.tenant = len(o.states)+1, "placed", tenantOf(r)
	o.states[placed.ID] = placed
	o.mu.Unlock()
	w.Header().Set("Location", "/v1/orders/"+strconv.Itoa(placed.ID))
	write(w, http.StatusCreated, placed)
}

func (o *orders) show(w http.ResponseWriter, r *http.Request) {
	if found, ok := o.find(w, r); ok {
		write(w, http.StatusOK, found)
	}
}

func (o *orders) cancel(w http.ResponseWriter, r *http.Request) { o.change(w, r, "cancelled") }

func (o *orders) ship(w http.ResponseWriter, r *http.Request) { o.change(w, r, "shipped") }

// change moves an order on, once: without protection a repeat would be told that
// it comes too late.
func (o *orders) change(w http.ResponseWriter, r *http.Request, state string) {
	found, ok := o.find(w, r)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if found = o.states[found.ID]; found.State != "placed" {
		http.Error(w, "the order is "+found.State, http.StatusConflict)
		return
	}
	found.State = state
	o.states[found.ID] = found
	write(w, http.StatusOK, found)
}

// find answers with 404 for an order of another tenant.
func (o *orders) find(w http.ResponseWriter, r *http.Request) (order, bool) {
	id, _ := strconv.Atoi(chi.URLParam(r, "id"))
	o.mu.Lock()
	found, ok := o.states[id]
	o.mu.Unlock()
	if !ok || found.tenant != tenantOf(r) {
		http.Error(w, "no such order", http.StatusNotFound)
		return order{}, false
	}
	return found, true
}

func write(w http.ResponseWriter, code int, o order) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // a client that is gone cannot be told
}
