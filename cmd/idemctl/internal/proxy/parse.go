package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idembolt/idem"
)

const (
	maxFile     = 1 << 20 // bytes
	maxPolicies = 100
	maxName     = 64 // bytes, of a policy
)

// Parse reads a configuration file, which docs/cli.md describes. name is what
// errors call it. They are all reported, each an *Error with its line, joined.
func Parse(name string, r io.Reader) (*Config, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: the file is larger than 1 MiB", name)
	}
	p := &parser{at: place{name: name}, config: NewConfig(), seen: make(map[string]place)}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		p.at.line++
		p.line(strings.TrimSuffix(string(line), "\r"))
	}
	p.errs = append(p.errs, p.config.checkRoutes()...)
	if len(p.errs) == 0 {
		return p.config, nil
	}
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Compare(a.at.line, b.at.line) })
	var errs []error
	for _, err := range p.errs {
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

type parser struct {
	at     place
	config *Config
	seen   map[string]place // what may be said once, and where it was
	errs   []*Error
}

func (p *parser) wrong(err error) { p.errs = append(p.errs, &Error{p.at, err}) }

// directives are the words that a line may begin with.
func directives() []string {
	return []string{"listen", "to", "scope", "scope-header", "policy", "route"}
}

func (p *parser) line(text string) {
	if strings.Contains(text, "\x00") || !utf8.ValidString(text) {
		p.wrong(errors.New("the line is not text in UTF-8"))
		return
	}
	words, err := split(text)
	switch {
	case err != nil:
		p.wrong(err)
		return
	case len(words) == 0:
		return
	}
	switch word, rest := words[0], words[1:]; word {
	case "policy":
		p.policy(rest)
	case "route":
		p.route(rest)
	case "listen", "to", "scope", "scope-header":
		p.value(word, rest)
	default:
		p.wrong(fmt.Errorf("unknown directive %q%s", word, didYouMean(word, directives())))
	}
}

// once reports whether something is said for the first time.
func (p *parser) once(what string) bool {
	if before, found := p.seen[what]; found {
		p.wrong(fmt.Errorf("%s is already said in line %d", what, before.line))
		return false
	}
	p.seen[what] = p.at
	return true
}

func (p *parser) value(name string, words []string) {
	if !p.once(name) {
		return
	}
	if len(words) != 1 {
		p.wrong(fmt.Errorf("%s takes one word, there are %d", name, len(words)))
		return
	}
	if err := p.config.Set(name, words[0]); err != nil {
		p.wrong(err)
	}
}

// Set sets what the file calls listen, to, scope or scope-header.
func (c *Config) Set(name, value string) (err error) {
	switch name {
	case "listen":
		c.Listen, err = value, checkListen(value)
	case "to":
		c.To, err = parseTarget(value)
	case "scope":
		c.Scope, err = value, checkScopeName(value)
	case "scope-header":
		c.ScopeHeader, err = value, checkScopeHeader(value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (p *parser) route(words []string) {
	r, errs := parseRoute(p.at, words)
	for _, err := range errs {
		p.wrong(err)
	}
	p.config.Routes = append(p.config.Routes, r)
}

func (p *parser) policy(words []string) {
	if len(words) == 0 || strings.Contains(words[0], "=") || words[0] == "" {
		p.wrong(errors.New("a policy needs a name before its settings, such as policy slow retention=7d"))
		return
	}
	name := words[0]
	if len(name) > maxName {
		p.wrong(fmt.Errorf("the name of the policy has %d bytes, at most %d are allowed", len(name), maxName))
		return
	}
	if _, preset := presets()[name]; preset {
		p.wrong(fmt.Errorf("policy %s is built in and cannot be defined: choose another name", name))
		return
	}
	if !p.once("policy " + name) {
		return
	}
	if len(p.config.Policies) == maxPolicies {
		p.wrong(fmt.Errorf("policy %s: more than %d policies", name, maxPolicies))
		return
	}
	policy := idem.API
	errs := set(&policy, words[1:], policySettings())
	if len(errs) == 0 {
		if err := checkPolicy(policy); err != nil {
			errs = append(errs, err)
		}
	}
	for _, err := range errs {
		p.wrong(fmt.Errorf("policy %s: %w", name, err))
	}
	p.config.Policies[name] = policy // also if it is wrong: its routes are not
}
