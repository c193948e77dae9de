package render

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxAnswer bounds an answer, so that a device without newlines ends.
const maxAnswer = 1024

// Confirm asks prompt, adds "[y/N]" and reads one line. Only "y" and "yes", in
// any case, are a yes. Everything else is a no: an empty line, the end of input
// and an answer cut off by it, as a dying pipe must not confirm anything.
//
// It reads no further than the line, so questions can follow each other. The
// prompt is printed as it is; escape untrusted parts of it.
func Confirm(in io.Reader, out io.Writer, prompt string) (bool, error) {
	answer, err := ask(in, out, prompt+" [y/N] ")
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// ConfirmPhrase asks prompt and reports whether the line typed is phrase, which
// is for what must not be confirmed out of habit. It is otherwise as [Confirm].
func ConfirmPhrase(in io.Reader, out io.Writer, prompt, phrase string) (bool, error) {
	answer, err := ask(in, out, prompt+" ")
	return err == nil && answer != "" && answer == phrase, err
}

func ask(in io.Reader, out io.Writer, prompt string) (string, error) {
	if _, err := io.WriteString(out, prompt); err != nil {
		return "", fmt.Errorf("write prompt: %w", err)
	}
	answer, err := readLine(in)
	if errors.Is(err, io.EOF) {
		_, err = io.WriteString(out, "\n") // the newline that nobody typed
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// readLine reads single bytes, since a buffered reader would swallow the
// answers to later questions. A line too long is no answer at all.
func readLine(in io.Reader) (string, error) {
	var line []byte
	char := make([]byte, 1)
	for len(line) <= maxAnswer {
		if _, err := io.ReadFull(in, char); err != nil {
			return "", err
		}
		if char[0] == '\n' {
			return string(line), nil
		}
		line = append(line, char[0])
	}
	return "", nil
}
