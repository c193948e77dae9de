package token_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/idembolt/idem/token"
)

// step is one thing that happens in a model run.
type step struct {
	After   time.Duration
	Do      string // issue, consume, inspect or expire
	Token   int    // counts back from the last one
	Subject string
}

func steps(rt *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			After:   time.Duration(rapid.IntRange(0, 12).Draw(rt, "half seconds")) * time.Second / 2,
			Do:      rapid.SampledFrom([]string{"issue", "consume", "consume", "inspect", "expire"}).Draw(rt, "do"),
			Token:   rapid.IntRange(0, 3).Draw(rt, "token"),
			Subject: rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(rt, "subject"),
		}
	}), 1, 60).Draw(rt, "steps")
}

// TestModel compares with a list of what was issued and used when.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		todo := steps(rt)
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = follow(t, todo) })
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

const modelTTL, modelMemory = 5 * time.Second, 10 * time.Second

// modelToken is what should be known of a token.
type modelToken struct {
	value, subject string
	expires        time.Time
	used           bool
}

// consume is what Consume should return, and inspect what Inspect should say.
func (m *modelToken) consume(subject string) error {
	now := time.Now()
	switch {
	case !now.Before(m.expires.Add(modelMemory)):
		return token.ErrUnknown
	case subject != m.subject:
		return token.ErrSubject
	case m.used:
		return token.ErrUsed
	case !now.Before(m.expires):
		return token.ErrExpired
	}
	m.used = true
	return nil
}

func (m *modelToken) inspect() string {
	now := time.Now()
	switch {
	case !now.Before(m.expires.Add(modelMemory)):
		return outcome(token.ErrUnknown)
	case m.used:
		return token.Used.String()
	case !now.Before(m.expires):
		return token.Expired.String()
	}
	return token.Open.String()
}

func follow(t *testing.T, todo []step) error {
	store := newMemory(t)
	tokens := newTokens(t, store, token.WithTTL(modelTTL), token.WithMemory(modelMemory))
	var issued []*modelToken
	for i, s := range todo {
		time.Sleep(s.After)
		if s.Do == "issue" || len(issued) <= s.Token {
			value := issue(t, tokens, s.Subject)
			issued = append(issued, &modelToken{value: value, subject: s.Subject, expires: time.Now().Add(modelTTL)})
			continue
		}
		m := issued[len(issued)-1-s.Token]
		var got, want string
		switch s.Do {
		case "consume":
			got, want = outcome(tokens.Consume(t.Context(), m.value, s.Subject)), outcome(m.consume(s.Subject))
		case "inspect":
			status, err := tokens.Inspect(t.Context(), m.value)
			if got, want = status.State.String(), m.inspect(); err != nil {
				got = outcome(err)
			}
		case "expire":
			if _, err := store.Expire(t.Context(), 10); err != nil {
				return err
			}
		}
		if got != want {
			return fmt.Errorf("step %d, %+v: %s, want %s", i, s, got, want)
		}
	}
	return nil
}
