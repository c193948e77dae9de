package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"
)

// provider is who moves the money, over the network: it may do what it is asked
// to and never get to say so.
type provider interface {
	// Charge makes a charge and returns it with its ID. A second one under the
	// key returns the first. errDeclined and errUnavailable say that nothing was
	// charged; any other error leaves that open.
	Charge(ctx context.Context, key string, c charge) (charge, error)
	// Find returns the charge with the reference, or errNoCharge.
	Find(ctx context.Context, reference string) (charge, error)
	// Get returns the charge with the ID, or errNoCharge.
	Get(ctx context.Context, id string) (charge, error)
}

var (
	errDeclined    = errors.New("declined")
	errUnavailable = errors.New("the provider takes no charges now")
	errNoCharge    = errors.New("no such charge")
)

type charge struct {
	ID        string `json:"id"`
	Account   string `json:"account"`
	Reference string `json:"reference"` // ours, returned as it is
	order
}

// cardLimit is the amount above which the book declines.
const cardLimit = 1_000_000

// book pretends to be a provider. It keeps its charges in a file of one JSON
// line each, and says what it does.
type book struct {
	log   *log.Logger
	delay time.Duration // between a charge and the answer

	mu      sync.Mutex
	file    *os.File
	entries []entry
}

type entry struct {
	Key string `json:"key"`
	charge
}

func openBook(path string, delay time.Duration, log *log.Logger) (*book, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b := &book{log: log, delay: delay, file: file}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: line %d: %w", path, len(b.entries)+1, err), file.Close())
		}
		b.entries = append(b.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return b, nil
}

func (b *book) Close() error { return b.file.Close() }

// Charge implements provider.
func (b *book) Charge(ctx context.Context, key string, c charge) (charge, error) {
	made, err := b.enter(key, c)
	if err != nil {
		return charge{}, err
	}
	select {
	case <-time.After(b.delay):
		return made, nil
	case <-ctx.Done():
		return charge{}, ctx.Err()
	}
}

func (b *book) enter(key string, c charge) (charge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.entries, func(e entry) bool { return e.Key == key }); i >= 0 {
		b.log.Printf("%s was charged before as %s", c.Invoice, b.entries[i].ID)
		return b.entries[i].charge, nil
	}
	if c.Amount > cardLimit {
		b.log.Printf("%s declined", c.Invoice)
		return charge{}, fmt.Errorf("%w: over the limit of the card", errDeclined)
	}
	c.ID = fmt.Sprintf("ch-%d", len(b.entries)+1)
	e := entry{Key: key, charge: c}
	line, err := json.Marshal(e)
	if err != nil {
		return charge{}, err
	}
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		return charge{}, err
	}
	if err := b.file.Sync(); err != nil {
		return charge{}, err
	}
	b.entries = append(b.entries, e)
	b.log.Printf("%s charged as %s", c.Invoice, c.ID)
	return c, nil
}

// Find implements provider.
func (b *book) Find(_ context.Context, reference string) (charge, error) {
	return b.find(func(e entry) bool { return e.Reference == reference })
}

// Get implements provider.
func (b *book) Get(_ context.Context, id string) (charge, error) {
	return b.find(func(e entry) bool { return e.ID == id })
}

func (b *book) find(is func(entry) bool) (charge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.entries, is)
	if i < 0 {
		return charge{}, errNoCharge
	}
	return b.entries[i].charge, nil
}
