package gateway

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/gateway/api/openapi"
	"parley/gateway/client"
)

// The client's types are its own, so that a program that imports it links no node. Here they are held to the table.

func TestTheClientSpeaksAsTheNodeDoes(t *testing.T) {
	ops := table()
	for _, c := range client.Operations() {
		o, ok := ops[c.Name]
		if !ok {
			t.Errorf("the client calls %s, which is no operation", c.Name)
			continue
		}
		for what, types := range map[string][2]reflect.Type{"request": {c.Request, o.Request}, "response": {c.Response, o.Response}} {
			got, want := unfolded(t, types[0]), unfolded(t, types[1])
			delete(want, ".as")
			for member, kind := range want {
				if got[member] != kind {
					t.Errorf("%s, %s: %s is %q in the client, and %q in the node", c.Name, what, member, got[member], kind)
				}
				delete(got, member)
			}
			for member, kind := range got {
				t.Errorf("%s, %s: only the client has %s, %q", c.Name, what, member, kind)
			}
		}
	}
}

func TestTheClientKnowsWhatOnlyLooks(t *testing.T) {
	known, ops := client.Looks(), table()
	for _, o := range api.Operations() {
		if looks := o.Scope == api.ScopeRead; looks != slices.Contains(known, o.Name) {
			t.Errorf("%s only looks: %v, and the client says %v", o.Name, looks, !looks)
		}
	}
	for _, name := range known {
		if o, ok := ops[name]; ok && o.Scope != api.ScopeRead {
			t.Errorf("%s is repeated, and does something", name)
		}
	}
}

// unfolded gives the kind of JSON at each path of members within a type. What texts have to look like is left out: a client
// passes them on.
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
		if all[path] == `["string","integer"]` { // either will do
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
