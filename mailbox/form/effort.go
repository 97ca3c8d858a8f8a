package form

import (
	"time"

	"parley/capabilities"
	"parley/events"
)

// The effort of a form is the approximate processor time of its patterns. It is computed from sizes alone, so equal
// forms and answers have equal efforts on every machine.
const (
	effortOfPattern = 40 * time.Microsecond // to compile any one
	effortOfSchema  = 20 * time.Microsecond
	effortOfState   = time.Microsecond
	effortOfByte    = 400 * time.Nanosecond
	effortOfCheck   = 200 * time.Nanosecond
	effortOfMatch   = 10 * time.Nanosecond // of one byte with one state
)

// Memory that a schema takes, in bytes: its fields, and its compiled patterns.
const (
	memoryOfSlot   = 1 << 9 // of the schema itself, with those that hold it
	memoryOfField  = 192
	memoryOfOption = 48
	memoryOfName   = 64

	memoryOfSchema = 1 << 10
	memoryOfState  = 400
	memoryOfByte   = 20
)

// CompileEffort returns the effort of compiling the schema.
func (c *Schema) CompileEffort() time.Duration {
	var total time.Duration
	for _, p := range c.patterns {
		if p != nil {
			total += effortOfPattern + time.Duration(p.own.objects)*effortOfSchema + time.Duration(p.own.steps)*effortOfState + time.Duration(p.size)*effortOfByte
		}
	}
	return total
}

// RefusedEffort returns the effort of fields that do not compile. It assumes that the compiler read all of them.
func RefusedEffort(fields []events.Field) time.Duration {
	var total time.Duration
	for _, f := range fields {
		if len(f.Pattern) > 0 {
			total += effortOfPattern + time.Duration(len(f.Pattern))*effortOfSchema/16
		}
	}
	return min(total, maxFormSchemas*effortOfSchema)
}

// CheckEffort returns the effort of checking an answer, at most the effort that one answer is allowed.
func (c *Schema) CheckEffort(values map[string]capabilities.Value, texts []events.FieldText) time.Duration {
	if c.patterns == nil {
		return 0
	}
	var checks, matches int
	add := func(name string, e capabilities.Extent) {
		if i, ok := c.find(name); ok && c.patterns[i] != nil {
			checks += e.Parts * c.patterns[i].checks
			matches += e.Bytes * c.patterns[i].steps
		}
	}
	for name, v := range values {
		add(name, v.Extent())
	}
	for _, t := range texts {
		add(t.Name, capabilities.Extent{Parts: 1, Bytes: len(t.Text)})
	}
	most := newCheckBudget()
	return time.Duration(min(checks, most.checks))*effortOfCheck + time.Duration(min(matches, most.matches))*effortOfMatch
}

// FieldsMemory returns the approximate bytes that fields take.
func FieldsMemory(fields []events.Field) int {
	total := memoryOfSlot
	for i := range fields {
		total += memoryOfField + FieldSize(&fields[i]) + memoryOfOption*len(fields[i].Options)
	}
	return total
}

// Memory returns the approximate bytes that the schema takes with its fields.
func (c *Schema) Memory() int {
	total := FieldsMemory(c.fields) + memoryOfName*len(c.index)
	for _, p := range c.patterns {
		if p != nil {
			total += memoryOfSchema*p.own.objects + memoryOfState*p.own.steps + memoryOfByte*p.size
		}
	}
	return total
}
