package backend

import (
	"testing"

	"pgregory.net/rapid"

	"parley/gateway/api"
)

// A new account gets a place however many others take all that they can.
func TestNewAccountAlwaysGetsAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPool("agents", api.Limits{"waits.all": 1024, "waits": 1024}, ".all")
		for range rapid.IntRange(0, 8).Draw(t, "greedy agents") {
			greedy := newAccount(p)
			for greedy.Take(api.KindWaits, 1) == nil {
			}
		}
		if err := newAccount(p).Take(api.KindWaits, 1); err != nil {
			t.Error(err)
		}
		var used int64
		if used = p.shares[api.KindWaits].used.Load(); used > 1024 {
			t.Errorf("%d of 1024", used)
		}
	})
}
