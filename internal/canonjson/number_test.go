package canonjson

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"1", "1"},
		{"1.0", "1"},
		{"1e0", "1"},
		{"1E+0", "1"},
		{"10e-1", "1"},
		{"0.1e1", "1"},
		{"0.001e00000000000000000000000003", "1"},
		{"0", "0"},
		{"-0", "0"},
		{"-0.00", "0"},
		{"0e999999999999999999999999", "0"},
		{"-1.50", "-1.5"},
		{"100", "100"},
		{"1e20", "100000000000000000000"},
		{"100000000000000000000", "100000000000000000000"},
		{"1e21", "1e+21"},
		{"1000000000000000000000", "1e+21"},
		{"123456789e13", "1.23456789e+21"},
		{"1e-6", "0.000001"},
		{"0.0000001", "1e-7"},
		{"12e-8", "1.2e-7"},
		{"5e-324", "5e-324"},

		// Kept where a float64 would round.
		{"9007199254740992", "9007199254740992"},
		{"9007199254740993", "9007199254740993"},
		{"9007199254740993.0", "9007199254740993"},
		{"0.1", "0.1"},
		{"0.10000000000000000555", "0.10000000000000000555"},
		{"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
		{"123456789012345678901234567890", "1.2345678901234567890123456789e+29"},
		{"1e400", "1e+400"},
		{"10e399", "1e+400"},
		{"1e-400", "1e-400"},

		// The limits, which must not depend on the spelling.
		{"1e999999999", "1e+999999999"},
		{"1e2147483647", "1e+2147483647"},
		{"0.01e2147483649", "1e+2147483647"},
		{"1e-2147483647", "1e-2147483647"},
		{"100e-2147483649", "1e-2147483647"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			requireCanonical(t, tt.in, tt.want)
		})
	}
}

func TestNumberErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want error
	}{
		{"01", ErrSyntax},
		{"-01", ErrSyntax},
		{"00", ErrSyntax},
		{"-", ErrSyntax},
		{"+1", ErrSyntax},
		{".5", ErrSyntax},
		{"1.", ErrSyntax},
		{"1.e1", ErrSyntax},
		{"1e", ErrSyntax},
		{"1e+", ErrSyntax},
		{"1e1.5", ErrSyntax},
		{"0x10", ErrSyntax},
		{"1_000", ErrSyntax},
		{"--1", ErrSyntax},
		{"-Infinity", ErrSyntax},
		{"1e2147483648", ErrExponent},
		{"10e2147483647", ErrExponent},
		{"1e-2147483648", ErrExponent},
		{"0.1e-2147483647", ErrExponent},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want == ErrExponent, json.Valid([]byte(tt.in)))
			_, err := Canonicalize([]byte(tt.in))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// RFC 8785, Appendix B, without the rows that JSON cannot express.
func TestNumbersRFCAppendixB(t *testing.T) {
	t.Parallel()
	tests := []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			f := math.Float64frombits(tt.bits)
			for _, format := range []byte{'e', 'E', 'f', 'g'} {
				requireCanonical(t, strconv.FormatFloat(f, format, -1, 64), tt.want)
			}
		})
	}
}

// encoding/json lays out a float64 as ECMAScript does, except for -0.
func TestShortestFloatsMatchECMAScript(t *testing.T) {
	t.Parallel()
	// From bits, to reach all exponents; f-f is NaN for NaN and the infinities.
	floats := rapid.Map(rapid.Uint64(), math.Float64frombits).Filter(func(f float64) bool {
		return f != 0 && f-f == 0
	})
	rapid.Check(t, func(t *rapid.T) {
		f := floats.Draw(t, "f")
		want, err := json.Marshal(f)
		require.NoError(t, err)
		for _, format := range []byte{'e', 'f'} {
			out, err := Canonicalize([]byte(strconv.FormatFloat(f, format, -1, 64)))
			require.NoError(t, err)
			require.Equal(t, string(want), string(out))
		}
	})
}

func TestNumbersEqualOnlyIfSameValue(t *testing.T) {
	t.Parallel()
	literal := rapid.Custom(func(t *rapid.T) string {
		// Few digits and exponents, so that equal values are common.
		whole := rapid.SampledFrom([]string{"0", "1", "10", "100", "12", "120", "9007199254740993"}).Draw(t, "whole")
		fraction := rapid.SampledFrom([]string{"", ".0", ".1", ".10", ".01", ".2", ".000"}).Draw(t, "fraction")
		sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
		exponent := rapid.IntRange(-23, 23).Draw(t, "exponent")
		return sign + whole + fraction + "e" + strconv.Itoa(exponent)
	})
	rapid.Check(t, func(t *rapid.T) {
		a := literal.Draw(t, "a")
		b := rapid.OneOf(literal, rapid.Just(respell(a))).Draw(t, "b")
		x, ok := new(big.Rat).SetString(a)
		require.True(t, ok)
		y, ok := new(big.Rat).SetString(b)
		require.True(t, ok)

		first, err := Canonicalize([]byte(a))
		require.NoError(t, err)
		second, err := Canonicalize([]byte(b))
		require.NoError(t, err)
		require.Equal(t, x.Cmp(y) == 0, string(first) == string(second), "%s %s", first, second)

		z, ok := new(big.Rat).SetString(string(first))
		require.True(t, ok)
		require.Zero(t, x.Cmp(z))
	})
}

// respell writes the same value with a longer fraction and, unless that would
// put a zero in front, without a decimal point.
func respell(literal string) string {
	mantissa, exponent, _ := strings.Cut(literal, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if strings.HasSuffix(whole, "0") && len(strings.TrimPrefix(whole, "-")) == 1 {
		return whole + "." + fraction + "00E" + exponent
	}
	n, _ := strconv.Atoi(exponent)
	return whole + fraction + "0E" + strconv.Itoa(n-len(fraction)-1)
}
