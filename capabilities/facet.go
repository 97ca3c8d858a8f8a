package capabilities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"parley/internal/fault"
	"parley/internal/pack"
)

// Mode limits the ways in which a holder may use the target of a reference.
type Mode string

// The modes, from most to least. The zero Mode is Full.
const (
	Full     Mode = ""     // everything its kind allows
	AskOnly  Mode = "ask"  // forms and requests, but no messages
	ReadOnly Mode = "read" // reading, but no mail, and nothing that changes a resource
)

// Use is a way to use a reference.
type Use string

// The uses.
const (
	UseRead Use = "read"
	UseAsk  Use = "ask"
	UseSend Use = "send"
	UseGive Use = "give"
)

// Facet is the part of a target's authority that a reference carries. The zero Facet is all of it. Facets are comparable.
//
// Only references to resources have the members from Rate on. What a facet of two such lists or paths has in common may be
// nothing: it is written as Nothing then, never as "", which is without limit.
type Facet struct {
	Mode    Mode   `json:"mode,omitempty"`
	Until   Time   `json:"until,omitzero"` // zero: without end
	Uses    uint32 `json:"uses,omitempty"` // zero: without limit
	Rate    Rate   `json:"rate,omitzero"`
	Below   string `json:"below,omitempty"`   // a path below the folder, or of an address: without a slash at its ends
	Only    string `json:"only,omitempty"`    // hosts of a secret, or tools: see WordsOf
	Methods string `json:"methods,omitempty"` // of a secret: see WordsOf
	Ask     bool   `json:"ask,omitempty"`     // the giver decides each use
}

// UnmarshalJSON refuses with INVALID_ARGUMENT a member that there is not, and one that narrows nothing: a facet with a name misspelt, or an
// empty path, would give everything.
func (f *Facet) UnmarshalJSON(b []byte) error {
	type plain Facet
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return fault.Refuse(fault.InvalidArgument, "a facet is a JSON object")
	}
	for _, name := range []string{"uses", "rate", "below", "only", "methods"} {
		if v, ok := members[name]; ok && slices.Contains([]string{"0", `""`, "{}", "null"}, string(v)) {
			return fault.Refuse(fault.InvalidArgument, "%s of a facet narrows nothing: leave it out, or give it a value", name)
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var got plain
	if err := d.Decode(&got); err != nil {
		if parsed := fault.AsError(err); parsed.Code == fault.InvalidArgument {
			return parsed
		}
		return fault.Refuse(fault.InvalidArgument, "this is no facet: %v", err)
	}
	*f = Facet(got)
	return nil
}

// Rate bounds the uses within any time of so many seconds. The zero Rate is no bound.
type Rate struct {
	Uses    uint32 `json:"uses"`    // at most MaxRate
	Seconds uint32 `json:"seconds"` // at most 31 days
}

// Bounds of a facet.
const (
	MaxRate    = 1000
	maxSeconds = 31 * 24 * 3600
	maxBelow   = 1024 // bytes
	maxOnly    = 2048 // bytes
	maxMethods = 128  // bytes
)

// Nothing is the path, and the list of words, that nothing is in.
const Nothing = "/"

// WordsOf returns a list of words as a facet has it: sorted, each once, with a space between two. A word has no space in it.
func WordsOf(words ...string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(words))), " ")
}

// HasWord reports whether a list of words permits one: it has it, or is without limit.
func HasWord(list, word string) bool {
	return list == "" || list != Nothing && slices.Contains(strings.Fields(list), word)
}

// IsBelow reports whether a path is the other one, or below it. Both are without a slash at their ends; "" is above all.
func IsBelow(p, above string) bool {
	return above != Nothing && (above == "" || p == above || strings.HasPrefix(p, above+"/"))
}

// IsFull reports whether the facet permits every use.
func (f Facet) IsFull() bool { return f == Facet{} }

// ofResource reports whether the facet has limits that only references to resources have.
func (f Facet) ofResource() bool {
	return f != Facet{Mode: f.Mode, Until: f.Until, Uses: f.Uses}
}

// Check refuses with INVALID_ARGUMENT a facet that is malformed, or whose mode is unknown.
func (f Facet) Check() error {
	switch f.Mode {
	case Full, AskOnly, ReadOnly:
	default:
		return fault.Refuse(fault.InvalidArgument, "unknown facet %.40q", f.Mode).WithHint("facets are ask and read")
	}
	if !f.ofResource() {
		return nil
	}
	switch r := f.Rate; {
	case (r.Uses == 0) != (r.Seconds == 0) || r.Uses > MaxRate || r.Seconds > maxSeconds:
		return fault.Refuse(fault.InvalidArgument, "a rate is 1 to %d uses in 1 second to 31 days", MaxRate)
	case f.Below != Nothing && !isPath(f.Below):
		return fault.Refuse(fault.InvalidArgument, "%.80q is no path below something: it has no \"..\" and no slash at its ends", f.Below)
	case !isWords(f.Only, maxOnly) || !isWords(f.Methods, maxMethods):
		return fault.Refuse(fault.InvalidArgument, "the list of what may be used is malformed")
	}
	return nil
}

// CheckFor refuses with INVALID_ARGUMENT a facet that a reference of a kind cannot have, or that would leave nothing of it.
func (f Facet) CheckFor(kind Kind) error {
	if err := f.Check(); err != nil {
		return err
	}
	cannot := func(what string) error {
		article := "a"
		if kind == KindAgent {
			article = "an"
		}
		return fault.Refuse(fault.InvalidArgument, "a reference to %s %s cannot be limited to %s", article, kind, what)
	}
	switch {
	case f.IsNothing():
		return fault.Refuse(fault.InvalidArgument, "nothing would be left of the reference").WithHint("parley use NAME shows what is held of it")
	case !kind.IsResource() && f.Ask, !kind.IsResource() && f.Rate != (Rate{}):
		return cannot("a rate, or to uses that are asked for")
	case kind.IsResource() && f.Mode == AskOnly:
		return cannot("asking")
	case f.Below != "" && kind != KindFolder && kind != KindSecret:
		return cannot("what is below a path")
	case f.Only != "" && kind != KindSecret && kind != KindTool:
		return cannot("hosts or tools")
	case f.Methods != "" && kind != KindSecret:
		return cannot("methods")
	}
	return nil
}

// IsNothing reports whether the facet permits nothing, because what narrowed it had nothing in common.
func (f Facet) IsNothing() bool {
	return f.Below == Nothing || f.Only == Nothing || f.Methods == Nothing
}

// isPath reports whether a path is "", or in its shortest form and below something.
func isPath(p string) bool {
	if p == "" {
		return true
	}
	return len(p) <= maxBelow && utf8.ValidString(p) && path.Clean(p) == p && !path.IsAbs(p) && p != "." && p != ".." && !strings.HasPrefix(p, "../") &&
		!strings.ContainsFunc(p, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}

func isWords(list string, most int) bool {
	return len(list) <= most && utf8.ValidString(list) && WordsOf(strings.Fields(list)...) == list
}

// Narrow returns the facet of the uses that both f and g permit.
func (f Facet) Narrow(g Facet) Facet {
	if rank(g.Mode) > rank(f.Mode) {
		f.Mode = g.Mode
	}
	f.Until, f.Uses = least(f.Until, g.Until), least(f.Uses, g.Uses)
	f.Rate = Rate{Uses: least(f.Rate.Uses, g.Rate.Uses), Seconds: max(f.Rate.Seconds, g.Rate.Seconds)}
	switch {
	case IsBelow(g.Below, f.Below):
		f.Below = g.Below
	case !IsBelow(f.Below, g.Below):
		f.Below = Nothing
	}
	f.Only, f.Methods, f.Ask = common(f.Only, g.Only), common(f.Methods, g.Methods), f.Ask || g.Ask
	return f
}

// least returns the lesser of two limits, of which 0 is none.
func least[T Time | uint32](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// common returns the words that two lists have in common.
func common(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	both := slices.DeleteFunc(strings.Fields(a), func(w string) bool { return !HasWord(b, w) || w == Nothing })
	if len(both) == 0 {
		return Nothing
	}
	return WordsOf(both...)
}

// Covers reports whether a facet permits no less than another.
func (f Facet) Covers(g Facet) bool { return f.Narrow(g) == g }

func rank(m Mode) int {
	switch m {
	case Full:
		return 0
	case AskOnly:
		return 1
	case ReadOnly:
		return 2
	}
	return 3 // a mode of a newer program, which permits nothing here
}

// Wider reports whether f is preferred to g if both are held. It compares whether they have limits that only resources have, the
// modes, then the uses, then the ends. Uses already made are not considered.
func (f Facet) Wider(g Facet) bool {
	if f.ofResource() != g.ofResource() {
		return !f.ofResource()
	}
	if f.Mode != g.Mode {
		return rank(f.Mode) < rank(g.Mode)
	}
	if f.Uses != g.Uses {
		return f.Uses-1 > g.Uses-1 // 0 is without limit, and wraps round to the largest
	}
	return uint64(f.Until)-1 > uint64(g.Until)-1
}

// Permits refuses with NOT_PERMITTED a use that the facet does not permit at a time, after so many uses before. A
// facet of an unknown mode permits nothing.
func (f Facet) Permits(use Use, at Time, used uint32) error {
	switch {
	case f.Check() != nil:
		return fault.Refuse(fault.NotPermitted, "the reference is of an unknown facet %.40q", f.Mode)
	case f.Until != 0 && at >= f.Until:
		return fault.Refuse(fault.NotPermitted, "the reference was good until %s", f.Until)
	case f.Uses != 0 && used >= f.Uses && use != UseRead:
		return fault.Refuse(fault.NotPermitted, "the reference was good for %s", f.UsesWords())
	case f.Mode == ReadOnly && (use == UseAsk || use == UseSend):
		return fault.Refuse(fault.NotPermitted, "the reference is for reading only")
	case f.Mode == AskOnly && use == UseSend:
		return fault.Refuse(fault.NotPermitted, "the reference is for asking only")
	}
	return nil
}

// Action is one use of a resource, as a facet is asked about it. Its members are those that the resource's kind has.
type Action struct {
	Verb   string
	Writes bool   // it may change something
	Path   string // below the folder, or of the address; without a slash at its ends
	Word   string // the host, or the tool; "" for one that is about none
	Method string // of a secret
}

// Allows refuses with NOT_PERMITTED an action that the facet does not permit at a time. The number and the rate of uses are for the
// resource's home, which counts them.
func (f Facet) Allows(a Action, at Time) error {
	switch {
	case f.Check() != nil:
		return fault.Refuse(fault.NotPermitted, "the reference is of an unknown facet")
	case f.Until != 0 && at >= f.Until:
		return fault.Refuse(fault.NotPermitted, "the reference was good until %s", f.Until)
	case f.Mode != Full && a.Writes: // no reference to a resource is for asking; as one for reading, it is less than a full one
		return fault.Refuse(fault.NotPermitted, "the reference is for reading only")
	case !IsBelow(a.Path, f.Below):
		return fault.Refuse(fault.NotPermitted, "the reference is for what is below %.200q only", f.Below)
	case a.Word != "" && !HasWord(f.Only, a.Word):
		return fault.Refuse(fault.NotPermitted, "the reference is not for %.80q: it is for %.200s only", a.Word, f.Only)
	case a.Method != "" && !HasWord(f.Methods, a.Method):
		return fault.Refuse(fault.NotPermitted, "the reference is not for %.40q: it is for %.80s only", a.Method, f.Methods)
	}
	return nil
}

// plainFacet and wideFacet are the numbers of members in the two encodings of a facet. One without limits of resources has
// the shorter one.
const (
	plainFacet = 3
	wideFacet  = 9
)

// AppendMsgpack appends the facet as an array: [mode, until, uses], and if it has limits of resources also the uses and seconds of the
// rate, below, only, methods, ask.
func (f Facet) AppendMsgpack(b []byte) []byte {
	size := plainFacet
	if f.ofResource() {
		size = wideFacet
	}
	b = pack.AppendString(pack.AppendArray(b, size), string(f.Mode))
	b = pack.AppendUint(f.Until.AppendMsgpack(b), uint64(f.Uses))
	if size == plainFacet {
		return b
	}
	b = pack.AppendUint(pack.AppendUint(b, uint64(f.Rate.Uses)), uint64(f.Rate.Seconds))
	b = pack.AppendString(pack.AppendString(pack.AppendString(b, f.Below), f.Only), f.Methods)
	return pack.AppendBool(b, f.Ask)
}

// EncodeMsgpack encodes what AppendMsgpack appends.
func (f Facet) EncodeMsgpack(enc *msgpack.Encoder) error {
	r := rooms.Get().(*room)
	r.b = f.AppendMsgpack(r.b[:0])
	return r.encode(enc)
}

// DecodeMsgpack reads what AppendMsgpack appends, and nothing else.
func (f *Facet) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n != plainFacet && n != wideFacet {
		return fmt.Errorf("%w: a facet of %d members", errMalformed, n)
	}
	var got Facet
	var mode string
	if err := dec.DecodeMulti(&mode, &got.Until, &got.Uses); err != nil {
		return fmt.Errorf("facet: %w", err)
	}
	got.Mode = Mode(mode)
	if n == wideFacet {
		if err := dec.DecodeMulti(&got.Rate.Uses, &got.Rate.Seconds, &got.Below, &got.Only, &got.Methods, &got.Ask); err != nil {
			return fmt.Errorf("facet: %w", err)
		}
		if !got.ofResource() || got.Check() != nil {
			return fmt.Errorf("%w: facet", errMalformed)
		}
	}
	*f = got
	return nil
}
