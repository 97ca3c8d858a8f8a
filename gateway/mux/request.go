package mux

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// request is the body of a call. It implements api.Request.
type request struct {
	text  []byte // JSON; nil if the body is a map that was not converted
	plain []byte // that map
}

// plainSize bounds, in bytes, the bodies that are read without a conversion to JSON. The JSON of such a body has less than
// api.MaxBody bytes.
const plainSize = 64 << 10

// readRequest returns the request of a body. It converts a map to JSON unless Read probably needs no JSON.
func readRequest(operation string, body []byte) (request, error) {
	if len(body) <= plainSize && !NewReader(body).IsJSON() {
		switch operation {
		case "form", "respond_form", "await":
			return request{plain: body}, nil
		}
	}
	text, err := textOf(body)
	return request{text: text}, err
}

// textOf returns the JSON of a body, within the bounds of requests.
func textOf(body []byte) ([]byte, error) {
	text, err := ToJSON(body)
	if err == nil && len(text) > api.MaxBody {
		err = api.TooLarge()
	}
	if err == nil {
		err = api.CheckBody(text)
	}
	return text, err
}

func (q request) size() int { return len(q.text) + len(q.plain) }

// clone returns a copy that is not part of a message.
func (q request) clone() request { return request{bytes.Clone(q.text), bytes.Clone(q.plain)} }

// Read implements api.Request. A map in another than the plain spelling of a hot operation is read, or refused, as its JSON.
func (q request) Read(into any) error {
	if q.plain == nil {
		return api.Decode(q.text, into)
	}
	if readPlain(q.plain, into) {
		return nil
	}
	text, err := textOf(q.plain)
	if err != nil {
		return err
	}
	return api.Decode(text, into)
}

// readPlain reads a request of a hot operation. It returns false, and has changed nothing, unless each member is known,
// stands once, and has its own type.
func readPlain(body []byte, into any) bool {
	r := NewReader(body)
	switch into := into.(type) {
	case *api.FormRequest:
		return readInto(r, into, r.formRequest)
	case *api.RespondFormRequest:
		return readInto(r, into, r.respondFormRequest)
	case *api.AwaitRequest:
		return readInto(r, into, r.awaitRequest)
	}
	return false
}

func readInto[T any](r *Reader, into *T, read func(*T)) bool {
	var v T
	read(&v)
	if r.err != nil || len(r.rest) > 0 {
		return false
	}
	*into = v
	return true
}

func (r *Reader) formRequest(q *api.FormRequest) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "as":
			q.As, member = r.String(), 1
		case "recipient":
			q.Recipient, member = r.String(), 2
		case "description":
			q.Description, member = r.String(), 3
		case "title":
			q.Title, member = r.String(), 4
		case "fields":
			q.Fields, member = api.FieldsOf(readList(r, r.field)...), 5
		case "name":
			q.Name, member = r.String(), 6
		case "key":
			q.Key, member = r.String(), 7
		case "deadline":
			if q.Deadline.UnmarshalText(r.Text()) != nil {
				r.fail()
			}
			member = 8
		case "noForward":
			q.NoForward, member = r.Bool(), 9
		}
		return member
	})
}

func (r *Reader) field(f *events.Field) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "name":
			f.Name, member = r.String(), 1
		case "label":
			f.Label, member = r.String(), 2
		case "type":
			f.Type, member = r.fieldType(), 3
		case "required":
			f.Required, member = r.Bool(), 4
		case "default":
			f.Default, member = r.Value(), 5
		case "placeholder":
			f.Placeholder, member = r.String(), 6
		case "help":
			f.Help, member = r.String(), 7
		case "options":
			f.Options, member = readList(r, r.option), 8
		case "example":
			f.Example, member = r.Value(), 9
		case "pattern":
			f.Pattern, member = r.text(), 10
		}
		return member
	})
}

func (r *Reader) option(o *events.Option) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "value":
			o.Value, member = r.String(), 1
		case "label":
			o.Label, member = r.String(), 2
		case "description":
			o.Description, member = r.String(), 3
		}
		return member
	})
}

func (r *Reader) respondFormRequest(q *api.RespondFormRequest) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "as":
			q.As, member = r.String(), 1
		case "number":
			q.Number, member = r.refText(), 2
		case "id":
			q.ID, member = r.refText(), 3
		case "digest":
			q.Digest, member = r.String(), 4
		case "values":
			q.Values, member = r.record(), 5
		case "texts":
			q.Texts, member = readList(r, r.fieldText), 6
		case "revision":
			q.Revision, member = r.Uint(), 7
		}
		return member
	})
}

func (r *Reader) fieldText(t *events.FieldText) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "name":
			t.Name, member = r.String(), 1
		case "text":
			t.Text, member = r.String(), 2
		}
		return member
	})
}

func (r *Reader) awaitRequest(q *api.AwaitRequest) {
	r.members(func(name []byte) (member int) {
		switch string(name) {
		case "as":
			q.As, member = r.String(), 1
		case "number":
			q.Number, member = r.refText(), 2
		case "id":
			q.ID, member = r.refText(), 3
		case "waitMs":
			ms := r.int64()
			q.WaitMs, member = &ms, 4
		}
		return member
	})
}

// members reads a map. Read reads the value of a name, and returns a number of the member's own from 1 to 31; 0 is an
// unknown one.
func (r *Reader) members(read func(name []byte) int) {
	var seen uint32
	for range r.Map() {
		member := read(r.Text())
		if member == 0 || seen&(1<<member) != 0 {
			r.fail()
		}
		if seen |= 1 << member; r.err != nil {
			return
		}
	}
}

// readList reads a list, which is not nil.
func readList[T any](r *Reader, read func(*T)) []T {
	n := r.Array()
	list := make([]T, 0, min(n, 64)) // elements may be much larger than their encoding
	for range n {
		var v T
		if read(&v); r.err != nil {
			break
		}
		list = append(list, v)
	}
	return list
}

func (r *Reader) fieldType() events.FieldType {
	name := r.Text()
	for i := range form.Types {
		if known := form.Types[i].Name; string(known) == string(name) { // which is kept once
			return known
		}
	}
	return events.FieldType(name)
}

// int64 reads a number that is not negative.
func (r *Reader) int64() int64 {
	n := r.Uint()
	if n > math.MaxInt64 {
		r.fail()
	}
	return int64(n)
}

// refText reads a number or an ID.
func (r *Reader) refText() api.RefText {
	if kindOf(r.next()) == aString {
		return api.RefText(r.Text())
	}
	return api.RefText(strconv.FormatUint(r.Uint(), 10))
}

// text reads a value as the JSON of it.
func (r *Reader) text() []byte {
	if r.IsJSON() {
		r.fail() // its spaces would stay
		return nil
	}
	text, err := r.appendJSON(nil, MaxDepth+1)
	if err != nil || len(text) == 0 {
		r.fail()
	}
	return text
}

// record reads a map of values.
func (r *Reader) record() map[string]capabilities.Value {
	n := r.Map()
	values := make(map[string]capabilities.Value, min(n, 64))
	for range n {
		name := r.String()
		if _, twice := values[name]; twice {
			r.fail()
		}
		if values[name] = r.Value(); r.err != nil {
			break
		}
	}
	return values
}

// Value reads a value that passes capabilities.Value.Check. It fails for a map that may stand for another value than a
// record.
func (r *Reader) Value() capabilities.Value {
	v := r.value(capabilities.MaxValueDepth + 1)
	if r.err == nil && v.Check() != nil {
		r.fail()
	}
	return v
}

func (r *Reader) value(depth int) capabilities.Value {
	if depth == 0 {
		r.fail()
	}
	switch kindOf(r.next()) {
	case aString:
		return capabilities.String(r.String())
	case anArray:
		n := r.Array()
		list := make([]capabilities.Value, 0, min(n, 64))
		for range n {
			if list = append(list, r.value(depth-1)); r.err != nil {
				break
			}
		}
		return capabilities.List(list...)
	case aMap:
		return r.recordValue(depth)
	case anExt:
		v, err := capabilities.ParseJSON(r.JSON())
		if err != nil {
			r.fail()
		}
		return v
	}
	switch v := r.scalar().(type) {
	case bool:
		return capabilities.Bool(v)
	case int64:
		return capabilities.Int(v)
	case float64:
		return capabilities.Float(v)
	case uint64:
		if v > math.MaxInt64 {
			r.fail() // JSON has it as a float
		}
		return capabilities.Int(int64(v))
	}
	return capabilities.Null()
}

func (r *Reader) recordValue(depth int) capabilities.Value {
	n := r.Map()
	record := make(map[string]capabilities.Value, min(n, 64))
	for range n {
		name := r.String()
		if _, twice := record[name]; twice || strings.HasPrefix(name, "$") {
			r.fail()
		}
		if record[name] = r.value(depth - 1); r.err != nil {
			break
		}
	}
	return capabilities.Record(record)
}
