package render

import (
	"slices"
	"unicode"
)

// wideRanges are the blocks that terminals draw two columns wide: East Asian
// wide and fullwidth, and emoji. Emoji blocks are taken whole, although a few
// old pictographs in them are narrow: a column too many only loosens a table,
// a column too few breaks the line.
var wideRanges = [...][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23f3},
	{0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f},
	{0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26ce},
	{0x26d4, 0x26d4}, {0x26ea, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b},
	{0x2728, 0x2728}, {0x274c, 0x2757}, {0x2795, 0x2797}, {0x27b0, 0x27bf},
	{0x2b1b, 0x2b1c}, {0x2b50, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
	{0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19},
	{0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18dff},
	{0x1aff0, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a},
	{0x1f200, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7f0}, {0x1f900, 0x1f9ff},
	{0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}

// Width is the number of terminal columns that s takes. Wide East Asian
// characters and emoji count two, combining marks none, everything else one.
// It expects text without control characters, as [Escape] returns it.
func Width(s string) int {
	width := 0
	for _, r := range s {
		width += runeWidth(r)
	}
	return width
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me) || r >= 0x1160 && r <= 0x11ff:
		return 0 // the range holds Hangul vowels, drawn into the leading consonant
	case isWide(r):
		return 2
	}
	return 1
}

func isWide(r rune) bool {
	_, found := slices.BinarySearchFunc(wideRanges[:], r, func(block [2]rune, r rune) int {
		switch {
		case block[1] < r:
			return -1
		case block[0] > r:
			return 1
		}
		return 0
	})
	return found
}
