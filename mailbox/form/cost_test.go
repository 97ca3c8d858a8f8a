package form

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// regexps returns n fields with the same pattern.
func regexps(n int, pattern string) []events.Field {
	fields := make([]events.Field, n)
	for i := range fields {
		fields[i] = field(fmt.Sprintf("f%d", i), events.Text, patterned(pattern))
	}
	return fields
}

func TestPatternsOfFormShareOneBudget(t *testing.T) {
	schemas := `{"allOf":[{}` + strings.Repeat(",{}", 900) + `]}`
	long := `{"description":"` + strings.Repeat("x", 15<<10) + `"}`
	for name, c := range map[string]struct {
		pattern string
		fits    int
		fails   int
	}{
		"256 large expressions":   {`{"pattern":"^\\pL{200}$"}`, 4, 256},
		"256 expressions by name": {`{"patternProperties":{"^\\pL{200}$":true}}`, 4, 256},
		"many schemas":            {schemas, 2, 3},
		"many bytes":              {long, 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			compiled(t, regexps(c.fits, c.pattern)...)
			began := time.Now()
			_, err := Compile(regexps(c.fails, c.pattern))
			if parley.CodeOf(err) != parley.InvalidForm || !strings.Contains(err.Error(), "too much work together") {
				t.Fatalf("%d such fields: %v", c.fails, err)
			}
			t.Logf("refused after %v", time.Since(began))
		})
	}
	compiled(t, regexps(parley.MaxFields, `{"type":"string","minLength":1,"pattern":"^[a-z][a-z0-9-]+$"}`)...) // a form with modest patterns
}

func TestEffortGrowsWithWork(t *testing.T) {
	small := compiled(t, regexps(1, `{"maxLength":10}`)...)
	large := compiled(t, regexps(4, `{"pattern":"^\\pL{200}$"}`)...)
	if s, l := small.CompileEffort(), large.CompileEffort(); s <= 0 || l < 20*s {
		t.Errorf("efforts of %v and %v", s, l)
	}
	if s, l := small.Memory(), large.Memory(); s <= 0 || l < 1<<20 {
		t.Errorf("memory of %d and %d", s, l)
	}
	if c := compiled(t, field("a", events.Text)); c.CompileEffort() != 0 || c.CheckEffort(nil, []events.FieldText{{Name: "a", Text: "x"}}) != 0 {
		t.Error("a form without patterns has an effort")
	}
	long := map[string]capabilities.Value{"f0": capabilities.String(strings.Repeat("x", 1<<16))}
	if s, l := large.CheckEffort(nil, []events.FieldText{{Name: "f0", Text: "x"}}), large.CheckEffort(long, nil); s <= 0 || l < 1000*s || l > time.Second {
		t.Errorf("efforts of %v and %v", s, l)
	}
	if e := RefusedEffort(regexps(256, `{"pattern":"("}`)); e < time.Millisecond || e > time.Second {
		t.Errorf("an effort of %v for refused fields", e)
	}
}
