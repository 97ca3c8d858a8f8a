package form

// pattern is a compiled JSON Schema with its cost.
type pattern struct {
	check func(value []byte) string // returns why it does not accept a value, which is JSON, or ""
	size  int                       // bytes of its JSON
	own   survey                    // the work to compile it, in which nothing counts twice
	schemaCost
}

// schemaCost is the work that a schema and all below it cause.
type schemaCost struct {
	schemas int // subschemas
	checks  int // subschemas, and the members of enums and required names to compare with
	steps   int // states of regular expressions, each of which may read every byte of a text
}

// Bounds of the patterns of one form together.
const (
	maxFormPatterns = 64 << 10 // bytes
	maxFormSchemas  = 2000     // schemas
	maxFormSteps    = 20_000   // states of regular expressions
)

// patternBudget is the work that the patterns of one form may still take.
type patternBudget struct {
	bytes   int
	objects int
	steps   int
}

func newPatternBudget() *patternBudget {
	return &patternBudget{maxFormPatterns, maxFormSchemas, maxFormSteps}
}

// unlimitedPatterns returns a budget that bounds each pattern only by itself. It is for forms in the log, which were
// accepted by the bounds of their time.
func unlimitedPatterns() *patternBudget { return &patternBudget{1 << 40, 1 << 40, 1 << 40} }

// take spends a part of the budget. It reports whether enough was left.
func (r *patternBudget) take(bytes int, s survey) bool {
	r.bytes, r.objects, r.steps = r.bytes-bytes, r.objects-s.objects, r.steps-s.steps
	return !r.isUp()
}

func (r *patternBudget) isUp() bool { return r.bytes < 0 || r.objects < 0 || r.steps < 0 }

// survey counts the parts of a pattern's JSON, before the compiler spends time and memory on it.
type survey struct {
	objects int // each may be a schema
	steps   int // states of regular expressions
}
