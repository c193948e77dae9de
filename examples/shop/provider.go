package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/idembolt/idem"
)

// cardLimit is the amount above which the provider declines.
const cardLimit = 1_000_000

var errDeclined = errors.New("declined: over the limit of the card")

// provider pretends to be who moves the money. It keeps a file of its own, one line
// of JSON for each movement, and makes one movement per key.
type provider struct {
	delay time.Duration // between a movement and the answer

	mu   sync.Mutex
	file *os.File
	made map[string]movement // by key
}

type movement struct {
	ID     string `json:"id"`
	Key    string `json:"key"`
	Op     string `json:"op"`
	Order  string `json:"order"`
	Amount int64  `json:"amount"`
}

func openProvider(path string, delay time.Duration) (*provider, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	p := &provider{delay: delay, file: file, made: make(map[string]movement)}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m movement
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
		p.made[m.Key] = m
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// do makes a movement and returns its ID. That the context ends does not say that
// nothing was done.
func (p *provider) do(ctx context.Context, key, op, order string, amount int64) (string, error) {
	m, err := p.enter(movement{Key: key, Op: op, Order: order, Amount: amount})
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(p.delay):
		return m.ID, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *provider) enter(m movement) (movement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.made[m.Key]; ok {
		return before, nil
	}
	if m.Amount > cardLimit {
		return m, idem.Permanent(errDeclined)
	}
	m.ID = fmt.Sprintf("m-%d", len(p.made)+1)
	line, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	if _, err := p.file.Write(append(line, '\n')); err != nil {
		return m, idem.Unknown(err)
	}
	p.made[m.Key] = m
	return m, nil
}

func (p *provider) close() error { return p.file.Close() }
