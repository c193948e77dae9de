package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // so that --tz works on machines and in containers without zone files
)

// period is a stretch of calendar time in which a key is used once.
type period string

const (
	perHour  period = "hour"
	perDay   period = "day"
	perWeek  period = "week"
	perMonth period = "month"
)

func allPeriods() []period { return []period{perHour, perDay, perWeek, perMonth} }

func parsePeriod(name string) (period, error) {
	for _, p := range allPeriods() {
		if string(p) == name {
			return p, nil
		}
	}
	return "", usage("invalid --once-per %q: use hour, day, week or month", name)
}

// zone is a time zone and the name that keys know it by: "" if nobody knows it.
type zone struct {
	name string
	loc  *time.Location
}

// key names the period that t falls into, for instance "2026-11-30@Europe/Berlin",
// "2026-W49@UTC" or "2026-10-25T02+02:00@Europe/Berlin". Two times have the same
// name exactly if they are in the same period of the same zone: an hour that
// comes twice when clocks are put back is told apart by its offset, and a day
// without a midnight is one day. The name needs no quoting in a shell.
//
// A zone without a name is written as the offset at the beginning of the period,
// since the offset may change within it.
func (p period) key(t time.Time, z zone) string {
	t = t.In(z.loc)
	year, month, day := t.Date()
	var name string
	switch p {
	case perHour:
		name = t.Format("2006-01-02T15-07:00")
		if z.name == "" {
			return name
		}
	case perDay:
		name = t.Format("2006-01-02")
	case perWeek:
		var week int
		year, week = t.ISOWeek()
		name = fmt.Sprintf("%04d-W%02d", year, week)
		day -= (int(t.Weekday()) + 6) % 7 // Monday
		year = t.Year()
	case perMonth:
		name, day = t.Format("2006-01"), 1
	}
	if z.name == "" {
		return name + "@" + time.Date(year, month, day, 0, 0, 0, 0, z.loc).Format("-07:00")
	}
	return name + "@" + z.name
}

// longestPeriod is more than a month with any change of the clock.
const longestPeriod = 33 * 24 * time.Hour

// end is when the period of t is over. It is searched for, since periods end in
// ways that no arithmetic on dates gets right in every zone.
func (p period) end(t time.Time, z zone) time.Time {
	name, from := p.key(t, z), t.Truncate(time.Second)
	seconds := sort.Search(int(longestPeriod/time.Second), func(s int) bool {
		return p.key(from.Add(time.Duration(s)*time.Second), z) != name
	})
	return from.Add(time.Duration(seconds) * time.Second)
}

// localtime is where the system's zone is configured.
const localtime = "/etc/localtime"

// findZone returns the zone called name, or the local one if name is "": TZ, else
// the zone that the link at localtime points to.
func findZone(name string, getenv func(string) string, readlink func(string) (string, error)) (zone, error) {
	if name != "" {
		return namedZone("--tz", name)
	}
	if tz, set := strings.TrimPrefix(getenv("TZ"), ":"), getenv("TZ") != ""; set {
		return namedZone("TZ", zoneName(tz))
	}
	if target, err := readlink(localtime); err == nil {
		if z, err := namedZone("", zoneName(target)); err == nil {
			return z, nil
		}
	}
	if time.Local.String() != "Local" { // the system has no zone: Go takes UTC
		return zone{"UTC", time.UTC}, nil
	}
	return zone{"", time.Local}, nil
}

// zone is findZone on this system.
func (a *app) zone(name string) (zone, error) {
	return findZone(name, func(variable string) string {
		value := a.getenv(variable)
		if _, set := os.LookupEnv(variable); set && value == "" {
			return "UTC" // what an empty TZ means
		}
		return value
	}, os.Readlink)
}

// namedZone refuses what Go would quietly take for UTC or for whatever zone is
// local: the name must say which zone it is.
func namedZone(from, name string) (zone, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return zone{}, fail(exitUsage, "--tz Europe/Berlin, or --tz UTC", "%s %q is not the name of a time zone", from, name)
	}
	if name == "Etc/UTC" { // what most servers are set to, by either name
		name = "UTC"
	}
	return zone{name, loc}, nil
}

// zoneName cuts the directory of zone files off a path to one.
func zoneName(path string) string {
	path = filepath.ToSlash(path)
	if _, name, found := strings.Cut(path, "zoneinfo/"); found {
		return strings.TrimPrefix(strings.TrimPrefix(name, "posix/"), "right/")
	}
	return path
}
