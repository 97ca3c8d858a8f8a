package mailbox

import (
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// Existing is what an ask that is no new one refers to: a form of before, or a value that its name has.
type Existing struct {
	Message *Message
	Value   capabilities.Value
}

// FindExisting looks whether an ask was made before: by its key, or by the name that its answer has or awaits. It refuses
// with INVALID_ARGUMENT a key, or a name that awaits an answer, that comes again with another question. Another
// deadline is no other question: a client that asks again reckons it anew, and the first one counts.
func (a RequestForm) FindExisting(s *State) (Existing, bool, error) {
	if n, ok := s.keys[a.Key]; ok && a.Key != "" {
		m := s.messages[n]
		return Existing{Message: m}, true, a.sameAs(s, m, "key", a.Key)
	}
	if a.Result == "" {
		return Existing{}, false, nil
	}
	if v, ok := s.names[a.Result]; ok {
		return Existing{Value: v}, true, nil
	}
	if n, ok := s.results[a.Result]; ok {
		m := s.messages[n]
		return Existing{Message: m}, true, a.sameAs(s, m, "name", a.Result)
	}
	return Existing{}, false, nil
}

// sameAs refuses an ask that is another than the form which was asked under its key or name.
func (a RequestForm) sameAs(s *State, m *Message, what, name string) error {
	to, err := s.addressed(a.To)
	if err != nil {
		return err
	}
	f := m.Form
	var differs []string
	note := func(part string, same bool) {
		if !same {
			differs = append(differs, part)
		}
	}
	note("recipient", to == f.To)
	note("kind", a.Kind == f.Kind)
	title, description := "title", "description"
	if a.Kind == events.Approval && f.Kind == events.Approval {
		title, description = "tool", "input"
	}
	note(title, a.Title == f.Title)
	note(description, a.Description == f.Description)
	note("fields", form.SameFields(a.fields(), f.Fields) || a.Kind == events.Approval && f.Kind == events.Approval) // the rules offered are of the rest
	note("folder", f.Offered == nil || f.Offered.Folder == a.folder)
	note("noForward", a.NoForward == f.NoForward)
	note("name", a.Result == "" || a.Result == f.Result)
	return another(m, what, name, differs)
}

// another refuses with INVALID_ARGUMENT a key or name that comes again, where something differs.
func another(m *Message, what, name string, differs []string) error {
	if len(differs) == 0 {
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "the %s %s stands for message %d, which differs in: %s", what, parley.Quoted(name, 80), m.Number, strings.Join(differs, ", ")).
		WithHint("give what is new a %s of its own", what)
}

// HasPosted reports whether the agent has sent a message with a key.
func (s *State) HasPosted(key string) bool {
	_, ok := s.posted[key]
	return ok && key != ""
}

// FindExisting gives the message of before, if this one was sent before. It refuses with INVALID_ARGUMENT a key that comes
// again with another message.
func (c PostMessage) FindExisting(s *State) (*Message, bool, error) {
	n, ok := s.posted[c.Key]
	if !ok || c.Key == "" {
		return nil, false, nil
	}
	m := s.messages[n]
	var differs []string
	same, err := c.goesTo(s, m)
	if err != nil {
		return m, true, err
	}
	if !same {
		differs = append(differs, "recipient")
	}
	if !c.says(s, m.Posted.Text) {
		differs = append(differs, "text")
	}
	return m, true, another(m, "key", c.Key, differs)
}

// goesTo reports whether the message is for the one that another was for.
func (c PostMessage) goesTo(s *State, sent *Message) (bool, error) {
	if c.Reply != "" {
		m, err := s.Find(c.Reply)
		return err == nil && m.ID() == sent.ReplyTo(), err
	}
	to, err := s.addressed(c.To)
	return sent.ReplyTo().IsZero() && to == sent.To(), err
}

// says reports whether the message has the words of another, and gives the same away under the same edges.
func (c PostMessage) says(s *State, spans []events.Span) bool {
	marks, err := c.parts()
	return err == nil && slices.EqualFunc(marks, spans, func(m TextPart, sp events.Span) bool {
		if m.Words != sp.Words || m.Edge != sp.Edge {
			return false
		}
		if m.Edge == "" {
			return true
		}
		v, err := s.referred(m)
		return err == nil && ungiven(v).Equal(ungiven(sp.Value))
	})
}

// ungiven returns a value with the grants of its references left out: each time that it is given, they are others.
func ungiven(v capabilities.Value) capabilities.Value {
	v, _ = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) { // the function returns no error, so neither does Map
		if ref, ok := leaf.AsRef(); ok {
			ref.Grant, ref.Root = capabilities.ID{}, capabilities.ID{}
			return capabilities.Reference(ref), nil
		}
		return leaf, nil
	})
	return v
}
