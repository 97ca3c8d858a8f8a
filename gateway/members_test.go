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
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/edgetest"
	"parley/gateway/micro"
	"parley/gateway/mux"
	"parley/gateway/ws"
	"parley/internal/natsauth"
)

// echo performs operations in a test: it notes the request, and returns a response of which every member has a value.
type echo struct {
	ws.Backend
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

// Begin leaves every operation to Call, but for those that ask and would wait.
func (e *echo) Begin(ctx context.Context, p api.Principal, operation string, r api.Request, asked func(any), done func(any, error)) (func(), bool) {
	if asked == nil {
		return nil, false
	}
	done(e.Call(ctx, p, operation, r))
	return nil, true
}

// Lister charges every listing to the principal itself: the names in a request are nobody's.
func (e *echo) Lister(ctx context.Context, p api.Principal, _ api.Request) api.Account {
	return e.Backend.Lister(ctx, p, api.JSON(nil))
}

// TestMembersTravel sends requests and responses in which every member has a value at each edge. What comes has all of
// them. The operations are those of the table. A member that an edge drops fails this test.
func TestMembersTravel(t *testing.T) {
	t.Parallel()
	h, at := openEcho(t)
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
			sent := documentOf(t, full(o.Request).Interface())
			got, err := edge.call(t.Context(), edgetest.Caller{Token: h.tokens["host"]}, o.Name, string(sent))
			if err != nil {
				t.Errorf("%s at %s: %v", o.Name, edge.name, err)
				continue
			}
			lost := missing("request", sent, documentOf(t, at.last))
			for _, lost := range append(lost, missing("response", documentOf(t, full(o.Response).Interface()), got)...) {
				t.Errorf("%s at %s: %s", o.Name, edge.name, lost)
			}
		}
	}
}

// TestBothSpellingsAreOneValue writes the request and the response of each operation, with a value in each member and with
// none, as JSON and as the body of a frame. Each is the other in another spelling, and both are read as the same.
func TestBothSpellingsAreOneValue(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations() {
		for _, of := range []reflect.Type{o.Request, o.Response} {
			for _, v := range []any{full(of).Interface(), reflect.Zero(of).Interface()} {
				text := documentOf(t, v)
				body, err := mux.Append(nil, v)
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				spelled, err := mux.ToJSON(body)
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				again, err := mux.FromJSON(text)
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				for _, lost := range append(missing(o.Name, text, spelled), missing(o.Name, spelled, text)...) {
					t.Errorf("%s in a frame: %s", of, lost)
				}
				want := reflect.New(of)
				wantErr := json.Unmarshal(text, want.Interface())
				for _, body := range [][]byte{body, again, mux.AppendJSON(nil, text)} {
					got := reflect.New(of)
					if err := mux.Read(body, got.Interface()); fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got.Interface(), want.Interface()) {
						t.Errorf("%s is read as %+v, %v\nwant %+v, %v", of, got, err, want, wantErr)
					}
				}
			}
		}
	}
}

// openEcho opens a node whose operations echo.
func openEcho(t *testing.T) (*natsTestServer, *echo) {
	t.Helper()
	at := &echo{}
	system, _ := runNATS(t, anyPort, 8<<20)
	h := openLimitedNATSTestServer(t, system.ClientURL(), api.Limits{api.LimitRate: 1 << 20}, nil)
	h.close()
	h.instead = func(b ws.Backend) ws.Backend { at.Backend = b; return at }
	h.open(func(s *Server) {
		var err error
		if s.service, err = micro.Connect(s.serviceOptions(system.ClientURL(), natsauth.Access{})); err != nil {
			t.Fatal(err)
		}
	})
	return h, at
}

// TestMembersTravelFromTheClient does the same with the types of the Go client, on one connection and by HTTP.
func TestMembersTravelFromTheClient(t *testing.T) {
	t.Parallel()
	h, at := openEcho(t)
	for _, byHTTP := range []bool{false, true} {
		c, err := client.New(client.Options{URL: "http://" + h.server.Address(), Token: h.tokens["host"], HTTP: byHTTP})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		ctx, id := t.Context(), client.ID(strings.Trim(samples[0], `"`))
		for name, call := range map[string]func() (sent, want, got any, err error){
			"Ask": func() (any, any, any, error) {
				f := valueOf[client.Form]()
				a, err := c.Ask(ctx, f)
				if err != nil {
					return f, nil, nil, err
				}
				o, err := a.Await(ctx)
				return f, valueOf[view.Outcome](), o, err
			},
			"Request": func() (any, any, any, error) {
				r := valueOf[client.Request]()
				_, err := c.Request(ctx, r)
				return r, nil, nil, err
			},
			"Approve": func() (any, any, any, error) {
				a := valueOf[client.Approval]()
				_, err := c.Approve(ctx, a)
				return a, nil, nil, err
			},
			"Amend": func() (any, any, any, error) {
				a := valueOf[api.AmendFormRequest]()
				m, err := api.AmendForm.Do(ctx, c, a)
				return a, valueOf[view.Message](), m, err
			},
			"Await": func() (any, any, any, error) { o, err := c.Await(ctx, id); return nil, valueOf[view.Outcome](), o, err },
			"Message": func() (any, any, any, error) {
				m, err := c.Message(ctx, id)
				return nil, valueOf[view.Message](), m, err
			},
			"GrantAnswer": func() (any, any, any, error) {
				n := valueOf[api.GrantAnswerRequest]()
				r, err := api.GrantAnswer.Do(ctx, c, n)
				return n, valueOf[view.AnswerRight](), r, err
			},
			"AnswerWith": func() (any, any, any, error) {
				u := valueOf[api.AnswerWithRequest]()
				o, err := api.AnswerWith.Do(ctx, c, u)
				return u, valueOf[view.Outcome](), o, err
			},
			"Make": func() (any, any, any, error) {
				a := valueOf[api.MakeAgentRequest]()
				m, err := api.MakeAgent.Do(ctx, c, a)
				return a, valueOf[api.MakeAgentResponse](), m, err
			},
			"Prompt": func() (any, any, any, error) {
				p := valueOf[client.Prompt]()
				if _, err := c.Prompt(ctx, p); parley.CodeOf(err) != "code" { // the response has an error too
					return p, nil, nil, err
				}
				return p, nil, nil, nil
			},
			"Describe": func() (any, any, any, error) {
				d := valueOf[api.DescribeAgentRequest]()
				return d, nil, nil, api.DescribeAgent.Run(ctx, c, d)
			},
		} {
			sent, want, got, err := call()
			if err != nil {
				t.Errorf("%s, by HTTP %t: %v", name, byHTTP, err)
				continue
			}
			var lost []string
			if sent != nil {
				lost = missing("request", documentOf(t, sent), documentOf(t, at.last))
			}
			if want != nil {
				lost = append(lost, missing("response", documentOf(t, want), documentOf(t, got))...)
			}
			for _, one := range lost {
				t.Errorf("%s, by HTTP %t: %s", name, byHTTP, one)
			}
		}
	}
}

func valueOf[T any]() T { return full(reflect.TypeFor[T]()).Interface().(T) }

func documentOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	case nil:
		return nil
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, v := range w {
			other, there := g[name]
			for as := range g {
				if !there && strings.EqualFold(as, name) { // a member without a name of its own in JSON
					other = g[as]
				}
			}
			lost = append(lost, differing(at+"."+name, v, other)...)
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
	if !reflect.DeepEqual(want, got) && !sameTime(want, got) {
		lost = append(lost, fmt.Sprintf("%s is %v, want %v", at, got, want))
	}
	return lost
}

// sameTime reports whether two texts are the same time in other words.
func sameTime(a, b any) bool {
	s, _ := a.(string)
	r, _ := b.(string)
	one, wrong := time.Parse(time.RFC3339Nano, s)
	other, bad := time.Parse(time.RFC3339Nano, r)
	return wrong == nil && bad == nil && one.Equal(other)
}

// samples are documents that types with an encoding of their own may read. The first that gives another value than the zero
// one is taken.
var samples = []string{
	`"01M8AJRCHW2QFN1GJCFDYF0GSP@NC5AQTTE4HFBX75HO3GEA3K35OYU4675BOCJIAKHQ4JOHBDVFJDMWER2"`,
	`"2026-02-25T10:00:00.000Z"`, `"2026-02-25T10:00:00Z"`, `"1h0m0s"`, `"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"`, `"x"`, `7`, `true`, `{"x":"y"}`, `["x"]`,
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
