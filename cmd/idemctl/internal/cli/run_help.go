package cli

import "fmt"

const runText = `Runs a command once per key. A repeat within --retention does not run it: it
prints the recorded output again and ends with the recorded exit code.

The key ID names the intent, for instance "report-2026-11". The arguments of the
command, the content of each --input file and the value of each --env variable are
part of the intent: the same key with others is refused, naming what differs. What
the command reads from standard input is not.

--once-per adds the current hour, day, week or month and its time zone to the key:
backup becomes run/backup@2026-11-30@UTC, or with hours, weeks and months
run/backup@2026-11-30T23+00:00@UTC, run/backup@2026-W49@UTC, run/backup@2026-11@UTC.
Repeats are then answered until the period is over and for 24 hours more; a
--retention that ends before the period does is refused.

A command that fails (any exit code but 0) releases the key, so that a repeat runs
it again, unless --on-failure replay is given. A command that is killed by a
signal, that fails after a signal was passed on to it, or that hits --timeout has
an unknown outcome, as has one whose idemctl dies: the key is then interrupted and
later runs end with 76 until somebody settles it with idemctl resolve, unless they
say --on-interrupted rerun.

The store's file is not held while the command runs, so any number of commands can
run at once. When the command has run and another process holds the file, idemctl
waits for up to 30 seconds to record the outcome.

A process that the command leaves in the background must not keep its output: a
second after the command has ended idemctl reads it no longer, and the process dies
of SIGPIPE when it next prints. Give it a file: ./daemon >daemon.log 2>&1 &

SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command and its children
(with a terminal: to the command). The command gets pipes, not a terminal, for its
output, standard input as it is, and these variables:

  IDEM_KEY        the key, scope/id
  IDEM_ATTEMPT    1, or more after an interruption
  IDEM_FENCE      a number that is greater in every later attempt of the key: what
                  remembers the highest one can refuse an attempt that is outdated
  IDEM_CHILD_KEY  32 hexadecimal digits that are the same in every attempt of the
                  key: an idempotency key for a service that the command calls

The exit code is the command's own, run or replayed, or one of those below that
tell what kept it from running. As a command may use these numbers too,
--result-file says which it was.

`

func runExitCodeHelp() string {
	text := "Exit codes:\n"
	for _, c := range append([]exitCode{{exitUsage, "usage: nothing ran"}, {exitLocked, "the file is held by another process: nothing ran"}}, runExitCodes()...) {
		text += fmt.Sprintf("  %-4d %s\n", c.Code, c.Meaning)
	}
	return text + "  128+n  the command was killed by signal n: its outcome is unknown"
}
