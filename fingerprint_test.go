package idem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
)

var testSecret = []byte("0123456789abcdef")

func fingerprint(t require.TestingT, input any) idem.Fingerprint {
	fp, err := idem.NewFingerprint(testSecret, input)
	require.NoError(t, err)
	return fp
}

func TestFingerprintIgnoresSpelling(t *testing.T) {
	t.Parallel()
	type pair struct {
		B string `json:"b"`
		A int    `json:"a"`
	}
	tests := []struct {
		name string
		a, b any
	}{
		{"member order", json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b":2,"a":1}`)},
		{"member order below the top", json.RawMessage(`{"x":{"a":1,"b":2}}`), json.RawMessage(`{"x":{"b":2,"a":1}}`)},
		{"space", json.RawMessage(`{"a":[1,2]}`), json.RawMessage(" { \"a\" : [ 1 ,\n2 ] } ")},
		{"number spelling", json.RawMessage(`{"a":100}`), json.RawMessage(`{"a":1.00e2}`)},
		{"negative zero", json.RawMessage(`{"a":0}`), json.RawMessage(`{"a":-0.0}`)},
		{"escapes", json.RawMessage(`{"a":"A/é😀"}`), json.RawMessage(`{"\u0061":"\u0041\/\u00e9\ud83d\ude00"}`)},
		{"struct and map", pair{"x", 1}, map[string]any{"a": 1, "b": "x"}},
		{"pointer and value", &pair{"x", 1}, pair{"x", 1}},
		{"what encoding/json escapes for HTML", "<&>", json.RawMessage(`"<&>"`)},
		{"order of parts", idem.Parts{{"a", []byte("1")}, {"b", nil}}, idem.Parts{{"b", []byte{}}, {"a", []byte("1")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := fingerprint(t, tt.a), fingerprint(t, tt.b)
			require.True(t, a.Equal(b))
			require.Empty(t, a.Diff(b))
			require.Equal(t, a.String(), b.String())
		})
	}
}

func TestFingerprintNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	type order struct {
		ID     string         `json:"id"`
		Amount int64          `json:"amount"`
		Card   map[string]any `json:"card,omitempty"`
	}
	base := order{"o-1", 100, map[string]any{"last4": "4242", "exp": []int{12, 30}}}
	with := func(change func(*order)) order {
		o := base
		o.Card = maps.Clone(base.Card)
		change(&o)
		return o
	}
	tests := []struct {
		name string
		b    any
		want []string
	}{
		{"nothing", with(func(*order) {}), nil},
		{"one amount", with(func(o *order) { o.Amount = 101 }), []string{"amount"}},
		{"two members, sorted", with(func(o *order) { o.ID, o.Amount = "o-2", 1 }), []string{"amount", "id"}},
		{"below the top", with(func(o *order) { o.Card["exp"] = []int{12, 31} }), []string{"card"}},
		{"order of a list counts", with(func(o *order) { o.Card["exp"] = []int{30, 12} }), []string{"card"}},
		{"a member is missing", with(func(o *order) { o.Card = nil }), []string{"card"}},
		{"another shape", []int{1}, []string{"amount", "card", "id", "input"}},
		{"no input", nil, []string{"amount", "card", "id"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := fingerprint(t, base), fingerprint(t, tt.b)
			require.Equal(t, tt.want, a.Diff(b))
			require.Equal(t, tt.want, b.Diff(a))
			require.Equal(t, len(tt.want) == 0, a.Equal(b))
		})
	}
	require.Equal(t, []string{"amount", "card", "id"}, fingerprint(t, base).Names())
}

func TestFingerprintTellsApart(t *testing.T) {
	t.Parallel()
	inputs := map[string]any{
		"nil": nil, "null": (*int)(nil), "object": struct{}{}, "list": []int{}, "zero": 0, "false": false,
		"empty text": "", "text null": "null", "no bytes": []byte(nil), "bytes": []byte("x"), "text": "x",
		"2^53": int64(9007199254740992), "2^53+1": int64(9007199254740993), "2^53+2": json.RawMessage("9007199254740994"),
		"max": uint64(math.MaxUint64), "max-1": uint64(math.MaxUint64 - 1),
		"one part": idem.Parts{{"a", []byte("bc")}}, "name longer": idem.Parts{{"ab", []byte("c")}},
		"two parts": idem.Parts{{"a", []byte("b")}, {"c", nil}},
	}
	for a := range inputs {
		for b := range inputs {
			require.Equal(t, a == b, fingerprint(t, inputs[a]).Equal(fingerprint(t, inputs[b])), "%s and %s", a, b)
		}
	}
	require.True(t, fingerprint(t, nil).IsZero())
	require.Equal(t, "none", fingerprint(t, nil).String())
	require.Equal(t, idem.Fingerprint{}, fingerprint(t, nil))
	require.True(t, fingerprint(t, idem.Parts{}).IsZero(), "no parts are no input")
}

func TestFingerprintRefuses(t *testing.T) {
	t.Parallel()
	cause := errors.New("cannot")
	many := make(idem.Parts, 65)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	tests := []struct {
		name  string
		input any
	}{
		{"channel", make(chan int)},
		{"not a number", math.NaN()},
		{"broken JSON", json.RawMessage(`{"a":`)},
		{"member given twice", json.RawMessage(`{"a":1,"a":2}`)},
		{"member given twice below the top", json.RawMessage(`{"x":[{"a":1,"\u0061":2}]}`)},
		{"half a surrogate pair", json.RawMessage(`"\ud800"`)},
		{"marshaler", failingMarshaler{cause}},
		{"too many parts", many},
		{"part without a name", idem.Parts{{"", nil}}},
		{"part with a long name", idem.Parts{{strings.Repeat("n", 65), nil}}},
		{"part given twice", idem.Parts{{"a", nil}, {"b", nil}, {"a", []byte("1")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := idem.NewFingerprint(testSecret, tt.input)
			require.ErrorIs(t, err, idem.ErrInvalidInput)
			_, err = idem.Do(t.Context(), memoryGuard(t), order, tt.input, mustNotRun[int](t))
			require.ErrorIs(t, err, idem.ErrInvalidInput)
		})
	}
	_, err := idem.NewFingerprint(testSecret, failingMarshaler{cause})
	require.ErrorIs(t, err, cause)
	_, err = idem.NewFingerprint(testSecret, many[:64])
	require.NoError(t, err)
	_, err = idem.NewFingerprint(testSecret, idem.Parts{{strings.Repeat("n", 64), nil}})
	require.NoError(t, err)
}

type failingMarshaler struct{ err error }

func (m failingMarshaler) MarshalJSON() ([]byte, error) { return nil, m.err }

func TestFingerprintOfManyMembers(t *testing.T) {
	t.Parallel()
	object := func(n int) map[string]int {
		m := make(map[string]int, n)
		for i := range n {
			m[fmt.Sprintf("m%03d", i)] = i
		}
		return m
	}
	require.Len(t, fingerprint(t, object(64)).Names(), 64)
	require.NotContains(t, fingerprint(t, object(64)).Names(), "other members")

	a := fingerprint(t, object(200))
	require.Len(t, a.Names(), 64)
	require.True(t, a.Equal(fingerprint(t, object(200))))
	tests := []struct {
		change string
		want   string
	}{{"m000", "m000"}, {"m062", "m062"}, {"m063", "other members"}, {"m199", "other members"}}
	for _, tt := range tests {
		changed := object(200)
		changed[tt.change] = -1
		require.Equal(t, []string{tt.want}, a.Diff(fingerprint(t, changed)), tt.change)
	}
}

func TestFingerprintOfOddMemberNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	object := map[string]int{
		"": 1, "other members": 2, "sha256:00": 3, "input": 4, long: 5, long + "a": 6, long + "b": 7, strings.Repeat("é", 33): 8,
	}
	a := fingerprint(t, object)
	require.Len(t, a.Names(), len(object), "no two members share a name")
	require.Contains(t, a.Names(), "input")
	require.Contains(t, a.Names(), long)
	require.NotContains(t, a.Names(), "sha256:00")
	for name := range object {
		changed := maps.Clone(object)
		changed[name] = 0
		require.Len(t, a.Diff(fingerprint(t, changed)), 1, name)
	}
}

func TestFingerprintIsKeyed(t *testing.T) {
	t.Parallel()
	a := fingerprint(t, 1234)
	b, err := idem.NewFingerprint([]byte("another secret.."), 1234)
	require.NoError(t, err)
	require.False(t, a.Equal(b))
	require.Equal(t, []string{"input"}, a.Diff(b))
	for pin := range 10_000 { // all guesses, by somebody who does not know the secret
		guess, err := idem.NewFingerprint(nil, pin)
		require.NoError(t, err)
		require.False(t, a.Equal(guess))
	}
}

func TestFingerprintLaws(t *testing.T) {
	t.Parallel()
	object := rapid.MapOfN(rapid.StringMatching(`[abc]`), rapid.IntRange(0, 2), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := object.Draw(t, "a"), object.Draw(t, "b"), object.Draw(t, "c")
		fa, fb, fc := fingerprint(t, a), fingerprint(t, b), fingerprint(t, c)
		var want []string
		for name := range maps.Keys(a) {
			if v, ok := b[name]; !ok || v != a[name] {
				want = append(want, name)
			}
		}
		for name := range maps.Keys(b) {
			if _, ok := a[name]; !ok {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		require.Equal(t, want, fa.Diff(fb))
		require.Equal(t, want, fb.Diff(fa), "symmetric")
		require.Equal(t, maps.Equal(a, b), fa.Equal(fb))
		require.True(t, fa.Equal(fa))
		for _, name := range fa.Diff(fc) { // what differs between the ends differs on the way
			require.True(t, slices.Contains(fa.Diff(fb), name) || slices.Contains(fb.Diff(fc), name))
		}
	})
}

// What is stored must stay comparable: these texts may change only together with
// the fingerprint's version.
func TestFingerprintFormat(t *testing.T) {
	t.Parallel()
	require.Equal(t, "v1:0790e2e2847e3d29", fingerprint(t, map[string]any{"amount": 100, "currency": "EUR"}).String())
	require.Equal(t, "v1:0e99143b7d5e73d2", fingerprint(t, []byte("raw")).String())
}
