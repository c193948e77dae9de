package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// checkListen checks the form of host:port, without asking the network.
func checkListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address: write host:port, such as %s", address, DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not an address: the port is a number up to 65535", address)
	}
	return nil
}

// parseTarget reads the address of the service.
func parseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "localhost" { // localhost:3000
		err = errors.New("no scheme")
	}
	switch {
	case err != nil, u.Scheme == "" && u.Host == "":
		return nil, fmt.Errorf("%q is not a URL: write one such as http://127.0.0.1:3000", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q begins with %s: only http:// and https:// can be forwarded to", text, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%q names no host", text)
	case u.User != nil:
		return nil, errors.New("the URL holds a user or password, which would not be sent: leave them out")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query or fragment: leave it out, each request has its own", text)
	}
	return u, nil
}

// loops reports whether who forwards to the service would reach itself.
func loops(listen string, to *url.URL) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return false
	}
	target := to.Port()
	switch {
	case target == "" && to.Scheme == "https":
		target = "443"
	case target == "":
		target = "80"
	}
	if port != target {
		return false
	}
	if host == to.Hostname() {
		return true
	}
	ip := net.ParseIP(host)
	everywhere := host == "" || ip != nil && ip.IsUnspecified()
	return (everywhere || isLoopback(host)) && isLoopback(to.Hostname())
}

// Loopback reports whether an address to listen on is reached only from this
// machine.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
