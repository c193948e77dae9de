package render

import (
	"context"
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
// It reads no further than the line, so questions can follow each other. When
// ctx ends it returns its cause at once. The prompt is printed as it is; escape
// untrusted parts of it.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, prompt string) (bool, error) {
	answer, err := ask(ctx, in, out, prompt+" [y/N] ")
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// ConfirmPhrase asks prompt and reports whether the line typed is phrase, which
// is for what must not be confirmed out of habit. It is otherwise as [Confirm].
func ConfirmPhrase(ctx context.Context, in io.Reader, out io.Writer, prompt, phrase string) (bool, error) {
	answer, err := ask(ctx, in, out, prompt+" ")
	return err == nil && answer != "" && answer == phrase, err
}

func ask(ctx context.Context, in io.Reader, out io.Writer, prompt string) (string, error) {
	if _, err := io.WriteString(out, prompt); err != nil {
		return "", fmt.Errorf("write prompt: %w", err)
	}
	answer, err := await(ctx, in)
	if errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil {
		_, err = io.WriteString(out, "\n") // the newline that nobody typed
		return "", errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// await reads a line until ctx ends. A read of a terminal cannot be ended from
// here, so after that its goroutine stays until the process ends, or a line is
// typed, which is then lost.
func await(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := readLine(in)
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
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
