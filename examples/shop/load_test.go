package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/idembolt/idem/idemhttp"
	"github.com/idembolt/idem/token"
)

// load is a number of customers who know what they want, and ask for it until they
// are told what became of it, whatever happens to the shop.
type load struct {
	sent chan struct{} // one for each request

	mu   sync.Mutex
	url  string
	told []told
}

// told is what a customer was told of an order. A status of 0 is one that was not
// asked for.
type told struct {
	number string
	order
	placed, paid, shipped, canceled got
}

func (l *load) moveTo(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.url = url
}

// customer orders until stop is closed, and ends what it has begun. It returns an
// error for an answer that nobody should get.
func (l *load) customer(ctx context.Context, name int, random *rand.Rand, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		w := told{number: fmt.Sprintf("c%d-%d", name, n), order: order{Item: "chair", Quantity: 1 + random.Int64N(3)}}
		if random.IntN(10) == 0 { // these sell out, and the larger one is over the limit of the card
			w.order = order{Item: "lamp", Quantity: []int64{250, 600}[random.IntN(2)]}
		}
		if err := l.buy(ctx, random, &w); err != nil {
			return fmt.Errorf("%+v: %w", w, err)
		}
		l.mu.Lock()
		l.told = append(l.told, w)
		l.mu.Unlock()
	}
}

func (l *load) buy(ctx context.Context, random *rand.Rand, w *told) (err error) {
	if random.IntN(4) == 0 {
		err = l.byForm(ctx, w)
	} else {
		err = l.byKey(ctx, w)
	}
	if err != nil || w.placed.status == http.StatusConflict {
		return err
	}
	pay := func() error { return l.until(ctx, w.number+"/pay", &w.paid) }
	cancel := func() error { return l.until(ctx, w.number+"/cancel", &w.canceled) }
	switch random.IntN(8) {
	case 0: // changes his mind later
		return nil
	case 1:
		return cancel()
	case 2: // changes his mind while the card is charged
		paid := make(chan error, 1)
		go func() { paid <- pay() }()
		err = cancel()
		if payErr := <-paid; err == nil {
			err = payErr
		}
		return err
	}
	if err := pay(); err != nil {
		return err
	}
	if w.paid.status == http.StatusConflict {
		return cancel()
	}
	return l.until(ctx, w.number+"/ship", &w.shipped)
}

// byKey places an order as a program does: under one key for all tries.
func (l *load) byKey(ctx context.Context, w *told) error {
	body := fmt.Sprintf(`{"number":%q,"item":%q,"quantity":%d}`, w.number, w.Item, w.Quantity)
	var err error
	w.placed, err = l.ask(ctx, http.MethodPost, "/orders", body,
		http.Header{"Content-Type": {"application/json"}, idemhttp.HeaderKey: {"key-of-" + w.number}})
	if err == nil && w.placed.status != http.StatusConflict && w.placed != (got{http.StatusCreated, body}) {
		err = fmt.Errorf("unexpected: %+v", w.placed)
	}
	return err
}

// byForm places an order as a browser does whose user presses the button again.
func (l *load) byForm(ctx context.Context, w *told) error {
	page, err := l.ask(ctx, http.MethodGet, "/order", "", nil)
	if err != nil {
		return err
	}
	form := url.Values{}
	for _, field := range fields.FindAllStringSubmatch(page.body, -1) {
		form.Set(field[1], field[2])
	}
	if len(form.Get(token.FormField)) != 32 {
		return fmt.Errorf("no token: %+v", page)
	}
	w.number = form.Get("number")
	form.Set("item", w.Item)
	form.Set("quantity", fmt.Sprint(w.Quantity))
	w.placed, err = l.ask(ctx, http.MethodPost, "/order", form.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if err == nil && w.placed.status != http.StatusConflict && w.placed.status != http.StatusSeeOther {
		err = fmt.Errorf("unexpected: %+v", w.placed)
	}
	return err
}

func (l *load) until(ctx context.Context, path string, answer *got) (err error) {
	*answer, err = l.ask(ctx, http.MethodPost, "/orders/"+path, "", nil)
	if err == nil && answer.status != http.StatusOK && answer.status != http.StatusConflict {
		err = fmt.Errorf("%s: unexpected: %+v", path, *answer)
	}
	return err
}

// ask sends the same request until there is an answer that is not 503.
func (l *load) ask(ctx context.Context, method, path, body string, header http.Header) (got, error) {
	for {
		if answer, err := l.send(ctx, method, path, body, header); err == nil && answer.status != http.StatusServiceUnavailable {
			return answer, nil
		}
		select {
		case <-time.After(5 * time.Millisecond): // nobody there, or not yet
		case <-ctx.Done():
			return got{}, ctx.Err()
		}
	}
}

func (l *load) send(ctx context.Context, method, path, body string, header http.Header) (got, error) {
	l.mu.Lock()
	base := l.url
	l.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return got{}, err
	}
	req.Header = header.Clone()
	select {
	case l.sent <- struct{}{}:
	default: // nobody counts
	}
	resp, err := stay.Do(req)
	if err != nil {
		return got{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, strings.TrimSpace(string(answer))}, err
}
