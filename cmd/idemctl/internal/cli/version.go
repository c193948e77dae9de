package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildJSON says what the binary was built from.
type buildJSON struct {
	Version  string  `json:"version"`
	Go       string  `json:"go"`
	Commit   *string `json:"commit"`
	Time     *string `json:"time"`
	Modified bool    `json:"modified"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long:  "Shows the version of idemctl, and what it was built from.",

		Example: "  idemctl version\n  idemctl version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			look, err := a.look("version")
			if err != nil {
				return err
			}
			if look.isJSON() {
				return look.writeJSON(a.out, readBuild())
			}
			_, err = fmt.Fprintln(a.out, versionLine())
			return err
		},
	}
}

func readBuild() buildJSON {
	b := buildJSON{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = optional(s.Value)
		case "vcs.time":
			b.Time = optional(s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

func versionLine() string {
	b := readBuild()
	line := "idemctl " + b.Version
	if b.Commit != nil {
		line += " " + (*b.Commit)[:min(12, len(*b.Commit))]
		if b.Modified {
			line += "+changes"
		}
	}
	if b.Go != "" {
		line += " " + b.Go
	}
	return line
}
