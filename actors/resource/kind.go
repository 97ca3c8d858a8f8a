package resource

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Resource is a resource as its kind sees it.
type Resource struct {
	ID   capabilities.ID
	Made *events.ResourceMade

	Content func(ctx context.Context, offset int64) (data []byte, size int64, err error) // a piece of a file
	Secret  func() (string, error)
}

// Input is what a use is given, by name.
type Input = map[string]capabilities.Value

// Call is a use, read from its verb and input.
type Call struct {
	Action capabilities.Action
	Words  string // what it does, in a line of at most 4 KiB. It is not escaped
	Input  Input
}

// Verb is something that can be done with a resource.
type Verb struct {
	Name   string
	Words  string
	Writes bool
	Takes  []Take // its input, what it needs first
	Needs  int    // of these
}

// Take is a member of a verb's input. Its type is text, number, record, or content: a text, or bytes.
type Take struct{ Name, Type string }

// Kind is a kind of resource. Its methods may be used by many goroutines.
type Kind interface {
	// Describe returns the verbs of a resource that a facet of it permits.
	Describe(r Resource, f capabilities.Facet) []Verb

	// Narrow refuses with INVALID_ARGUMENT a facet that this kind cannot have.
	Narrow(f capabilities.Facet) error

	// Read reads a use. It refuses with INVALID_ARGUMENT, and does nothing that anybody could notice.
	Read(r Resource, verb string, in Input) (Call, error)

	// Invoke does what was read, within a facet that allows its action. The result has at most 192 KiB.
	Invoke(ctx context.Context, r Resource, c Call, f capabilities.Facet) (capabilities.Value, error)

	// Revoke lets go of what is kept for a resource that has ended.
	Revoke(r Resource) error
}

// Kinds returns the kinds.
func Kinds() map[capabilities.Kind]Kind {
	return map[capabilities.Kind]Kind{
		capabilities.KindFolder: new(folder), capabilities.KindFile: file{}, capabilities.KindSecret: secret{}, capabilities.KindTool: tool{},
	}
}

// maxPiece bounds what one use reads or writes, in bytes.
const maxPiece = 128 << 10

// permitted returns the verbs that a facet permits.
func permitted(f capabilities.Facet, verbs ...Verb) []Verb {
	if f.IsNothing() {
		return nil
	}
	return slices.DeleteFunc(verbs, func(v Verb) bool { return v.Writes && f.Mode == capabilities.ReadOnly })
}

// find returns a verb by its name. It refuses one that there is not, and an input that it does not take.
func find(verbs []Verb, name string, in Input) (Verb, error) {
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		names := make([]string, len(verbs))
		for k, v := range verbs {
			names[k] = v.Name
		}
		return Verb{}, parley.Refuse(parley.InvalidArgument, "there is no verb %s", parley.Quoted(name, 40)).WithHint("there are: %s", strings.Join(names, ", "))
	}
	v := verbs[i]
	for key := range in {
		if !slices.ContainsFunc(v.Takes, func(t Take) bool { return t.Name == key }) {
			return v, parley.Refuse(parley.InvalidArgument, "%s takes no %s", name, parley.Quoted(key, 40)).WithHint("parley use NAME says what it takes")
		}
	}
	for _, t := range v.Takes[:v.Needs] {
		if _, ok := in[t.Name]; !ok {
			return v, parley.Refuse(parley.InvalidArgument, "%s needs %s", name, t.Name)
		}
	}
	return v, nil
}

// textIn returns a text of the input; "" if it is not there.
func textIn(in Input, name string) (string, error) {
	v, ok := in[name]
	if !ok {
		return "", nil
	}
	s, ok := v.AsString()
	if !ok {
		return "", parley.Refuse(parley.InvalidArgument, "%s has to be a text", name)
	}
	return s, nil
}

// numberIn returns a number of the input that is not negative; 0 if it is not there.
func numberIn(in Input, name string) (int64, error) {
	v, ok := in[name]
	if !ok {
		return 0, nil
	}
	n, ok := v.AsInt()
	if !ok || n < 0 {
		return 0, parley.Refuse(parley.InvalidArgument, "%s has to be a whole number that is not negative", name)
	}
	return n, nil
}

// contentIn returns the bytes of the input: a text, or bytes.
func contentIn(in Input, name string) ([]byte, error) {
	if b, ok := in[name].AsBytes(); ok {
		return b, nil
	}
	s, err := textIn(in, name)
	return []byte(s), err
}

// addContent adds what was read to a result: as a text if it is one.
func addContent(result Input, data []byte) {
	if utf8.Valid(data) {
		result["text"] = capabilities.String(string(data))
		return
	}
	result["bytes"] = capabilities.Bytes(data)
}

// whole returns the data without the beginning of a character at its end.
func whole(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}
