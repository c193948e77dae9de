package idem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestPresetsAreValid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		policy    idem.Policy
		retention time.Duration
	}{
		{"Payments", idem.Payments, 72 * time.Hour},
		{"Orders", idem.Orders, 24 * time.Hour},
		{"API", idem.API, 24 * time.Hour},
	}
	for _, tt := range tests {
		require.NoError(t, tt.policy.Validate(), tt.name)
		require.Equal(t, tt.retention, tt.policy.Retention, tt.name)
		require.Equal(t, idem.FailClosed(), tt.policy.OnInterrupted, "%s fails closed", tt.name)
	}
}

func TestPolicyRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*idem.Policy)
		field  string // "" for a valid policy
	}{
		{"zero value", func(p *idem.Policy) { *p = idem.Policy{} }, "Retention"},
		{"no retention", func(p *idem.Policy) { p.Retention = 0 }, "Retention"},
		{"negative retention", func(p *idem.Policy) { p.Retention = -time.Hour }, "Retention"},
		{"shortest retention", func(p *idem.Policy) { p.Retention, p.RetryWindow = 1, 0 }, ""},
		{"longest retention", func(p *idem.Policy) { p.Retention = idem.MaxRetention }, ""},
		{"retention without end", func(p *idem.Policy) { p.Retention = idem.MaxRetention + 1 }, "Retention"},
		{"retention as long as the retry window", func(p *idem.Policy) { p.Retention, p.RetryWindow = time.Hour, time.Hour }, "Retention"},
		{"retention just longer", func(p *idem.Policy) { p.Retention, p.RetryWindow = time.Hour+1, time.Hour }, ""},
		{"retry window unknown", func(p *idem.Policy) { p.RetryWindow = 0 }, ""},
		{"negative retry window", func(p *idem.Policy) { p.RetryWindow = -1 }, "RetryWindow"},
		{"no lease", func(p *idem.Policy) { p.Lease = 0 }, "Lease"},
		{"negative lease", func(p *idem.Policy) { p.Lease = -time.Second }, "Lease"},
		{"shortest lease", func(p *idem.Policy) { p.Lease = idem.MinLease }, ""},
		{"lease too short", func(p *idem.Policy) { p.Lease = idem.MinLease - 1 }, "Lease"},
		{"lease without end", func(p *idem.Policy) { p.Lease = idem.MaxRetention + 1 }, "Lease"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := idem.API
			tt.change(&p)
			err := p.Validate()
			_, newErr := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithPolicy(p))
			require.Equal(t, err, newErr)
			if tt.field == "" {
				require.NoError(t, err)
				return
			}
			var broken *idem.PolicyError
			require.ErrorAs(t, err, &broken)
			require.ErrorIs(t, err, idem.ErrInvalidPolicy)
			require.Equal(t, tt.field, broken.Field)
			require.Contains(t, err.Error(), tt.field)
		})
	}
}
