package proxy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/idemhttp"
)

// setting is what may follow a route or a policy as NAME=VALUE.
type setting[T any] struct {
	name string
	set  func(target *T, value string) error
}

// set applies words such as lease=1m and returns what is wrong with them.
func set[T any](target *T, words []string, settings []setting[T]) (errs []error) {
	seen := make(map[string]bool)
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		known := find(settings, name)
		switch {
		case !found:
			errs = append(errs, fmt.Errorf("%q is not a setting: write NAME=VALUE", word))
		case known == nil:
			errs = append(errs, fmt.Errorf("unknown setting %q%s", name, didYouMean(name, names(settings))))
		case seen[name]:
			errs = append(errs, fmt.Errorf("%s is given twice", name))
		case value == "":
			errs = append(errs, fmt.Errorf("%s has no value", name))
		default:
			if err := known(target, value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		seen[name] = true
	}
	return errs
}

func find[T any](settings []setting[T], name string) func(*T, string) error {
	for _, s := range settings {
		if s.name == name {
			return s.set
		}
	}
	return nil
}

func names[T any](settings []setting[T]) []string {
	var all []string
	for _, s := range settings {
		all = append(all, s.name)
	}
	return all
}

func routeSettings() []setting[Route] {
	return []setting[Route]{
		{"policy", func(r *Route, v string) error { r.Policy = v; return nil }},
		{"key", func(r *Route, v string) error {
			return choose(&r.Key, v, choice[KeyRule]{"required", KeyRequired}, choice[KeyRule]{"optional", KeyOptional})
		}},
		{"timeout", func(r *Route, v string) error { return positive(&r.Timeout, v) }},
		{"wait", func(r *Route, v string) error { return duration(&r.Wait, v) }},
		{"max-body", func(r *Route, v string) error { return size(&r.MaxBody, v, 1<<40) }},
		{"max-response", func(r *Route, v string) error { return size(&r.MaxResponse, v, 1<<30) }},
		{"store-body", func(r *Route, v string) error {
			return choose(&r.StoreBody, v, choice[idemhttp.Keep]{"always", idemhttp.Always}, choice[idemhttp.Keep]{"never", idemhttp.Never})
		}},
	}
}

func policySettings() []setting[idem.Policy] {
	return []setting[idem.Policy]{
		{"retention", func(p *idem.Policy, v string) error { return duration(&p.Retention, v) }},
		{"lease", func(p *idem.Policy, v string) error { return duration(&p.Lease, v) }},
		{"retry-window", func(p *idem.Policy, v string) error { return duration(&p.RetryWindow, v) }},
		{"interrupted", func(p *idem.Policy, v string) error {
			return choose(&p.OnInterrupted, v, choice[idem.Recovery]{"fail", idem.FailClosed()}, choice[idem.Recovery]{"rerun", idem.Rerun()})
		}},
		{"durability", func(p *idem.Policy, v string) error {
			return choose(&p.Durability, v, choice[idem.Durability]{"strict", idem.Strict}, choice[idem.Durability]{"relaxed", idem.Relaxed})
		}},
	}
}

// checkPolicy is Policy.Validate in the words of the file.
func checkPolicy(p idem.Policy) error {
	err := p.Validate()
	var broken *idem.PolicyError
	if !errors.As(err, &broken) {
		return err
	}
	words := strings.NewReplacer("RetryWindow", "retry-window", "Retention", "retention", "Lease", "lease", "Durability", "durability")
	text := words.Replace(broken.Field + " " + broken.Rule)
	if broken.Field == "Retention" && p.Retention > 0 && p.Retention <= p.RetryWindow {
		text += "; set one of them"
	}
	return errors.New(text)
}

// choice is a word and what it stands for.
type choice[T any] struct {
	word  string
	value T
}

func choose[T any](to *T, word string, choices ...choice[T]) error {
	var words []string
	for _, c := range choices {
		if c.word == word {
			*to = c.value
			return nil
		}
		words = append(words, c.word)
	}
	return fmt.Errorf("%q is not known: use %s", word, strings.Join(words, " or "))
}

func duration(to *time.Duration, text string) error {
	d, err := render.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return fmt.Errorf("invalid duration %q: it is negative", text)
	}
	*to = d
	return nil
}

func positive(to *time.Duration, text string) error {
	var d time.Duration
	if err := duration(&d, text); err != nil {
		return err
	}
	if d == 0 {
		return errors.New("it must be longer than 0")
	}
	*to = d
	return nil
}

func size(to *int64, text string, limit int64) error {
	n, err := render.ParseSize(text)
	switch {
	case err != nil:
		return err
	case n > limit:
		return fmt.Errorf("invalid size %q: at most %d bytes", text, limit)
	}
	*to = n
	return nil
}
