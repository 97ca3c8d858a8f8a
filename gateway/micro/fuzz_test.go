package micro

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// caller is a principal without limits. It is its own account.
type caller struct{ api.Principal }

func (caller) ID() capabilities.ID                                  { return capabilities.ID{} }
func (caller) May(api.Operation) error                              { return nil }
func (caller) Account() api.Account                                 { return unbounded{} }
func (unbounded) Pace() error                                       { return nil }
func (unbounded) Take(api.Kind, int64) error                        { return nil }
func (unbounded) Force(api.Kind, int64)                             {}
func (unbounded) Give(api.Kind, int64)                              {}
func (unbounded) Build(context.Context) (func(), error)             { return func() {}, nil }
func (unbounded) BuildReady(context.Context) (func(), error)        { return func() {}, nil }
func (unbounded) InTurn(_ context.Context, work func() error) error { return work() }

// unbounded is an account that bounds nothing.
type unbounded struct{ api.Account }

// decoder reads requests as the node does, and responds with what it has read.
type decoder struct{ Backend }

// Lister implements api.Caller.
func (decoder) Lister(context.Context, api.Principal, api.Request) api.Account { return unbounded{} }

// Call implements api.Caller.
func (decoder) Call(_ context.Context, _ api.Principal, operation string, r api.Request) (any, error) {
	for _, o := range api.Operations() {
		if o.Name == operation {
			request := reflect.New(o.Request)
			err := r.Read(request.Interface())
			return request.Interface(), err
		}
	}
	return nil, parley.Refuse(parley.Internal, "no operation %s", operation)
}

// FuzzServiceRequest sends any request to any operation. It is read, or refused with a code; its refusal is a header of one
// line, and JSON. No answer goes to a subject of the system's, or of nodes.
func FuzzServiceRequest(f *testing.F) {
	for i := range api.Operations() {
		f.Add(uint8(i), "_INBOX.x", []byte(`{"as":"fae","recipient":"bob","number":1,"values":{"a":{"$bytes":"AA=="}},"fields":[{"name":"a"}],"limit":-1}`))
	}
	for _, reply := range []string{"", "$SYS.x", "$JS.API.STREAM.DELETE.x", "PARLEY.x", "parley.rpc.x", ".", "_INBOX.\r\nx"} {
		f.Add(uint8(3), reply, []byte(strings.Repeat(`{"a":`, 60)+"1"+strings.Repeat("}", 60)))
		f.Add(uint8(4), reply, []byte("{\"as\":\"\xff\u202e\\r\\n\"}"))
		f.Add(uint8(5), reply, []byte(`{"as":"a\\r\\nb","form":{"x":1},"number":1e99}`))
	}
	v := &Service{o: Options{Backend: decoder{}, Monitor: api.Monitor{Log: slog.New(slog.DiscardHandler)}}}
	f.Fuzz(func(t *testing.T, nth uint8, reply string, text []byte) {
		if first, _, _ := strings.Cut(reply, "."); isReturnAddress(reply) && (first == "" || first[0] == '$' || strings.EqualFold(first, "parley")) {
			t.Errorf("an answer goes to %q", reply)
		}
		o := api.Operations()[int(nth)%len(api.Operations())]
		e := &endpoint{service: v, operation: o}
		charge := api.ChargeOf(unbounded{})
		defer charge.Release()
		var out bytes.Buffer
		err := e.perform(t.Context(), caller{}, text, charge, &out)
		if err == nil {
			if !json.Valid(out.Bytes()) || api.CheckBody(text) != nil {
				t.Errorf("%s is answered with %.200q", o.Name, out.Bytes())
			}
			return
		}
		if parley.CodeOf(err) == parley.Internal {
			t.Errorf("%s is refused with %v", o.Name, err)
		}
		m := refusal(reply, err)
		if !json.Valid(m.Data) {
			t.Errorf("%s is refused with %q", o.Name, m.Data)
		}
		for name, values := range m.Header {
			if strings.ContainsFunc(values[0], sanitize.Hides) {
				t.Errorf("%s is refused with the header %s: %q", o.Name, name, values[0])
			}
		}
	})
}
