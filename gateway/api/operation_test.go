package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestOperationsHaveOneNameEach(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, o := range Operations() {
		if !name.MatchString(o.Name) {
			t.Errorf("%q is no name of an operation", o.Name)
		}
		if seen[o.Name] {
			t.Errorf("%s is in the table twice", o.Name)
		}
		seen[o.Name] = true
	}
}

func TestOperationsNeedAKnownScope(t *testing.T) {
	for _, o := range Operations() {
		if !slices.Contains([]Scope{ScopeRead, ScopeAsk, ScopeAnswer, ScopeAdmin}, o.Scope) {
			t.Errorf("%s needs the scope %q", o.Name, o.Scope)
		}
		// A waiting call is cut off and repeated, and a listing call is charged once its response is known. A use goes on without its
		// caller, who finds it again: it is repeated with its key alone.
		if (o.Waits || o.Lists) && o.Scope != ScopeRead && o.Name != "invoke" {
			t.Errorf("%s needs the scope %s: it must change nothing", o.Name, o.Scope)
		}
	}
}

func TestEveryRequestNamesItsAgent(t *testing.T) {
	for _, o := range Operations() {
		request := reflect.New(o.Request)
		if err := json.Unmarshal([]byte(`{"as":"fae"}`), request.Interface()); err != nil {
			t.Errorf("%s: %v", o.Name, err)
			continue
		}
		if acting, ok := request.Elem().Interface().(interface{ Actor() string }); !ok || acting.Actor() != "fae" {
			t.Errorf("%s: the request does not embed Acting", o.Name)
		}
	}
}

func TestListsAreRequestedByPages(t *testing.T) {
	for _, o := range Operations() {
		_, paging := o.Request.FieldByName("Paging")
		_, paged := fieldOf(o.Response, "Paged")
		if paging != paged {
			t.Errorf("%s: the request has Paging: %v, the response has Paged: %v", o.Name, paging, paged)
		}
		if paging && !o.Lists {
			t.Errorf("%s has pages, and is not marked as a list", o.Name)
		}
	}
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	return t.FieldByName(name)
}

// Members of requests and responses must differ in more than case: encoding/json ignores case.
func TestMembersAreUnambiguous(t *testing.T) {
	member := regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	for _, o := range Operations() {
		for _, of := range []reflect.Type{o.Request, o.Response} {
			seen := map[string]bool{}
			for _, name := range members(of) {
				if !member.MatchString(name) {
					t.Errorf("%s: %s has a member %q", o.Name, of, name)
				}
				if folded := strings.ToLower(name); seen[folded] {
					t.Errorf("%s: %s has the member %q twice", o.Name, of, name)
				} else {
					seen[folded] = true
				}
			}
		}
	}
}

// members returns the names of the members of a type's JSON object.
func members(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, members(f.Type)...)
		case f.IsExported() && name != "-":
			names = append(names, name)
		}
	}
	return names
}

func TestZeroRequestsSurviveJSON(t *testing.T) {
	for _, o := range Operations() {
		zero := reflect.New(o.Request)
		text, err := json.Marshal(zero.Interface())
		if err != nil {
			t.Errorf("%s: %v", o.Name, err)
			continue
		}
		back := reflect.New(o.Request)
		if err := json.Unmarshal(text, back.Interface()); err != nil {
			t.Errorf("%s: %s: %v", o.Name, text, err)
			continue
		}
		again, err := json.Marshal(back.Interface())
		if err != nil || string(again) != string(text) {
			t.Errorf("%s: %s became %s (%v)", o.Name, text, again, err)
		}
	}
}

func TestRequestsRefuseOtherJSON(t *testing.T) {
	for _, o := range Operations() {
		for _, text := range []string{`[]`, `"x"`, `1`, `true`, `{"as":1}`, `{"as":{}}`, `{`, ``} {
			if err := json.Unmarshal([]byte(text), reflect.New(o.Request).Interface()); err == nil {
				t.Errorf("%s takes %q", o.Name, text)
			}
		}
	}
}

func TestPagingJSON(t *testing.T) {
	for text, want := range map[string]Paging{
		`{}`:                       {},
		`{"after":"x","limit":7}`:  {After: "x", Limit: 7},
		`{"after":null,"limit":0}`: {},
		`{"limit":-1}`:             {Limit: -1}, // the handler treats it as no limit
	} {
		var got Paging
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`{"after":1}`, `{"after":["x"]}`, `{"limit":"7"}`, `{"limit":1.5}`, `{"limit":1e30}`, `{"limit":99999999999999999999}`} {
		if err := json.Unmarshal([]byte(text), new(Paging)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if text, err := json.Marshal(Paged{}); err != nil || string(text) != `{}` {
		t.Errorf("the last page has %s (%v) for the next", text, err)
	}
}
