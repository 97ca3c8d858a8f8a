package client

import (
	"encoding/json"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// body is a request: as JSON, or as a map of msgpack with the same members.
type body struct{ text, plain []byte }

// json returns the request as JSON.
func (b body) json() ([]byte, error) {
	if b.plain == nil {
		return b.text, nil
	}
	return mux.ToJSON(b.plain)
}

// frame returns the request as the body of a frame.
func (b body) frame() []byte {
	if b.plain == nil {
		return mux.AppendJSON(make([]byte, 0, len(b.text)+6), b.text)
	}
	return b.plain
}

// plainBody returns a body of msgpack. It returns false for one that no frame may hold: text that is not UTF-8 stands in it,
// or values nest deeper than a frame may.
func plainBody(b []byte) (body, bool) {
	r := mux.NewReader(b)
	r.Raw()
	return body{plain: b}, r.Err() == nil && len(b) <= MaxBody
}

// members appends the pairs of a map of at most 15.
type members struct {
	body []byte
	n    int
}

func newMembers() *members { return &members{body: make([]byte, 1, 512)} }

func (m *members) end() []byte {
	pack.AppendMap(m.body[:0], m.n)
	return m.body
}

func (m *members) add(name string) {
	m.body = pack.AppendString(m.body, name)
	m.n++
}

func (m *members) text(name, value string) {
	if value != "" {
		m.add(name)
		m.body = pack.AppendString(m.body, value)
	}
}

func (m *members) flag(name string, value bool) {
	if value {
		m.add(name)
		m.body = pack.AppendBool(m.body, value)
	}
}

// json appends a value that is encoded as JSON, unless it is nil.
func (m *members) json(name string, value any) error {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	m.add(name)
	m.body = mux.AppendJSON(m.body, text)
	return err
}

// ref appends what names a message.
func (m *members) ref(r api.FormRef) {
	m.text("number", string(r.Number))
	m.text("id", string(r.ID))
}

// formBody returns the request for a form.
func (c *Client) formBody(f Form) (body, error) {
	if len(f.Remind)+len(f.Escalate) > 0 || f.Need > 0 || f.Veto != nil || f.NoSelf { // few have those
		return c.request(f)
	}
	m := newMembers()
	m.text("as", c.options.As)
	m.add("recipient")
	m.body = pack.AppendString(m.body, f.To)
	m.add("description")
	m.body = pack.AppendString(m.body, f.Description)
	m.text("title", f.Title)
	m.add("fields")
	m.body = pack.AppendArray(m.body, len(f.Fields))
	for _, field := range f.Fields {
		if err := m.field(field); err != nil {
			return body{}, unwritable(err)
		}
	}
	m.text("name", f.Name)
	m.text("key", f.Key)
	if !f.Deadline.IsZero() {
		text, err := f.Deadline.MarshalText()
		if err != nil {
			return body{}, unwritable(err)
		}
		m.text("deadline", string(text))
	}
	m.flag("noForward", f.NoForward)
	if b, ok := plainBody(m.end()); ok {
		return b, nil
	}
	return c.request(f)
}

// field appends a field as an element.
func (m *members) field(f Field) error {
	e := members{body: append(m.body, 0)}
	at := len(m.body)
	e.add("name")
	e.body = pack.AppendString(e.body, f.Name)
	e.text("label", f.Label)
	e.text("type", f.Type)
	e.flag("required", f.Required)
	if err := e.json("default", f.Default); err != nil {
		return err
	}
	e.text("placeholder", f.Placeholder)
	e.text("help", f.Help)
	if len(f.Options) > 0 {
		e.add("options")
		e.body = pack.AppendArray(e.body, len(f.Options))
		for _, o := range f.Options {
			e.option(o)
		}
	}
	if err := e.json("example", f.Example); err != nil {
		return err
	}
	if len(f.Pattern) > 0 {
		if err := e.json("pattern", f.Pattern); err != nil {
			return err
		}
	}
	pack.AppendMap(e.body[:at], e.n)
	m.body = e.body
	return nil
}

// option appends an option as an element.
func (m *members) option(o Option) {
	e := members{body: append(m.body, 0)}
	at := len(m.body)
	e.add("value")
	e.body = pack.AppendString(e.body, o.Value)
	e.text("label", o.Label)
	e.text("description", o.Description)
	pack.AppendMap(e.body[:at], e.n)
	m.body = e.body
}

// answerBody returns the request that answers a form.
func (c *Client) answerBody(form ID, values map[string]capabilities.Value) (body, error) {
	ref := refTo(form)
	m := newMembers()
	m.text("as", c.options.As)
	m.ref(ref)
	m.add("values")
	var err error
	if m.body, err = mux.AppendRecord(m.body, values); err == nil {
		if b, ok := plainBody(m.end()); ok {
			return b, nil
		}
	}
	return c.request(api.RespondFormRequest{FormRef: ref, Values: values})
}

// readAccepted reads the response to a form.
func readAccepted(a answer) (got accepted, err error) {
	if a.plain == nil {
		err = json.Unmarshal(a.body, &got)
	} else {
		err = got.read(a.plain)
	}
	if err != nil {
		return accepted{}, unreadable("form", err)
	}
	return got, nil
}

func (a *accepted) read(plain []byte) error {
	r := mux.NewTextReader(plain)
	for range r.Map() {
		switch name := r.Text(); string(name) {
		case "form":
			a.Form = ID(r.String())
		case "promise":
			a.Promise = ID(r.String())
		case "number":
			a.Number = r.Uint()
		case "outcome":
			a.Outcome = new(Outcome)
			if err := a.Outcome.read(r.Raw()); err != nil {
				return err
			}
		case "unreachable":
			a.Unreachable = r.Bool()
		default:
			r.Raw()
		}
	}
	return r.Err()
}

// readOutcome reads the outcome in a response to an operation.
func readOutcome(operation string, a answer) (o Outcome, err error) {
	if a.plain == nil {
		err = json.Unmarshal(a.body, &o)
	} else {
		err = o.read(a.plain)
	}
	if err != nil {
		return Outcome{}, unreadable(operation, err)
	}
	return o, nil
}

// read reads an outcome, and keeps its JSON as Raw.
func (o *Outcome) read(plain []byte) (err error) {
	*o = Outcome{}
	r := mux.NewTextReader(plain)
	var at string
	for range r.Map() {
		switch name := r.Text(); string(name) {
		case "status":
			o.Status = r.String()
		case "form":
			o.Form = ID(r.String())
		case "promise":
			o.Promise = ID(r.String())
		case "by":
			o.By = ID(r.String())
		case "byName":
			o.ByName = r.String()
		case "at":
			at = r.String()
		case "note":
			o.Note = r.String()
		case "values":
			if o.Values, err = mux.ToJSON(r.Raw()); err != nil {
				return err
			}
		case "order":
			for range r.Array() {
				o.Order = append(o.Order, r.String())
			}
		case "digest":
			o.Digest = r.String()
		case "allowed":
			o.Allowed = r.Bool()
		case "editedInput":
			o.EditedInput = r.String()
		case "editedDigest":
			o.EditedDigest = r.String()
		case "votes":
			text, err := mux.ToJSON(r.Raw())
			if err == nil {
				err = json.Unmarshal(text, &o.Votes)
			}
			if err != nil {
				return err
			}
		default:
			r.Raw()
		}
	}
	if err = r.Err(); err == nil && at != "" {
		o.At, err = time.Parse(time.RFC3339, at)
	}
	if err == nil {
		o.Raw, err = mux.ToJSON(plain)
	}
	return err
}

// recordOf returns the values of an answer.
func recordOf(values any) (map[string]capabilities.Value, error) {
	if record, ok := values.(map[string]capabilities.Value); ok {
		return record, nil
	}
	written, err := json.Marshal(values)
	if err != nil {
		return nil, unwritable(err)
	}
	var each map[string]json.RawMessage
	if err := json.Unmarshal(written, &each); err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the values of an answer are a record, not %.80s", written)
	}
	record := make(map[string]capabilities.Value, len(each))
	for name, v := range each {
		if record[name], err = capabilities.ParseJSON(v); err != nil {
			return nil, err
		}
	}
	return record, nil
}
