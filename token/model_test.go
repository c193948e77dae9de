package token_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// outcome names what a call returned.
func outcome(err error) string {
	for _, known := range []error{token.ErrUsed, token.ErrExpired, token.ErrSubject, token.ErrUnknown} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}

// tokenOp is a call about a token that does not expire; tokens are independent.
type tokenOp struct {
	token   int
	inspect bool
	subject string
}

// tokenModel is one token of alice's: used or not. The output is an outcome, or
// the state that Inspect has seen.
var tokenModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byToken := make(map[int][]porcupine.Operation)
		for _, op := range history {
			n := op.Input.(tokenOp).token
			byToken[n] = append(byToken[n], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byToken {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return false },
	Step: func(state, input, output any) (bool, any) {
		used, op := state.(bool), input.(tokenOp)
		switch {
		case op.inspect && used:
			return output == token.Used.String(), used
		case op.inspect:
			return output == token.Open.String(), used
		case op.subject != "alice":
			return output == outcome(token.ErrSubject), used
		case used:
			return output == outcome(token.ErrUsed), used
		}
		return output == outcome(nil), true
	},
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			require.True(t, porcupine.CheckOperations(tokenModel, recordTokens(t, s)))
		})
	}
}

func recordTokens(t *testing.T, store idem.Store) []porcupine.Operation {
	tokens := newTokens(t, store)
	values := make([]string, 15)
	for i := range values {
		values[i] = issue(t, tokens, "alice")
	}
	histories := make([][]porcupine.Operation, 10)
	began := time.Now()
	var wg sync.WaitGroup
	for client := range histories {
		wg.Go(func() {
			for i := range 3 * len(values) {
				op := tokenOp{token: i / 3, inspect: (client+i)%4 == 0, subject: "alice"}
				if (client+i)%5 == 0 {
					op.subject = "bob"
				}
				call := time.Since(began).Nanoseconds()
				got := doToken(t.Context(), tokens, values[op.token], op)
				histories[client] = append(histories[client], porcupine.Operation{
					ClientId: client, Input: op, Call: call, Output: got, Return: time.Since(began).Nanoseconds(),
				})
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

func doToken(ctx context.Context, tokens *token.Tokens, value string, op tokenOp) string {
	if !op.inspect {
		return outcome(tokens.Consume(ctx, value, op.subject))
	}
	status, err := tokens.Inspect(ctx, value)
	if err != nil {
		return err.Error()
	}
	return status.State.String()
}

func TestModelRejectsBadHistories(t *testing.T) {
	t.Parallel()
	consume, inspect := tokenOp{subject: "alice"}, tokenOp{inspect: true}
	won, used := outcome(nil), outcome(token.ErrUsed)
	tests := []struct {
		name          string
		first, second porcupine.Operation
		want          bool
	}{
		{"one winner", porcupine.Operation{Input: consume, Output: used, Return: 9}, porcupine.Operation{Input: consume, Output: won, Return: 9}, true},
		{"two winners", porcupine.Operation{Input: consume, Output: won, Return: 9}, porcupine.Operation{Input: consume, Output: won, Return: 9}, false},
		{"no winner", porcupine.Operation{Input: consume, Output: used, Return: 9}, porcupine.Operation{Input: consume, Output: used, Return: 9}, false},
		{"open after use", porcupine.Operation{Input: consume, Output: won, Return: 1}, porcupine.Operation{Input: inspect, Output: "open", Call: 2, Return: 3}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.second.ClientId = 1
			require.Equal(t, tt.want, porcupine.CheckOperations(tokenModel, []porcupine.Operation{tt.first, tt.second}))
		})
	}
}
