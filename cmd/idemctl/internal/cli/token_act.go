package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/token"
)

// issued is a new token in JSON.
type issued struct {
	Token     string  `json:"token"`
	Scope     string  `json:"scope"`
	ExpiresAt *string `json:"expires_at"`
}

func (c *tokenCommand) issue(ctx context.Context) error {
	l, err := c.begin("issue")
	if err != nil {
		return err
	}
	if c.ttl < token.MinTTL || c.ttl > token.MaxTTL {
		return usage("--ttl must be %s to %s", token.MinTTL, token.MaxTTL)
	}
	path, err := c.writePath(exitFailure)
	if err != nil {
		return err
	}
	tokens, err := c.open(ctx, path, token.WithTTL(c.ttl))
	if err != nil {
		return err
	}
	made, err := tokens.Issue(ctx, c.subject)
	if err != nil {
		return err
	}
	if l.isJSON() {
		return l.writeJSON(c.out, issued{made.Value, c.scope, jsonTime(made.ExpiresAt)})
	}
	_, err = fmt.Fprintln(c.out, made.Value)
	return err
}

// open returns tokens on a file that is held only for single operations, and waited
// for if many calls are at it.
func (c *tokenCommand) open(ctx context.Context, path string, opts ...token.Option) (*token.Tokens, error) {
	store, err := openPatient(ctx, path, c.boltConfig())
	if err != nil {
		return nil, err
	}
	return token.New(store, c.scope, opts...)
}

func (c *tokenCommand) consume(ctx context.Context, arg string) error {
	if _, err := c.begin("consume"); err != nil {
		return err
	}
	path, _, err := c.existingPath()
	if err != nil {
		return err
	}
	value, err := c.readToken(arg)
	if err != nil {
		return err
	}
	tokens, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	if err := tokens.Consume(ctx, value, c.subject); err != nil {
		return c.refusal(err)
	}
	c.note("The token is used up.")
	return nil
}

// refusal gives the answers of package token their exit codes, and keeps the hash
// out of the message, which says nothing to whoever has the token.
func (c *tokenCommand) refusal(err error) error {
	var used *token.UsedError
	switch {
	case errors.As(err, &used):
		return fail(exitFailure, "", "%w", used)
	case errors.Is(err, token.ErrExpired):
		return fail(exitFailure, "", "%w", token.ErrExpired)
	case errors.Is(err, token.ErrSubject):
		return fail(exitFailure, "", "%w", token.ErrSubject)
	case errors.Is(err, token.ErrUnknown):
		return fail(exitNotFound, "", "%w in scope %q", token.ErrUnknown, c.scope)
	}
	return err
}

// inspected is a token in JSON.
type inspected struct {
	Scope     string  `json:"scope"`
	State     string  `json:"state"`
	IssuedAt  *string `json:"issued_at"`
	ExpiresAt *string `json:"expires_at"`
	UsedAt    *string `json:"used_at"`
	Bound     bool    `json:"bound"`
}

func (c *tokenCommand) inspect(ctx context.Context, arg string) error {
	l, err := c.begin("inspect")
	if err != nil {
		return err
	}
	value, err := c.readToken(arg)
	if err != nil {
		return err
	}
	status, now, err := c.status(ctx, value)
	if err != nil {
		return c.refusal(err)
	}
	if l.isJSON() {
		return l.writeJSON(c.out, inspected{
			c.scope, status.State.String(), jsonTime(status.IssuedAt), jsonTime(status.ExpiresAt), jsonTime(status.UsedAt), status.Bound,
		})
	}
	b := detailBlock{KeyValue: &render.KeyValue{}, look: l, now: now}
	b.line("Scope", c.scope)
	b.Add("State", render.Bold.Text(status.State.String()))
	b.moment("Issued", status.IssuedAt)
	b.moment("Expires", status.ExpiresAt)
	b.moment("Used", status.UsedAt)
	b.line("Subject", boundText(status.Bound))
	return b.Render(c.out, l.term)
}

func (c *tokenCommand) status(ctx context.Context, value string) (status token.Status, now time.Time, err error) {
	s, err := c.openRead(ctx)
	if err != nil {
		return status, now, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	tokens, err := token.New(s, c.scope)
	if err != nil {
		return status, now, err
	}
	status, err = tokens.Inspect(ctx, value)
	return status, s.Now(), err
}

// maxTokenLine bounds what is read of a token on standard input.
const maxTokenLine = 1024

// readToken returns the token of the argument. It reads no more than a line, so
// that a script can go on reading its input.
func (c *tokenCommand) readToken(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	var line []byte
	char := make([]byte, 1)
	for len(line) <= maxTokenLine {
		_, err := io.ReadFull(c.in, char)
		if errors.Is(err, io.EOF) || err == nil && char[0] == '\n' {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		line = append(line, char[0])
	}
	value := strings.TrimSpace(string(line))
	if value == "" {
		return "", usage("there is no token on standard input")
	}
	return value, nil
}
