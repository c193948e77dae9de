package fsm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

func TestDefinitionIsChecked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", fsm.MaxStateBytes+1)
	tests := []struct {
		name string
		def  fsm.Definition
		want []string // lines of the error, in order
	}{
		{"zero", fsm.Definition{}, []string{"it has no states"}},
		{"no initial", fsm.Definition{Transitions: map[string][]string{"a": nil}}, []string{"it has no initial state"}},
		{"initial not declared", fsm.Definition{Initial: "b", Transitions: map[string][]string{"a": nil}}, []string{`the initial state "b" is not declared`}},
		{"next not declared", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": {"b"}}}, []string{`state "a": "b" can follow it, but is not declared`}},
		{"unreachable", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": nil, "b": {"c"}, "c": {"b"}}}, []string{
			`state "b": nothing leads to it from "a"`, `state "c": nothing leads to it from "a"`,
		}},
		{"twice", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": {"b", "b"}, "b": nil}}, []string{`state "a": "b" is listed twice`}},
		{"self loop", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": {"a"}}}, []string{`state "a": it follows itself, which can not be told from a repeat`}},
		{"names", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": {"", "-a", "a b", "a\n", "<b>", long, "\xff"}, "": nil, "-a": nil, "a b": nil, "a\n": nil, "<b>": nil, long: nil, "\xff": nil}}, []string{
			`state "": the name is empty`,
			`state "-a": the name must begin with a letter or a digit`,
			`state "<b>": the name may hold only letters, digits and "._-"`,
			`state "a\n": the name may hold only letters, digits and "._-"`,
			`state "a b": the name may hold only letters, digits and "._-"`,
			`state "` + long + `": the name has 65 bytes, at most 64 are allowed`,
			`state "\xff": the name is not valid UTF-8`,
		}},
		{"everything at once", fsm.Definition{Initial: "a", Transitions: map[string][]string{"a": {"a", "PIAD"}, "PAID": {"gone", "gone"}}}, []string{
			`state "PAID": "gone" can follow it, but is not declared`,
			`state "PAID": "gone" can follow it, but is not declared`,
			`state "PAID": "gone" is listed twice`,
			`state "a": it follows itself, which can not be told from a repeat`,
			`state "a": "PIAD" can follow it, but is not declared`,
			`state "PAID": nothing leads to it from "a"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := fsm.New(idem.NewMemoryStore(idem.MemoryConfig{}), scope, tt.def)
			require.ErrorIs(t, err, fsm.ErrInvalidDefinition)
			var got []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				got = append(got, strings.TrimPrefix(line, "invalid definition: "))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestNewIsChecked(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	_, err := fsm.New(nil, scope, orderStates())
	require.ErrorContains(t, err, "needs a store")
	_, err = fsm.New(store, "a/b", orderStates())
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	for _, d := range []time.Duration{-1, 0, idem.MaxRetention + 1} {
		_, err = fsm.New(store, scope, orderStates(), fsm.WithRetention(d))
		require.ErrorIs(t, err, idem.ErrInvalidPolicy)
	}
}

// TestDefinitionIsCopied: what the caller does to it later changes nothing.
func TestDefinitionIsCopied(t *testing.T) {
	t.Parallel()
	def := orderStates()
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), def)
	start(t, m, "1")
	picture := m.SVG()
	def.Transitions["PENDING"][0] = "COMPLETED"
	delete(def.Transitions, "PAID")
	require.Equal(t, picture, m.SVG())
	res := fire(t, m, "1", "PAID")
	require.Equal(t, fsm.Applied, res.Outcome)
	res.Instance.Allowed[0] = "PENDING"
	require.Equal(t, []string{"SHIPPED", "CANCELED"}, fire(t, m, "1", "PAID").Instance.Allowed)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	version := func(def fsm.Definition) string {
		return newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), def).Version()
	}
	first := version(orderStates())
	require.Len(t, first, 16)
	reordered := orderStates()
	reordered.Transitions["PENDING"] = []string{"CANCELED", "PAID"}
	reordered.Transitions["CANCELED"] = []string{}
	require.Equal(t, first, version(reordered))
	other := orderStates()
	other.Transitions["COMPLETED"] = []string{"CANCELED"}
	require.NotEqual(t, first, version(other))
}

// TestChangedDefinition: a program that was changed reads what an older one wrote.
func TestChangedDefinition(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	before := newMachine(t, store, orderStates())
	start(t, before, "1")
	fire(t, before, "1", "PAID")
	start(t, before, "2")

	changed := orderStates()
	delete(changed.Transitions, "PAID")
	changed.Transitions["PENDING"] = []string{"SHIPPED", "CANCELED"}
	after := newMachine(t, store, changed)
	for _, call := range []func() error{
		func() error { _, err := after.Get(t.Context(), "1"); return err },
		func() error { _, err := after.Start(t.Context(), "1"); return err },
		func() error { _, err := after.Fire(t.Context(), "1", "CANCELED", nil); return err },
	} {
		err := call()
		require.ErrorIs(t, err, fsm.ErrDefinitionChanged)
		var unknown *fsm.DefinitionError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, fsm.DefinitionError{State: "PAID", Stored: before.Version(), Current: after.Version()}, *unknown)
	}
	require.Equal(t, fsm.Applied, fire(t, after, "2", "SHIPPED").Outcome, "its state is still known")
	require.Equal(t, fsm.Applied, fire(t, before, "1", "SHIPPED").Outcome, "nothing was changed")
}

// TestForeignRecords are neither read nor written.
func TestForeignRecords(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	m := newMachine(t, store, orderStates())
	tests := []struct {
		id, kind, value string
		want            error
	}{
		{"other", "func", `{"state":"PAID"}`, fsm.ErrForeign},
		{"text", "fsm", "PAID", idem.ErrUndecodable},
		{"stateless", "fsm", "{}", fsm.ErrDefinitionChanged},
	}
	for _, tt := range tests {
		rec, err := store.Create(t.Context(), idem.Record{
			Key: idem.Key{Scope: scope, ID: tt.id}, State: idem.Completed, Kind: tt.kind, Value: []byte(tt.value), ExpiresAt: store.Now().Add(time.Hour),
		})
		require.NoError(t, err)
		_, err = m.Fire(t.Context(), tt.id, "SHIPPED", nil)
		require.ErrorIs(t, err, tt.want)
		_, err = m.Start(t.Context(), tt.id)
		require.ErrorIs(t, err, tt.want)
		_, err = m.Get(t.Context(), tt.id)
		require.ErrorIs(t, err, tt.want)
		got, err := store.Get(t.Context(), rec.Key)
		require.NoError(t, err)
		require.Equal(t, rec.Version, got.Version)
	}
}
