package canonjson

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCanonicalize(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", `{"a":[1,2],"b":{}}`},
		{"empty array", "[ ]", `[]`},
		{"empty string", `""`, `""`},
		{"literals", `[null,true,false]`, `[null,true,false]`},
		{"names in order", `{"b":1,"a":2,"":3}`, `{"":3,"a":2,"b":1}`},
		{"prefix before longer name", `{"aa":1,"a":2}`, `{"a":2,"aa":1}`},
		{"nested order", `{"z":{"b":{"d":1,"c":2},"a":3},"y":[{"f":4,"e":5}]}`,
			`{"y":[{"e":5,"f":4}],"z":{"a":3,"b":{"c":2,"d":1}}}`},
		{"order of unescaped names", `{"!":1,"\n":2}`, `{"\n":2,"!":1}`},
		{"short escapes", `"\u0008\u0009\u000a\u000c\u000d\u0022\u005C"`, `"\b\t\n\f\r\"\\"`},
		{"escapes kept", `"\b\t\n\f\r\"\\"`, `"\b\t\n\f\r\"\\"`},
		{"other control characters", `"\u0000\u000B\u001F"`, `"\u0000\u000b\u001f"`},
		{"needless escapes", `"\/\u0041\u00e9\u2028\u007f"`, "\"/Aé\u2028\x7f\""},
		{"no html escapes", `"<a href='x'>&</a>"`, `"<a href='x'>&</a>"`},
		{"surrogate pair", `"\uD83D\uDE00"`, `"😀"`},
		{"last code point", `"\udbff\udfff"`, "\"\U0010ffff\""},
		{"replacement character", `"\ufffd"`, "\"\ufffd\""},
		{"escaped backslash before u", `"\\ud800"`, `"\\ud800"`},
		{"no unicode normalisation", `["é","e\u0301"]`, "[\"é\",\"e\u0301\"]"},
		{"same name in other objects", `[{"a":1},{"a":{"a":1}}]`, `[{"a":1},{"a":{"a":1}}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requireCanonical(t, tt.in, tt.want)
		})
	}
}

// The examples of RFC 8785, sections 3.2.2 and 3.2.3.
func TestCanonicalizeRFCExamples(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{
			// The RFC rounds the first number to 333333333.3333333.
			"3.2.2 primitives",
			`{
			  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			  "literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],` +
				`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"3.2.3 sorting",
			`{
			  "\u20ac": "Euro Sign",
			  "\r": "Carriage Return",
			  "\ufb33": "Hebrew Letter Dalet With Dagesh",
			  "1": "One",
			  "\ud83d\ude00": "Emoji: Grinning Face",
			  "\u0080": "Control",
			  "\u00f6": "Latin Small Letter O With Diaeresis"
			}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\"," +
				"\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\"," +
				"\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requireCanonical(t, tt.in, tt.want)
		})
	}
}

func TestCanonicalizeErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		offset   string
		want     error
	}{
		{"empty", "", "byte 0:", ErrSyntax},
		{"only space", "  ", "byte 2:", ErrSyntax},
		{"byte order mark", "\ufeff1", "byte 0:", ErrSyntax},
		{"nul", "\x00", "byte 0:", ErrSyntax},
		{"nul after value", "1\x00", "byte 1:", ErrSyntax},
		{"two values", "1 2", "byte 2:", ErrSyntax},
		{"bracket after value", "{}}", "byte 2:", ErrSyntax},
		{"other white space", "\v1", "byte 0:", ErrSyntax},
		{"comment", "1 // one", "byte 2:", ErrSyntax},
		{"open array", "[1", "byte 2:", ErrSyntax},
		{"comma at array end", "[1,]", "byte 3:", ErrSyntax},
		{"comma at array start", "[,1]", "byte 1:", ErrSyntax},
		{"no comma", "[1 2]", "byte 3:", ErrSyntax},
		{"wrong bracket", "[1}", "byte 2:", ErrSyntax},
		{"open object", `{"a":1`, "byte 6:", ErrSyntax},
		{"comma at object end", `{"a":1,}`, "byte 7:", ErrSyntax},
		{"no colon", `{"a" 1}`, "byte 5:", ErrSyntax},
		{"no value", `{"a":}`, "byte 5:", ErrSyntax},
		{"bare name", `{a:1}`, "byte 1:", ErrSyntax},
		{"number as name", `{1:1}`, "byte 1:", ErrSyntax},
		{"bad literal", "nul", "byte 0:", ErrSyntax},
		{"long literal", "nulls", "byte 4:", ErrSyntax},
		{"capital literal", "True", "byte 0:", ErrSyntax},
		{"nan", "NaN", "byte 0:", ErrSyntax},
		{"open string", `"a`, "byte 2:", ErrSyntax},
		{"string ends in backslash", `"\`, "byte 2:", ErrSyntax},
		{"escaped quote at end", `"\"`, "byte 3:", ErrSyntax},
		{"raw control character", "\"a\nb\"", "byte 2:", ErrSyntax},
		{"escaped control character", "\"\\\n\"", "byte 1:", ErrSyntax},
		{"unknown escape", `"a\x41"`, "byte 2:", ErrSyntax},
		{"short unicode escape", `"\u12"`, "byte 1:", ErrSyntax},
		{"signed unicode escape", `"\u+123"`, "byte 1:", ErrSyntax},
		{"bad escape in name", `{"\q":1}`, "byte 2:", ErrSyntax},

		{"invalid utf-8", "\"a\xff\"", "byte 0:", ErrInvalidUTF8},
		{"truncated utf-8", "\"\xe2\x82\"", "byte 0:", ErrInvalidUTF8},
		{"overlong utf-8", "\"\xc0\xaf\"", "byte 0:", ErrInvalidUTF8},
		{"surrogate in utf-8", "\"\xed\xa0\x80\"", "byte 0:", ErrInvalidUTF8},
		{"invalid utf-8 in name", "{\"\xff\":1}", "byte 1:", ErrInvalidUTF8},
		{"utf-8 split by escape", "\"\xe2\\n\x82\xac\"", "byte 0:", ErrInvalidUTF8},

		{"high surrogate", `"a\ud800"`, "byte 2:", ErrLoneSurrogate},
		{"low surrogate", `"\udc00"`, "byte 1:", ErrLoneSurrogate},
		{"high and letter", `"\ud800a"`, "byte 1:", ErrLoneSurrogate},
		{"high and high", `"\ud800\ud800"`, "byte 1:", ErrLoneSurrogate},
		{"high and other escape", `"\ud800\u0041"`, "byte 1:", ErrLoneSurrogate},
		{"low and high", `"\udc00\ud800"`, "byte 1:", ErrLoneSurrogate},
		{"pair and high", `"\ud83d\ude00\ud83d"`, "byte 13:", ErrLoneSurrogate},
		{"surrogate in name", `{"\udead":1}`, "byte 2:", ErrLoneSurrogate},

		{"duplicate", `{"a":1,"b":2,"a":1}`, "byte 13:", ErrDuplicateMember},
		{"duplicate after unescaping", `{"a":1,"\u0061":1}`, "byte 7:", ErrDuplicateMember},
		{"nested duplicate", `[{"x":{"":1,"":2}}]`, "byte 12:", ErrDuplicateMember},

		{"huge exponent", "1e999999999999999999999999", "byte 0:", ErrExponent},
		{"huge negative exponent", "[-1e-999999999999999999999999]", "byte 2:", ErrExponent},
		{"exponent wraps int64", "1e18446744073709551617", "byte 0:", ErrExponent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := Canonicalize([]byte(tt.in))
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, "canonjson: "+tt.offset)
			require.Nil(t, out)

			_, ok, membersErr := Members([]byte(tt.in))
			require.Equal(t, err, membersErr)
			require.False(t, ok)
		})
	}
}

func TestMaxDepth(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, open, shut string }{
		{"arrays", "[", "]"},
		{"objects", `{"a":`, "}"},
		{"mixed", `[{"a":`, "}]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			levels := MaxDepth / len(tt.shut)
			deepest := strings.Repeat(tt.open, levels) + "1" + strings.Repeat(tt.shut, levels)
			requireCanonical(t, deepest, deepest)

			_, err := Canonicalize([]byte("[" + deepest + "]"))
			require.ErrorIs(t, err, ErrTooDeep)
			_, _, err = Members([]byte(`{"m":` + deepest + "}"))
			require.ErrorIs(t, err, ErrTooDeep)
			_, err = Canonicalize([]byte(strings.Repeat(tt.open, 1_000_000)))
			require.ErrorIs(t, err, ErrTooDeep)
		})
	}
}

func TestMaxDepthIgnoresSiblings(t *testing.T) {
	t.Parallel()
	wide := "[" + strings.Repeat(`[],{},`, MaxDepth) + "[]]"
	requireCanonical(t, wide, wide)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	members, ok, err := Members([]byte(` {"b": {"y":1.0,"x":[ ]}, "\u0061": "\u0041", "c":{}} `))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []Member{
		{Name: "a", Value: []byte(`"A"`)},
		{Name: "b", Value: []byte(`{"x":[],"y":1}`)},
		{Name: "c", Value: []byte(`{}`)},
	}, members)

	_ = append(members[1].Value, "overwritten"...) // "a" follows "b" in the input
	require.Equal(t, `"A"`, string(members[0].Value))

	members, ok, err = Members([]byte(`{}`))
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, members)

	for _, in := range []string{`[{"a":1}]`, `"a"`, `1`, ` null `} {
		members, ok, err = Members([]byte(in))
		require.NoError(t, err, in)
		require.False(t, ok, in)
		require.Nil(t, members, in)
	}
}

func TestInputUnchanged(t *testing.T) {
	t.Parallel()
	const in = `{"b":["\n",1.50],"a":"\ud83d\ude00"}`
	data := []byte(in)
	out, err := Canonicalize(data)
	require.NoError(t, err)
	want := string(out)
	require.Equal(t, in, string(data))
	clear(data)
	require.Equal(t, want, string(out))
}

func requireCanonical(t *testing.T, in, want string) {
	t.Helper()
	require.True(t, json.Valid([]byte(in)), in)
	out, err := Canonicalize([]byte(in))
	require.NoError(t, err)
	require.Equal(t, want, string(out))
	again, err := Canonicalize(out)
	require.NoError(t, err)
	require.Equal(t, want, string(again))
}

func BenchmarkCanonicalize(b *testing.B) {
	order := `{"id":"order-1042","amount":1999.50,"currency":"EUR","note":"line\none \u20ac","lines":[` +
		strings.Repeat(`{"sku":"A-1","quantity":2,"price":9.75,"tags":["x","y"]},`, 20) + `{}],"paid":false}`
	benchmarks := []struct{ name, in string }{
		{"small", `{"amount":100,"currency":"EUR"}`},
		{"order", order},
		{"numbers", "[" + strings.Repeat("1234.5678e-3,", 1000) + "0]"},
		// Every level is out of order, which costs a copy per level.
		{"deep", strings.Repeat(`{"b":`, MaxDepth) + `"` + strings.Repeat("x", math.MaxInt16) + `"` +
			strings.Repeat(`,"a":1}`, MaxDepth)},
	}
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			data := []byte(bb.in)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Canonicalize(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
