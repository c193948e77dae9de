//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tellStory asks idemctl what became of an order that was shipped.
func tellStory(t *testing.T, dir string, all []told) {
	t.Helper()
	i := slices.IndexFunc(all, func(w told) bool { return w.shipped.status == http.StatusOK })
	require.GreaterOrEqual(t, i, 0)
	number := all[i].number
	binary, db := filepath.Join(dir, "idemctl"), filepath.Join(dir, "shop.db")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/idembolt/idem/cmd/idemctl").CombinedOutput()
	require.NoError(t, err, string(out))
	idemctl := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, append(args, "--db", db)...)
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}

	require.Equal(t, []string{
		"inbox:ledger/" + number + ".OrderPaid", "inbox:ledger/" + number + ".OrderPlaced", "inbox:ledger/" + number + ".OrderShipped",
		"inbox:mailer/" + number + ".OrderPaid", "inbox:mailer/" + number + ".OrderPlaced", "inbox:mailer/" + number + ".OrderShipped",
		"order.pay/" + number, "order.place/" + number, "order.row/" + number, "order.state/" + number,
	}, withoutKeyOf(strings.Fields(idemctl("ls", "-o", "name", "--limit", "0", "--match", "*/"+number+"*")), number))

	require.JSONEq(t, mustJSON(t, all[i].order), idemctl("get", "order.place/"+number, "--value"))
	require.Equal(t, all[i].paid.body, strings.TrimSpace(idemctl("get", "order.pay/"+number, "--value")))
	var state struct {
		State   string
		History []struct{ From, To string }
	}
	require.NoError(t, json.Unmarshal([]byte(idemctl("get", "order.state/"+number, "--value")), &state))
	require.Equal(t, "SHIPPED", state.State)
	require.Equal(t, []struct{ From, To string }{{"PLACED", "PAID"}, {"PAID", "SHIPPED"}}, state.History)
	require.Empty(t, idemctl("ls", "-q", "-o", "name", "--state", "interrupted,processing", "--kind", "func,http,inbox"))
	idemctl("check")
}

// withoutKeyOf drops keys of orders whose number begins with that of another.
func withoutKeyOf(keys []string, number string) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		_, rest, _ := strings.Cut(key, "/"+number)
		return rest != "" && rest[0] != '.'
	})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
