package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/proxy"
)

// proxyFlags are the flags of proxy.
type proxyFlags struct {
	// set holds those that are directives of the file too, by name; a flag that
	// was not given is not in it.
	set map[string]string

	file     string
	routes   routeFlags
	timeout  time.Duration
	drain    time.Duration
	optional bool
	failOpen bool
	check    bool
}

const (
	defaultProxyTimeout = 5 * time.Minute
	defaultDrain        = 30 * time.Second
	shownRoutes         = 8
)

func newProxyCommand(a *app) *cobra.Command {
	f := proxyFlags{set: make(map[string]string)}
	cmd := &cobra.Command{
		Use:     "proxy --to URL (--scope NAME | --scope-header HEADER) [flags]",
		Short:   "Make a service idempotent from the outside",
		GroupID: groupRun,
		Args:    cobra.NoArgs,
		Long:    proxyText,
		Example: `  idemctl proxy --to http://127.0.0.1:3000 --scope shop
  idemctl proxy --to http://127.0.0.1:3000 --scope-header X-Tenant --route 'POST /charges' --policy payments
  idemctl proxy --config proxy.conf --check`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.proxy(cmd.Context(), &f) },
	}
	f.register(cmd)
	return cmd
}

func (f *proxyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(directiveFlag{"listen", "ADDRESS", f.set}, "listen", "`ADDRESS` to listen on, host:port (default "+proxy.DefaultListen+"); port 0 takes a free one")
	flags.Var(directiveFlag{"to", "URL", f.set}, "to", "`URL` of the service (required, here or in the file)")
	flags.Var(directiveFlag{"scope", "NAME", f.set}, "scope", "scope of the keys: a `NAME` for this service")
	flags.Var(directiveFlag{"scope-header", "HEADER", f.set}, "scope-header", "the request `HEADER` that holds the tenant; set by a gateway, not by clients")
	flags.Var(routeFlag{&f.routes}, "route", "protect only `PATTERN`, such as 'POST /charges/{id}'; may be repeated")
	flags.Var(policyFlag{&f.routes}, "policy", "policy `NAME` of the --route before it; before any, of all routes that name none (default api)")
	flags.Var(textFlag{"config", &f.file}, "config", "read `FILE`; flags win over it, and their routes are added to its own")
	flags.Var(newDurationFlag(&f.timeout, defaultProxyTimeout), "timeout", "how long a protected request may take before its outcome is unknown")
	flags.BoolVar(&f.optional, "optional-key", false, "let requests without a key pass, without protection, instead of refusing them")
	flags.BoolVar(&f.failOpen, "fail-open", false, "let requests pass, without protection, while the store cannot be used")
	flags.Var(newDurationFlag(&f.drain, defaultDrain), "drain", "how long to wait for running requests when stopped")
	flags.BoolVar(&f.check, "check", false, "only check the flags and the file")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(proxy.Preset(), cobra.ShellCompDirectiveNoFileComp))
}

// config puts file and flags together. It returns all that is wrong with them.
func (f *proxyFlags) config() (*proxy.Config, []error) {
	c := proxy.NewConfig()
	if f.file != "" {
		var err error
		if c, err = readProxyFile(f.file); err != nil {
			return nil, proxy.Errors(err)
		}
	}
	var errs []error
	for _, name := range []string{"listen", "to", "scope", "scope-header"} {
		if value, given := f.set[name]; given {
			if err := c.Set(name, value); err != nil {
				errs = append(errs, fmt.Errorf("--%w", err))
			}
		}
	}
	for _, r := range f.routes.all {
		if err := c.AddRoute("--route", r.text, r.policy); err != nil {
			errs = append(errs, proxy.Errors(err)...)
		}
	}
	if f.routes.policy != "" {
		c.Policy = f.routes.policy
	}
	c.Optional, c.FailOpen, c.Timeout = f.optional, f.failOpen, f.timeout
	if len(errs) > 0 {
		return nil, errs
	}
	if err := c.Validate(); err != nil {
		return nil, proxy.Errors(err)
	}
	return c, nil
}

func readProxyFile(path string) (*proxy.Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return proxy.Parse(path, file)
}

// proxy is the command.
func (a *app) proxy(ctx context.Context, f *proxyFlags) error {
	if _, err := a.look("proxy"); err != nil {
		return err
	}
	c, errs := f.config()
	if len(errs) > 0 {
		last := len(errs) - 1
		for _, err := range errs[:last] {
			a.warn("%s", printable(err.Error()))
		}
		return fail(exitUsage, "idemctl proxy --help", "%w", errs[last])
	}
	if f.check {
		a.note("idemctl: nothing is wrong: it would forward to %s", printable(c.To.String()))
		a.describe(c)
		return nil
	}
	path, err := a.writePath(exitFailure)
	if err != nil {
		return err
	}
	bolt := a.boltConfig()
	bolt.CacheBytes = 0 // the default of services
	log := slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})
	g, err := idem.Open(path, idem.WithBolt(bolt), idem.WithLogger(log))
	if err != nil {
		return err
	}
	handler, err := proxy.NewHandler(g, c)
	if err != nil {
		return errors.Join(err, g.Close())
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return errors.Join(err, g.Close())
	}
	a.announce(c, l.Addr())
	return (&proxy.Server{Handler: handler, Guard: g, Log: log, Drain: f.drain}).Serve(ctx, l)
}

// announce says that requests can come.
func (a *app) announce(c *proxy.Config, address net.Addr) {
	a.note("idemctl: listening on http://%s, forwarding to %s", address, printable(c.To.String()))
	a.describe(c)
	if proxy.Loopback(address.String()) {
		return
	}
	if c.ScopeHeader != "" {
		a.note("idemctl: other machines can reach it, and who reaches it can set %s: see to it that only the gateway does", c.ScopeHeader)
		return
	}
	a.note("idemctl: other machines can reach it")
}

// describe says what is protected and whose keys they are.
func (a *app) describe(c *proxy.Config) {
	what := []string{"POST and PATCH"}
	if len(c.Routes) > 0 {
		what = nil
	}
	for i, r := range c.Routes {
		if i == shownRoutes {
			what = append(what, fmt.Sprintf("%d more", len(c.Routes)-i))
			break
		}
		what = append(what, printable(r.Pattern))
	}
	scope := "scope " + c.Scope
	switch {
	case c.Scope == "":
		scope = "the tenant in " + c.ScopeHeader
	case c.ScopeHeader != "":
		scope += " and the tenant in " + c.ScopeHeader
	}
	a.note("idemctl: protecting %s under %s", strings.Join(what, ", "), scope)
}
