package client

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/gateway/api/openapi"
	"parley/gateway/mux"
)

// wireTypes are the client's own types of an operation.
type wireTypes struct {
	name              string
	request, response reflect.Type // nil if it is the API's
}

func own[Req, Resp any](name string) wireTypes {
	w := wireTypes{name: name}
	if t := reflect.TypeFor[Req](); t.Kind() == reflect.Struct {
		w.request = t
	}
	if t := reflect.TypeFor[Resp](); t.Kind() == reflect.Struct {
		w.response = t
	}
	return w
}

// The client's types have texts for IDs, and JSON for values. Their members must be those of the API's types.
func TestClientTypesMatchAPI(t *testing.T) {
	type same = any
	ops := map[string]api.Operation{}
	for _, o := range api.Operations() {
		ops[o.Name] = o
	}
	for _, c := range []wireTypes{
		own[same, Outcome]("await"),
		own[same, Outcome]("respond_form"),
		own[same, Outcome]("decline_form"),
		own[same, Outcome]("cancel_form"),
		own[same, Outcome]("reject"),
		own[same, Outcome]("resolve"),
		own[same, Sent]("send"),
		own[same, Sent]("reply"),
		own[same, Message]("get_message"),
		own[same, Message]("amend_form"),
		own[same, Outcome]("answer_with"),
		own[same, messagePage]("list_messages"),
		own[same, messagePage]("follow_messages"),
		own[same, agentList]("fetch_agents"),
		own[same, agentResult]("fetch_agent"),
		own[Prompt, same]("send_agent_message"),
		own[same, finish]("wait_for_finish"),
		own[same, outputPage]("read_output"),
	} {
		o, ok := ops[c.name]
		if !ok {
			t.Errorf("%s is no operation", c.name)
			continue
		}
		for what, types := range map[string][2]reflect.Type{"request": {c.request, o.Request}, "response": {c.response, o.Response}} {
			if types[0] == nil {
				continue
			}
			got, want := unfolded(t, types[0]), unfolded(t, types[1])
			delete(want, ".as")
			for member, kind := range want {
				if got[member] != kind {
					t.Errorf("%s, %s: %s is %q in the client, and %q in the API", c.name, what, member, got[member], kind)
				}
				delete(got, member)
			}
			for member, kind := range got {
				t.Errorf("%s, %s: only the client has %s, %q", c.name, what, member, kind)
			}
		}
	}
}

func TestReadCallsAreRepeated(t *testing.T) {
	keyed, not := mapOf(t, `{"key":"k"}`), mapOf(t, `{"key":""}`)
	for operation, want := range map[string]bool{"await": true, "status": true, "fetch_agents": true, "dismiss": false, "respond_form": false, "unknown": false} {
		if repeats(operation, keyed) != want {
			t.Errorf("%s is repeated: %v", operation, !want)
		}
	}
	for _, operation := range []string{"form", "request", "approve", "send", "reply", "decide_many"} {
		if !repeats(operation, keyed) || repeats(operation, not) {
			t.Errorf("%s is repeated without a key, or not with one", operation)
		}
	}
}

// mapOf returns JSON as the body of a frame.
func mapOf(t *testing.T, text string) []byte {
	t.Helper()
	body, err := mux.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// unfolded returns the kind of JSON at each path of members within a type, without the patterns of texts.
func unfolded(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	made, all := openapi.Schemas{}, map[string]string{}
	unfold(made, made.Of(of), "", all)
	return all
}

func unfold(s openapi.Schemas, of *openapi.Schema, path string, all map[string]string) {
	if of.Ref != "" {
		of = s[strings.TrimPrefix(of.Ref, openapi.RefPrefix)]
	}
	if strings.Count(path, ".") > 8 {
		all[path] = "too deep"
		return
	}
	if path != "" {
		kind, err := json.Marshal(of.Type)
		if err != nil {
			kind = []byte(err.Error())
		}
		all[path] = string(kind)
		if of.OneOf != nil { // both are accepted
			all[path] = `"string"`
		}
	}
	for name, member := range of.Properties {
		unfold(s, member, path+"."+name, all)
	}
	if of.Items != nil {
		unfold(s, of.Items, path+"[]", all)
	}
	if of.Additional != nil {
		unfold(s, of.Additional, path+"{}", all)
	}
}
