package cli

import (
	"github.com/idembolt/idem"
)

// statsJSON is stats in JSON; docs/cli.md describes it.
type statsJSON struct {
	File           fileJSON             `json:"file"`
	Records        int64                `json:"records"`
	Damaged        int64                `json:"damaged"`
	States         map[string]stateJSON `json:"states"`
	OwnerGone      int64                `json:"interrupted_owner_gone"`
	LeaseOver      int64                `json:"interrupted_lease_over"`
	CreatedPerHour []int64              `json:"created_per_hour"`
	Replays        uint64               `json:"replays"`
	Mismatches     uint64               `json:"mismatches"`
	HoldMS         *holdJSON            `json:"hold_ms"`
	Activity       activityJSON         `json:"activity"`
	Suspects       []figureJSON         `json:"suspects"`
	Largest        []figureJSON         `json:"largest"`
	MostReplayed   []figureJSON         `json:"most_replayed"`
}

type stateJSON struct {
	Count  int64   `json:"count"`
	Share  float64 `json:"share"`
	Bytes  int64   `json:"bytes"`
	Oldest *string `json:"oldest_created_at"`
}

type holdJSON struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// activityJSON is what happened to calls in some hours.
type activityJSON struct {
	Events   map[string]uint64 `json:"events"`
	Rejected map[string]uint64 `json:"rejected"`
	HitRate  *float64          `json:"hit_rate"`
}

// figureJSON is a key that stands out.
type figureJSON struct {
	Key                string `json:"key"`
	State              string `json:"state"`
	SizeBytes          int    `json:"size_bytes"`
	Replays            uint64 `json:"replays"`
	Mismatches         uint64 `json:"mismatches"`
	DistinctMismatches int    `json:"distinct_mismatches"`
}

func newStatsJSON(s *statistics, top int) statsJSON {
	j := statsJSON{
		File: newFileJSON(s.info), Records: s.total, Damaged: s.damaged, States: make(map[string]stateJSON),
		OwnerGone: s.ownerGone, LeaseOver: s.leaseOver, CreatedPerHour: s.createdPerHour[:],
		Replays: s.replays, Mismatches: s.mismatches, Activity: newActivityJSON(sumHours(s.history)),
		Suspects: figures(&s.suspects, top), Largest: figures(&s.largest, top), MostReplayed: figures(&s.mostReplay, top),
	}
	for _, name := range stateNames() {
		state := stateJSON{}
		if c := s.states[name]; c != nil {
			state = stateJSON{Count: c.count, Share: float64(c.count) / float64(s.total), Bytes: c.bytes, Oldest: jsonTime(c.oldest)}
		}
		j.States[name] = state
	}
	if s.hold.count > 0 {
		ms := func(p float64) float64 { return float64(s.hold.percentile(p).Microseconds()) / 1000 }
		j.HoldMS = &holdJSON{ms(0.5), ms(0.95), ms(0.99)}
	}
	return j
}

func newActivityJSON(a activity) activityJSON {
	j := activityJSON{Events: make(map[string]uint64), Rejected: make(map[string]uint64)}
	for _, kind := range idem.EventKinds() {
		j.Events[kind.String()] = a.events[kind]
	}
	for reason, n := range a.rejected {
		j.Rejected[string(reason)] = n
	}
	if a.answered() > 0 {
		rate := a.hitRate()
		j.HitRate = &rate
	}
	return j
}

func figures(list *topList, top int) []figureJSON {
	found := []figureJSON{}
	for _, e := range list.sorted() {
		if len(found) == top {
			break
		}
		found = append(found, figureJSON{
			Key: e.Key.String(), State: e.State, SizeBytes: e.Size, Replays: e.Replays,
			Mismatches: e.Mismatches, DistinctMismatches: e.DistinctMismatches,
		})
	}
	return found
}
