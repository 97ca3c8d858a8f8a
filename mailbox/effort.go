package mailbox

import (
	"time"

	"parley/capabilities"
	"parley/events"
)

// The effort of a form is about the processor time that its patterns take. It is computed from sizes alone, so equal
// forms and answers have equal efforts on every machine.
const (
	effortOfPattern = 40 * time.Microsecond // to compile one, whatever is in it
	effortOfSchema  = 20 * time.Microsecond
	effortOfState   = time.Microsecond
	effortOfByte    = 400 * time.Nanosecond
	effortOfCheck   = 200 * time.Nanosecond
	effortOfMatch   = 10 * time.Nanosecond // of one byte with one state
)

// Memory that a compiled pattern takes, in bytes.
const (
	memoryOfSchema = 1 << 10
	memoryOfState  = 400
	memoryOfByte   = 20
)

// CompileEffort returns the effort that the contract took to compile.
func (c *Schema) CompileEffort() time.Duration {
	var total time.Duration
	for _, p := range c.patterns {
		if p != nil {
			total += effortOfPattern + time.Duration(p.own.objects)*effortOfSchema + time.Duration(p.own.steps)*effortOfState + time.Duration(p.size)*effortOfByte
		}
	}
	return total
}

// RefusedEffort returns the effort of fields that do not compile. How far the compiler came is not known.
func RefusedEffort(fields []events.Field) time.Duration {
	var total time.Duration
	for _, f := range fields {
		if len(f.Pattern) > 0 {
			total += effortOfPattern + time.Duration(len(f.Pattern))*effortOfSchema/16
		}
	}
	return min(total, maxFormSchemas*effortOfSchema)
}

// CheckEffort returns the effort to check an answer. No answer takes more than what one is allowed.
func (c *Schema) CheckEffort(values map[string]capabilities.Value, texts []Text) time.Duration {
	if c.patterns == nil {
		return 0
	}
	var checks, matches int
	add := func(name string, e extent) {
		if i, ok := c.find(name); ok && c.patterns[i] != nil {
			checks += e.parts * c.patterns[i].checks
			matches += e.bytes * c.patterns[i].steps
		}
	}
	for name, v := range values {
		add(name, measure(v))
	}
	for _, t := range texts {
		add(t.Name, extent{parts: 1, bytes: len(t.Text)})
	}
	most := newCheckBudget()
	return time.Duration(min(checks, most.checks))*effortOfCheck + time.Duration(min(matches, most.matches))*effortOfMatch
}

// Memory returns about how many bytes the compiled patterns take. It is 0 for a contract without patterns.
func (c *Schema) Memory() int {
	total := 0
	for _, p := range c.patterns {
		if p != nil {
			total += memoryOfSchema*p.own.objects + memoryOfState*p.own.steps + memoryOfByte*p.size
		}
	}
	return total
}

// HasPatterns reports whether a form's fields have patterns, which are worth keeping once compiled.
func HasPatterns(fields []events.Field) bool {
	for i := range fields {
		if len(fields[i].Pattern) > 0 {
			return true
		}
	}
	return false
}
