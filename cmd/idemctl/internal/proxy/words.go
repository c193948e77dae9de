package proxy

import (
	"errors"
	"strings"
)

// split cuts a line into its words. A part of a word in double quotes may hold
// spaces and #, and with a backslash before them " and \. A # where a word would
// begin makes the rest a comment.
func split(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		word, rest, err := nextWord(line)
		if err != nil {
			return nil, err
		}
		words, line = append(words, word), rest
	}
}

func nextWord(line string) (word, rest string, err error) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
			if i == len(line) || line[i] != '"' && line[i] != '\\' {
				return "", "", errors.New(`a backslash between quotes may only stand before " or \`)
			}
			b.WriteByte(line[i])
		case !quoted && (c == ' ' || c == '\t'):
			return b.String(), line[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", errors.New("a closing quote is missing")
	}
	return b.String(), "", nil
}
