package canonjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSameValueAsEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawSpelling(t, drawValue(t, 4))
		out, err := Canonicalize([]byte(in))
		require.NoError(t, err)
		require.Equal(t, decode(t, []byte(in)), decode(t, out))
		again, err := Canonicalize(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	})
}

func TestSpellingDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 4)
		first, err := Canonicalize([]byte(drawSpelling(t, value)))
		require.NoError(t, err)
		second, err := Canonicalize([]byte(drawSpelling(t, value)))
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}

func TestMembersMatchCanonicalize(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(drawSpelling(t, drawObject(t, 3)))
		want, err := Canonicalize(in)
		require.NoError(t, err)
		members, ok, err := Members(in)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, string(want), string(joinMembers(members)))
	})
}

func TestCompareUTF16(t *testing.T) {
	t.Parallel()
	// Characters at the borders where UTF-8 and UTF-16 order differ.
	char := rapid.SampledFrom([]rune("\x00az\x7f\u0080\u07ff\u0800\ud7ff\ue000\uefff\uf000\ufb33\uffff\U00010000\U0001f600\U0010ffff"))
	text := rapid.OneOf(rapid.StringOfN(char, 0, 4, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		got := compareUTF16([]byte(a), []byte(b))
		require.Equal(t, want, max(-1, min(1, got)))
	})
}

func FuzzCanonicalize(f *testing.F) {
	seeds := []string{
		``, `null`, `-0`, `1.50e+1`, `1e400`, `9007199254740993`, `1e99999999999999999999`, `"\ud83d\ude00"`, `"\ud800"`,
		"\"\xff\"", `{"b":[1,{}],"a":"\n\u0001"}`, `{"a":1,"\u0061":2}`, `[[],[[]]]`, ` {"\ufb33":1,"\ud83d\ude00":2} `,
		strings.Repeat("[", MaxDepth+1),
	}
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Canonicalize(in)
		members, ok, membersErr := Members(in)
		require.Equal(t, err, membersErr)
		if err != nil {
			require.Nil(t, out)
			// What encoding/json accepts is refused only for a reason it lacks.
			require.False(t, json.Valid(in) && errors.Is(err, ErrSyntax))
			return
		}
		require.True(t, json.Valid(in))
		require.True(t, json.Valid(out))
		require.Equal(t, decode(t, in), decode(t, out))
		again, err := Canonicalize(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
		if ok {
			require.Equal(t, string(out), string(joinMembers(members)))
		}
	})
}

func joinMembers(members []Member) []byte {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, []byte(m.Name)), ':')
		out = append(out, m.Value...)
	}
	return append(out, '}')
}

// number stands for any decimal whose float64, infinities included, is the same.
type number float64

// decode is encoding/json's reading of data.
func decode(t require.TestingT, data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return numbers(v)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := strconv.ParseFloat(v.String(), 64)
		if f == 0 {
			f = 0 // -0
		}
		return number(f)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	}
	return v
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return nil
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return json.Number(fmt.Sprintf("%de%d", rapid.Int64().Draw(t, "digits"), rapid.IntRange(-400, 400).Draw(t, "exponent")))
	case 4:
		return rapid.String().Draw(t, "string")
	case 5:
		array := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range array {
			array[i] = drawValue(t, depth-1)
		}
		return array
	}
	return drawObject(t, depth)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "size") {
		object[rapid.String().Draw(t, "name")] = drawValue(t, depth-1)
	}
	return object
}

// drawSpelling writes v with random white space, escapes and member order.
func drawSpelling(t *rapid.T, v any) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r "}).Draw(t, "space")
	var items []string
	brackets := "[]"
	switch v := v.(type) {
	case string:
		return space + drawString(t, v)
	case []any:
		for _, item := range v {
			items = append(items, drawSpelling(t, item))
		}
	case map[string]any:
		brackets = "{}"
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			items = append(items, space+drawString(t, name)+space+":"+drawSpelling(t, v[name]))
		}
	default:
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return space + string(text) + space
	}
	return brackets[:1] + strings.Join(items, space+",") + space + brackets[1:] + space
}

func drawString(t *rapid.T, s string) string {
	var b strings.Builder
	for _, r := range s {
		switch must := r < ' ' || r == '"' || r == '\\'; {
		case must || rapid.IntRange(0, 3).Draw(t, "escape") == 0:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "hex"), u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}
