package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/idemhttp"
)

func TestKindsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"": true}
	for _, name := range kindNames() {
		require.False(t, seen[name], "kind %q", name)
		seen[name] = true
		require.Equal(t, name, kindOf(name).name)
	}
	require.Empty(t, kindOf("somebody's own").name)
}

// hostileJSON draws values that look like those of a kind: the members are right,
// what they hold is not.
func hostileJSON(t *rapid.T) []byte {
	text := func(name string) string {
		return rapid.OneOf(rapid.String(), rapid.Just("\x1b[2J\u202e\n"), rapid.Just("2026-11-30T08:00:00Z")).Draw(t, name)
	}
	doc := map[string]any{}
	for _, name := range []string{"state", "definition", "row", "token", "pending", "expires", "used", "subject", "started_at"} {
		if rapid.Bool().Draw(t, "has "+name) {
			doc[name] = text(name)
		}
	}
	for _, name := range []string{"version", "dropped", "exit_code", "not_kept"} {
		if rapid.Bool().Draw(t, "has "+name) {
			doc[name] = rapid.Int64().Draw(t, name)
		}
	}
	doc["value"] = map[string]any{text("member"): text("content")}
	doc["history"] = []any{map[string]any{"from": text("from"), "to": text("to"), "trace": text("trace"), "payload": "AAAA"}}
	enc, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// Whatever a record holds, it can be described, and its text does not drive the
// terminal.
func TestDetailsTakeAnyValue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	l := look{term: render.Terminal{IsTTY: true, Width: 80}, format: render.FormatTable, times: render.TimeRelative}
	rapid.Check(t, func(t *rapid.T) {
		e := entry{Record: idem.Record{
			Key:   idem.Key{Scope: rapid.String().Draw(t, "scope"), ID: rapid.OneOf(rapid.String(), rapid.StringMatching(`·[0-9a-f]{32}·\d{1,25}·\d{1,12}`)).Draw(t, "id")},
			Kind:  rapid.SampledFrom(kindNames()).Draw(t, "kind"),
			State: rapid.SampledFrom(idem.States()).Draw(t, "stored state"), StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
			Value: rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(hostileJSON)).Draw(t, "value"),
		}}
		e.State = e.Record.State.String()
		e.detail = describe(&e, now)
		var out bytes.Buffer
		c := &getCommand{app: &app{}, format: rapid.SampledFrom([]string{"", "auto"}).Draw(t, "format")}
		require.NoError(t, c.block(&e, l, now).Render(&out, l.term))
		for line := range strings.Lines(out.String()) {
			require.True(t, strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x202e }) < 0, "%q", line)
		}
		out.Reset()
		require.NoError(t, render.WriteJSON(&out, l.term, newRecordJSON(&e)))
		require.True(t, json.Valid(out.Bytes()))
		briefly(&e, now)
	})
}

// blockOf is the block of a record as a pipe gets it.
func blockOf(t *testing.T, rec idem.Record, format string) string {
	t.Helper()
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	l := look{format: render.FormatTable, times: render.TimeISO}
	e := entry{Record: rec, State: rec.State.String()}
	e.detail = describe(&e, now)
	var out bytes.Buffer
	require.NoError(t, (&getCommand{app: &app{}, format: format}).block(&e, l, now).Render(&out, l.term))
	return out.String()
}

func TestResponsesWithoutBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		omitted idemhttp.Omission
		name    string
		want    string
	}{
		{idemhttp.TooLarge, "too_large", "not kept: 3.0 MiB were sent, too much to store or at a time when it could not be stored"},
		{idemhttp.Streamed, "streamed", "not kept: it was sent before it was complete, 3.0 MiB"},
		{idemhttp.Hijacked, "hijacked", "not kept: the handler took the connection over"},
		{idemhttp.Withheld, "withheld", "not kept: bodies are not stored here, 3.0 MiB were sent"},
		{idemhttp.InChunks, "in_chunks", "3.0 MiB in 12 records of its own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.name, omissionName(tt.omitted))
			value, err := idemhttp.Response{Status: 200, Omitted: tt.omitted, Length: 3 << 20, Chunks: 12}.MarshalBinary()
			require.NoError(t, err)
			require.Contains(t, blockOf(t, idem.Record{Kind: "http", State: idem.Completed, Value: value}, ""), "\nBody\t"+tt.want+"\n")
		})
	}
}

func TestChunksSayWhatTheyBelongTo(t *testing.T) {
	t.Parallel()
	rec := idem.Record{Kind: "http.chunk", State: idem.Completed, Value: []byte("0123456789")}
	rec.Key = idem.Key{Scope: "shop", ID: "·0123456789abcdef0123456789abcdef·7·000011"}
	require.Contains(t, blockOf(t, rec, ""), "\nPart\t12 of a response body, sent by the attempt of version 7\nBody\t10\n")
	rec.Key.ID = "odd"
	require.Contains(t, blockOf(t, rec, ""), "\nPart\tof a response body\nBody\t10\n")
}

func TestValuesThatAreNotOfTheirKind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind, value, want string
	}{
		{"run", "-", "a run"},
		{"run", `{"exit_code":1}`, "a run"},
		{"http", "s3cret", "a stored response"},
		{"intent", "", "an intent"},
		{"token", `{"expires":"s3cret"}`, "a token"},
		{"token", `{}`, "a token"},
		{"fsm", `{"state":5}`, "a state machine"},
		{"fsm", `null`, "a state machine"},
		{"table", `["s3cret"]`, "a row"},
		{"table", `{"value":"s3cret"}`, "a row"},
		{"table.unique", `null`, "a unique column"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.value, func(t *testing.T) {
			t.Parallel()
			text := blockOf(t, idem.Record{Kind: tt.kind, State: idem.Completed, Value: []byte(tt.value)}, "")
			require.Contains(t, text, "\nDetail\tunreadable: the value is not that of "+tt.want+"\n")
			require.NotContains(t, text, "s3cret")
		})
	}
}

func TestKindsWithoutDetail(t *testing.T) {
	t.Parallel()
	for _, rec := range []idem.Record{
		{Kind: "func", State: idem.Completed, Value: []byte("1")},
		{Kind: "mine", State: idem.Completed, Value: []byte("1")},
		{Kind: "http", State: idem.Processing},
		{Kind: "run", State: idem.Failed},
	} {
		e := entry{Record: rec, State: rec.State.String()}
		require.Nil(t, describe(&e, time.Now()), rec.Kind)
		require.Empty(t, briefly(&e, time.Now()), rec.Kind)
	}
}

func TestLockThatWasRenewedHasNoFence(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	e := entry{Record: idem.Record{Kind: "lock", State: idem.Processing, Version: 9, StartedAt: began, UpdatedAt: began}, State: "processing"}
	d, ok := describe(&e, began).(lockDetail)
	require.True(t, ok)
	require.NotNil(t, d.Fence)
	require.EqualValues(t, 9, *d.Fence)
	e.UpdatedAt = began.Add(time.Second)
	d, ok = describe(&e, began).(lockDetail)
	require.True(t, ok)
	require.Nil(t, d.Fence)
	require.EqualValues(t, 9, d.FenceAtMost)
}

func TestTokenArgs(t *testing.T) {
	t.Parallel()
	dashed := "-h" + strings.Repeat("A", 30)
	plain := strings.Repeat("A", 32)
	tests := []struct {
		name       string
		args, want []string
	}{
		{"a dash", []string{"token", "consume", dashed, "--scope", "s"}, []string{"token", "consume", "--scope", "s", "--", dashed}},
		{"after flags", []string{"--db", "x", "token", "inspect", "--scope", "s", "-q", dashed}, []string{"--db", "x", "token", "inspect", "--scope", "s", "-q", "--", dashed}},
		{"no dash", []string{"token", "consume", plain, "--scope", "s"}, []string{"token", "consume", plain, "--scope", "s"}},
		{"value of a flag", []string{"token", "consume", plain, "--subject", dashed}, []string{"token", "consume", plain, "--subject", dashed}},
		{"value of a global flag", []string{"token", "inspect", plain, "--db", dashed}, []string{"token", "inspect", plain, "--db", dashed}},
		{"told apart already", []string{"token", "consume", "--scope", "s", "--", dashed}, []string{"token", "consume", "--scope", "s", "--", dashed}},
		{"too short", []string{"token", "consume", "-hA", "--scope", "s"}, []string{"token", "consume", "-hA", "--scope", "s"}},
		{"another command", []string{"run", "--key", "k", dashed}, []string{"run", "--key", "k", dashed}},
		{"nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tokenArgs(newRootCommand(&app{}), tt.args))
		})
	}
}
