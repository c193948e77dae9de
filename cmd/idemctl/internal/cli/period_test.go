package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestPeriodKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		period period
		zone   string
		at     []string // all in one period
		want   string
	}{
		{"hour", perHour, "UTC", []string{"2026-11-30T23:00:00Z", "2026-11-30T23:59:59Z"}, "2026-11-30T23+00:00@UTC"},
		{"first of a repeated hour", perHour, "Europe/Berlin", []string{"2026-10-25T00:00:00Z", "2026-10-25T00:59:59Z"}, "2026-10-25T02+02:00@Europe/Berlin"},
		{"second of a repeated hour", perHour, "Europe/Berlin", []string{"2026-10-25T01:00:00Z", "2026-10-25T01:59:59Z"}, "2026-10-25T02+01:00@Europe/Berlin"},
		{"half an hour of offset", perHour, "Asia/Kolkata", []string{"2026-11-30T00:30:00Z", "2026-11-30T01:29:59Z"}, "2026-11-30T06+05:30@Asia/Kolkata"},
		{"half an hour is repeated", perHour, "Australia/Lord_Howe", []string{"2026-04-04T15:00:00Z", "2026-04-04T15:29:59Z"}, "2026-04-05T01+10:30@Australia/Lord_Howe"},
		{"day in another zone", perDay, "Asia/Tokyo", []string{"2026-11-29T15:00:00Z", "2026-11-30T14:59:59Z"}, "2026-11-30@Asia/Tokyo"},
		{"day of 25 hours", perDay, "Europe/Berlin", []string{"2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"}, "2026-10-25@Europe/Berlin"},
		{"day of 23 hours", perDay, "Europe/Berlin", []string{"2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"}, "2026-03-29@Europe/Berlin"},
		{"day without midnight", perDay, "America/Sao_Paulo", []string{"2018-11-04T03:00:00Z", "2018-11-05T01:59:59Z"}, "2018-11-04@America/Sao_Paulo"},
		{"day before it", perDay, "America/Sao_Paulo", []string{"2018-11-03T03:00:00Z", "2018-11-04T02:59:59Z"}, "2018-11-03@America/Sao_Paulo"},
		{"day without midnight, further east", perDay, "Asia/Beirut", []string{"2026-03-28T22:00:00Z", "2026-03-29T20:59:59Z"}, "2026-03-29@Asia/Beirut"},
		{"week over the new year", perWeek, "UTC", []string{"2026-12-28T00:00:00Z", "2027-01-03T23:59:59Z"}, "2026-W53@UTC"},
		{"week that begins in the old year", perWeek, "UTC", []string{"2024-12-30T00:00:00Z", "2025-01-05T23:59:59Z"}, "2025-W01@UTC"},
		{"month", perMonth, "Pacific/Auckland", []string{"2026-10-31T11:00:00Z", "2026-11-30T10:59:59Z"}, "2026-11@Pacific/Auckland"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z, err := namedZone("--tz", tt.zone)
			require.NoError(t, err)
			for _, at := range tt.at {
				got := tt.period.key(parseTime(t, at), z)
				require.Equal(t, tt.want, got, at)
				require.NoError(t, idem.Key{Scope: "run", ID: "x@" + got}.Validate())
			}
		})
	}
}

// A second after, or before, each period another one begins or ends.
func TestPeriodKeyChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"} {
		z, err := namedZone("--tz", name)
		require.NoError(t, err)
		for _, p := range allPeriods() {
			last, seen := "", map[string]bool{}
			for at := parseTime(t, "2018-01-01T00:00:00Z"); at.Year() < 2020; at = at.Add(30 * time.Minute) {
				key := p.key(at, z)
				if key == last {
					continue
				}
				require.False(t, seen[key], "%s comes back at %s", key, at)
				seen[key], last = true, key
			}
		}
	}
}

// A period ends when its name does, to the second, whatever the clocks do in it.
func TestPeriodEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		period period
		zone   string
		at     string
		want   string
	}{
		{"hour", perHour, "UTC", "2026-11-30T23:10:00.5Z", "2026-12-01T00:00:00Z"},
		{"first of a repeated hour", perHour, "Europe/Berlin", "2026-10-25T00:10:00Z", "2026-10-25T01:00:00Z"},
		{"half an hour is repeated", perHour, "Australia/Lord_Howe", "2026-04-04T15:10:00Z", "2026-04-04T15:30:00Z"},
		{"day", perDay, "Asia/Tokyo", "2026-11-30T14:59:59Z", "2026-11-30T15:00:00Z"},
		{"day of 25 hours", perDay, "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"day before one without midnight", perDay, "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"week over the new year", perWeek, "UTC", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"month", perMonth, "Europe/Berlin", "2026-10-01T12:00:00Z", "2026-10-31T23:00:00Z"},
		{"longest month", perMonth, "UTC", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z, err := namedZone("--tz", tt.zone)
			require.NoError(t, err)
			require.Equal(t, tt.want, tt.period.end(parseTime(t, tt.at), z).UTC().Format(time.RFC3339))
		})
	}
}

func TestCoverPeriod(t *testing.T) {
	t.Parallel()
	byDefault := runFlags{retention: defaultRetention}
	require.NoError(t, byDefault.cover(perMonth, 700*time.Hour))
	require.Equal(t, 724*time.Hour, byDefault.retention)

	long := runFlags{retention: 800 * time.Hour, retentionSet: true}
	require.NoError(t, long.cover(perMonth, 700*time.Hour))
	require.Equal(t, 800*time.Hour, long.retention, "as it was given")

	short := runFlags{retention: 24 * time.Hour, retentionSet: true}
	err := short.cover(perMonth, 700*time.Hour)
	require.ErrorContains(t, err, "--retention 24h0m0s ends before the month does, which has 700h0m0s to go")
	require.Equal(t, exitUsage, (&app{err: &bytes.Buffer{}}).report(t.Context(), err))
}

func TestPeriodKeyNamelessZone(t *testing.T) {
	t.Parallel()
	berlin, err := namedZone("--tz", "Europe/Berlin")
	require.NoError(t, err)
	nameless := zone{"", berlin.loc}
	tests := []struct {
		period period
		at     []string
		want   string
	}{
		{perHour, []string{"2026-10-25T01:00:00Z"}, "2026-10-25T02+01:00"},
		{perDay, []string{"2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"}, "2026-10-25@+02:00"},
		{perWeek, []string{"2026-10-18T22:00:00Z", "2026-10-25T22:59:59Z"}, "2026-W43@+02:00"},
		{perWeek, []string{"2026-12-27T23:00:00Z", "2027-01-03T22:59:59Z"}, "2026-W53@+01:00"},
		{perMonth, []string{"2026-09-30T22:00:00Z", "2026-10-31T22:59:59Z"}, "2026-10@+02:00"},
	}
	for _, tt := range tests {
		for _, at := range tt.at {
			require.Equal(t, tt.want, tt.period.key(parseTime(t, at), nameless), "%s %s", tt.period, at)
		}
	}
}

func TestFindZone(t *testing.T) {
	t.Parallel()
	noLink := errors.New("no link")
	tests := []struct {
		name, flag, tz, link string
		want                 string // "" for an error
	}{
		{"flag", "Asia/Tokyo", "Europe/Berlin", "", "Asia/Tokyo"},
		{"environment", "", "Europe/Berlin", "../usr/share/zoneinfo/Asia/Tokyo", "Europe/Berlin"},
		{"environment with colon", "", ":Europe/Berlin", "", "Europe/Berlin"},
		{"environment with path", "", "/usr/share/zoneinfo/Europe/Berlin", "", "Europe/Berlin"},
		{"link", "", "", "../usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"},
		{"link into posix", "", "", "/usr/share/zoneinfo/posix/Asia/Tokyo", "Asia/Tokyo"},
		{"link on a Mac", "", "", "/var/db/timezone/zoneinfo/Asia/Tokyo", "Asia/Tokyo"},
		{"unknown flag", "Europe/Atlantis", "", "", ""},
		{"a flag that names nothing", "Local", "", "", ""},
		{"a rule, which Go would take for UTC", "", "CET-1CEST", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z, err := findZone(tt.flag, func(string) string { return tt.tz }, func(string) (string, error) {
				if tt.link == "" {
					return "", noLink
				}
				return tt.link, nil
			})
			if tt.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, z.name)
			require.Equal(t, tt.want, z.loc.String())
		})
	}
}

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}
