package render

// Style is a colour with a meaning. A style never carries information alone:
// there is always a word too. The zero value is [Plain].
type Style uint8

// The styles and what they stand for.
const (
	// Plain is text without a colour.
	Plain Style = iota
	// Red is a failure.
	Red
	// Yellow is something overdue or worth a look.
	Yellow
	// Green is a success.
	Green
	// Dim is something expired or of no weight.
	Dim
	// Bold is a heading.
	Bold
)

// Text is a cell of s in this style.
func (s Style) Text(text string) Cell { return Cell{Text: text, Style: s} }

func (s Style) code() string {
	switch s {
	case Red:
		return "\x1b[31m"
	case Yellow:
		return "\x1b[33m"
	case Green:
		return "\x1b[32m"
	case Dim:
		return "\x1b[2m"
	case Bold:
		return "\x1b[1m"
	default:
		return ""
	}
}

// Paint wraps s in the codes of style, or returns it unchanged when t has no
// colour. It does not escape s.
func (t Terminal) Paint(style Style, s string) string {
	code := style.code()
	if !t.Color || code == "" || s == "" {
		return s
	}
	return code + s + "\x1b[0m"
}

// Red is s in red, or s when t has no colour.
func (t Terminal) Red(s string) string { return t.Paint(Red, s) }

// Yellow is s in yellow, or s when t has no colour.
func (t Terminal) Yellow(s string) string { return t.Paint(Yellow, s) }

// Green is s in green, or s when t has no colour.
func (t Terminal) Green(s string) string { return t.Paint(Green, s) }

// Dim is s in faint text, or s when t has no colour.
func (t Terminal) Dim(s string) string { return t.Paint(Dim, s) }

// Bold is s in bold text, or s when t has no colour.
func (t Terminal) Bold(s string) string { return t.Paint(Bold, s) }
