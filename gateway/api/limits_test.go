package api

import (
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
)

func TestParseLimits(t *testing.T) {
	for text, want := range map[string]Limits{
		"":                                {},
		" , ,":                            {},
		"calls=7":                         {"calls": 7},
		" calls=7 , waits.all=9,":         {"calls": 7, "waits.all": 9},
		"calls=7,calls=8":                 {"calls": 8},
		"connections.peers=1":             {LimitUnproved: 1},
		"memory.host=1099511627776":       {"memory.host": 1 << 40},
		"rate=10,sign-ins=5,bodies.all=3": {LimitRate: 10, LimitSignIns: 5, "bodies.all": 3},
	} {
		if got, err := ParseLimits(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
}

func TestParseLimitsRefuses(t *testing.T) {
	for _, text := range []string{
		"calls", "calls=", "calls=0", "calls=-1", "calls=1.5", "calls=1e3", "calls=many", "calls=0x10", "calls= 7", "calls=7=8",
		"calls=1099511627777", "calls=99999999999999999999", "CALLS=7", "call=7", "calls.each=7", "calls=7;waits=9",
		"calls=7,fly=1", strings.Repeat("x", 10_000) + "=1", "calls=" + strings.Repeat("9", 10_000), "calls\x00=1",
	} {
		got, err := ParseLimits(text)
		if parley.CodeOf(err) != parley.InvalidArgument || got != nil {
			t.Errorf("%.60q: %v %v, want %s", text, got, err, parley.InvalidArgument)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.60q: the error has %d bytes", text, len(err.Error()))
		}
	}
}

func TestLimitsRoundTrip(t *testing.T) {
	var keys []string
	for _, k := range LimitKeys() {
		keys = append(keys, k.Key)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := Limits(rapid.MapOf(rapid.SampledFrom(keys), rapid.Int64Range(1, 1<<40)).Draw(t, "limits"))
		back, err := ParseLimits(l.String())
		if err != nil || !maps.Equal(back, l) {
			t.Fatalf("%q became %v (%v)", l, back, err)
		}
	})
}

func TestLimitsHaveDefaults(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range LimitKeys() {
		if seen[k.Key] {
			t.Errorf("%s is listed twice", k.Key)
		}
		seen[k.Key] = true
		if k.Default < 1 || k.Help == "" {
			t.Errorf("%+v has no default or no help", k)
		}
		if got := Limits(nil).Of(k.Key); got != k.Default {
			t.Errorf("%s is %d, want the default %d", k.Key, got, k.Default)
		}
		if got := (Limits{k.Key: 3}).Of(k.Key); got != 3 {
			t.Errorf("%s is %d, want 3", k.Key, got)
		}
		if _, err := ParseLimits(k.Key + "=" + strconv.FormatInt(k.Default, 10)); err != nil {
			t.Errorf("the default of %s is refused: %v", k.Key, err)
		}
	}
	if got := (Limits{}).Of("fly"); got != 0 {
		t.Errorf("a limit that is none is %d", got)
	}
	if got := (Limits{LimitUnproved: math.MaxInt64}).Unproved(); got != 1<<20 {
		t.Errorf("%d connections that have proved no key", got)
	}
}

// One agent must never take all places that guests share, or it would block the others.
func TestResourcesLeaveRoomForOthers(t *testing.T) {
	for k, r := range Resources() {
		if r.Key == "" || r.What == "" || r.Host < 1 {
			t.Errorf("kind %d is described as %+v", k, r)
		}
		if r.Each >= r.All {
			t.Errorf("%s: one agent may have %d of %d", r.Key, r.Each, r.All)
		}
		if r.Code != parley.RateLimited && r.Code != parley.QuotaExceeded {
			t.Errorf("%s is refused with %s", r.Key, r.Code)
		}
	}
}
