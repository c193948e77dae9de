package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"idemctl":    main,
		"lockholder": lockHolder,
	})
}

// TestScripts runs every script in testdata/script. UPDATE=1 rewrites the
// expected output in them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("IDEM_DB", "idem.db")
			for _, name := range []string{"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "IDEM_COLOR", "IDEM_FORCE_TTY", "XDG_STATE_HOME"} {
				env.Setenv(name, "")
			}
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"seed":     seed,
			"pattern":  pattern,
			"damage":   damage,
			"holdlock": holdLock,
			"exitcode": exitCode,
			"json":     checkJSON,
			"jsonl":    checkJSONL,
		},
	})
}
