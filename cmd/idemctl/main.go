// Command idemctl looks inside idem stores, mends them and runs commands once
// per key.
package main

import (
	"context"
	"os"

	"github.com/idembolt/idem/cmd/idemctl/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
