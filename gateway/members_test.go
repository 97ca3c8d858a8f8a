package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/edgetest"
	"parley/gateway/micro"
	"parley/gateway/mux"
	"parley/internal/natsauth"
)

// echo performs operations in a test: it notes the request, and returns a response of which every member has a value.
type echo struct {
	mux.Backend
	mu   sync.Mutex
	last any // the newest request
}

func (e *echo) Call(_ context.Context, _ api.Principal, operation string, r api.Request) (any, error) {
	o := e.Operations()[operation]
	request := reflect.New(o.Request)
	if err := r.Read(request.Interface()); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = request.Elem().Interface()
	return full(o.Response).Interface(), nil
}

// Begin leaves every operation to Call.
func (e *echo) Begin(context.Context, api.Principal, string, api.Request, func(any, error)) (func(), bool) {
	return nil, false
}

func (e *echo) BeginAsk(ctx context.Context, p api.Principal, operation string, r api.Request, asked func(any, bool, error), _ func(view.Outcome, error)) func() {
	resp, err := e.Call(ctx, p, operation, r)
	asked(resp, false, err)
	return func() {}
}

// Lister charges every listing to the principal itself: the names in a request are nobody's.
func (e *echo) Lister(ctx context.Context, p api.Principal, _ api.Request) api.Account {
	return e.Backend.Lister(ctx, p, api.JSON(nil))
}

// TestMembersTravel sends requests and responses in which every member has a value at each edge. What comes has all of
// them. The operations are those of the table. A member that an edge drops fails this test.
func TestMembersTravel(t *testing.T) {
	t.Parallel()
	var at echo
	system, _ := runNATS(t, anyPort, 8<<20)
	h := openLimitedNATSTestServer(t, system.ClientURL(), api.Limits{api.LimitRate: 1 << 20}, nil)
	h.close()
	h.instead = func(b mux.Backend) mux.Backend { at.Backend = b; return &at }
	h.open(func(s *Server) {
		var err error
		if s.service, err = micro.Connect(s.serviceOptions(system.ClientURL(), natsauth.Access{})); err != nil {
			t.Fatal(err)
		}
	})
	e := &edges{h: h, web: http.Client{Transport: &http.Transport{}}, socket: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return client.Dial(ctx, h.server.socketPath) },
	}}, sessions: map[string]*websocket.Conn{}}
	t.Cleanup(e.close)
	for _, edge := range []struct {
		name string
		call func(context.Context, edgetest.Caller, string, string) ([]byte, error)
	}{
		{"tcp", e.overTCP}, {"socket", e.overSocket}, {"frames", e.overMux("unix", mux.AppendJSON[string])}, {"maps", e.overMux("tcp", asMap)},
		{"ws", e.overWebSocket}, {"nats", e.overNATS},
	} {
		for _, o := range api.Operations() {
			sent, err := json.Marshal(full(o.Request).Interface())
			if err != nil {
				t.Fatal(err)
			}
			got, err := edge.call(t.Context(), edgetest.Caller{Token: h.tokens["host"]}, o.Name, string(sent))
			if err != nil {
				t.Errorf("%s at %s: %v", o.Name, edge.name, err)
				continue
			}
			want, err := json.Marshal(full(o.Response).Interface())
			if err != nil {
				t.Fatal(err)
			}
			came, err := json.Marshal(at.last)
			if err != nil {
				t.Fatal(err)
			}
			for _, lost := range append(missing("request", sent, came), missing("response", want, got)...) {
				t.Errorf("%s at %s: %s", o.Name, edge.name, lost)
			}
		}
	}
}

// missing returns the members of a JSON document that another lacks, or has with another value.
func missing(at string, want, got []byte) (lost []string) {
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		return []string{at + ": " + err.Error()}
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return []string{at + ": " + err.Error()}
	}
	return differing(at, w, g)
}

func differing(at string, want, got any) (lost []string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, v := range w {
			lost = append(lost, differing(at+"."+name, v, g[name])...)
		}
		slices.Sort(lost)
		return lost
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			var other any
			if i < len(g) {
				other = g[i]
			}
			lost = append(lost, differing(fmt.Sprintf("%s[%d]", at, i), v, other)...)
		}
		return lost
	}
	if !reflect.DeepEqual(want, got) {
		lost = append(lost, fmt.Sprintf("%s is %v, want %v", at, got, want))
	}
	return lost
}

// samples are documents that types with an encoding of their own may read. The first that gives another value than the zero
// one is taken.
var samples = []string{
	`"01M8AJRCHW2QFN1GJCFDYF0GSP@NC5AQTTE4HFBX75HO3GEA3K35OYU4675BOCJIAKHQ4JOHBDVFJDMWER2"`,
	`"2026-02-25T10:00:00.000Z"`, `"1h0m0s"`, `"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"`, `"x"`, `7`, `true`, `{"x":"y"}`, `["x"]`,
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textual     = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

// full returns a value of a type of which every member has a value, each its own where its type allows.
func full(t reflect.Type) reflect.Value { return fill(t, "v", 0) }

func fill(t reflect.Type, name string, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	if p := reflect.PointerTo(t); depth > 0 && (p.Implements(unmarshaler) || p.Implements(textual)) {
		for _, text := range samples {
			one := reflect.New(t)
			if json.Unmarshal([]byte(text), one.Interface()) != nil || one.Elem().IsZero() {
				continue
			}
			if back, err := json.Marshal(one.Interface()); err == nil && bytes.Equal(back, []byte(text)) {
				return one.Elem()
			}
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		if depth < 7 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(fill(t.Elem(), name, depth+1))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if member != "-" {
					v.Field(i).Set(fill(f.Type, cmp.Or(member, f.Name), depth+1))
				}
			}
		}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return reflect.ValueOf(json.RawMessage(`{"x":"y"}`))
		}
		if depth < 7 {
			v.Set(reflect.Append(v, fill(t.Elem(), name, depth+1)))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(fill(t.Key(), name, depth+1), fill(t.Elem(), name, depth+1))
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(len(name)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	}
	return v
}
