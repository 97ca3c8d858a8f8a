package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

func TestDocumentIsDeterministic(t *testing.T) {
	first, err := json.Marshal(Describe("test"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(Describe("test"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two documents of one version differ")
	}
}

func TestEveryOperationIsDescribed(t *testing.T) {
	doc := Describe("test")
	for _, o := range api.Operations() {
		call := doc.Paths[api.CallPath+o.Name].Post
		if call == nil {
			t.Errorf("%s is missing", o.Name)
			continue
		}
		if call.OperationID != o.Name || call.Scope != o.Scope || call.OfNode != o.OfNode || call.Waits != o.Waits {
			t.Errorf("%s is described as %+v", o.Name, call)
		}
		if !slices.ContainsFunc(doc.Tags, func(tag Tag) bool { return slices.Equal(call.Tags, []string{tag.Name}) }) {
			t.Errorf("%s has tags %q, which the document does not list", o.Name, call.Tags)
		}
		for what, content := range map[string]map[string]Media{
			"request": call.Request.Content, "response": call.Responses["200"].Content,
		} {
			if s := content[JSON].Schema; s == nil || s.Ref == "" {
				t.Errorf("%s has no schema of its %s", o.Name, what)
			}
		}
	}
	for name, r := range doc.Components.Responses {
		if s := r.Content[JSON].Schema; s == nil || s.Ref != RefPrefix+"Failure" {
			t.Errorf("the response %s has the schema %+v", name, s)
		}
	}
	if doc.Paths[api.HealthPath].Get == nil {
		t.Errorf("%s is missing", api.HealthPath)
	}
	if want := len(api.Operations()) + 1; len(doc.Paths) != want {
		t.Errorf("there are %d paths, want %d", len(doc.Paths), want)
	}
}

// Common generators and linters take a document that keeps to these.
func TestDocumentSuitsGenerators(t *testing.T) {
	doc := Describe("test")
	if len(doc.Servers) == 0 || doc.Info.License["identifier"] == "" || doc.Info.Contact["name"] == "" {
		t.Error("the document names no server, license or contact")
	}
	for at, path := range doc.Paths {
		for _, call := range []*Call{path.Get, path.Post} {
			if call == nil {
				continue
			}
			for _, status := range []string{"4XX", "5XX", "default"} {
				ref := call.Responses[status].Ref
				if _, ok := doc.Components.Responses[strings.TrimPrefix(ref, responsePrefix)]; !ok {
					t.Errorf("%s declares no errors with %s", at, status)
				}
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(call.Responses)), func(status string) bool { return status[0] == '2' }) {
				t.Errorf("%s declares no success, and generators make a call of it that cannot succeed", at)
			}
			if call.Description == "" || call.Summary == "" || len(call.Tags) == 0 {
				t.Errorf("%s has no description, summary or tag", at)
			}
			if call == path.Post && (call.Request == nil || !call.Request.Required) {
				t.Errorf("%s does not require its body", at)
			}
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`"type":[`)) {
		t.Error("a schema has a list of types")
	}
}

func TestEveryReferenceHasASchema(t *testing.T) {
	doc := Describe("test")
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	checkRefs(t, all, doc.Components.Schemas)
}

// checkRefs fails for each reference to a schema that is missing.
func checkRefs(t *testing.T, node any, known Schemas) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && !strings.HasPrefix(ref, responsePrefix) && known[strings.TrimPrefix(ref, RefPrefix)] == nil {
			t.Errorf("there is no %s", ref)
		}
		for _, v := range node {
			checkRefs(t, v, known)
		}
	case []any:
		for _, v := range node {
			checkRefs(t, v, known)
		}
	}
}

// A response's members stand beside these two in a WebSocket frame.
func TestResponseMembersDifferFromFrameMembers(t *testing.T) {
	made := Schemas{}
	for _, o := range api.Operations() {
		name := strings.TrimPrefix(made.Of(o.Response).Ref, RefPrefix)
		if name == "actors.Envelope" {
			continue // a frame has it as its member "message"
		}
		if name == "" {
			t.Errorf("the response of %s is a %v, and no object", o.Name, o.Response.Kind())
			continue
		}
		for _, own := range []string{"type", "requestId"} {
			if made[name].Properties[own] != nil {
				t.Errorf("the response of %s has a member %q", o.Name, own)
			}
		}
	}
}

type inner struct {
	Self  *inner `json:"self"`
	Count uint8  `json:"count,omitempty"`
}

type outer struct {
	api.Acting
	inner
	Plain  string
	Hidden string           `json:"-"`
	Times  []time.Time      `json:"times"`
	By     map[string]int64 `json:"by,omitzero"`
	Ratio  float64          `json:"ratio"`
	Any    any              `json:"any"`
	Raw    json.RawMessage  `json:"raw,omitempty"`
	Fields parley.Fields    `json:"fields"`
	ID     *capabilities.ID `json:"id"`
}

func TestSchemaOfAStruct(t *testing.T) {
	made := Schemas{}
	if ref := made.Of(reflect.TypeFor[*outer]()); ref.Ref != RefPrefix+"openapi.outer" {
		t.Fatalf("the reference is %+v", ref)
	}
	got := made["openapi.outer"]
	zero := 0
	want := map[string]*Schema{
		"as":     {Type: "string"},
		"self":   {Ref: RefPrefix + "openapi.inner"},
		"count":  {Type: "integer", Minimum: &zero},
		"Plain":  {Type: "string"},
		"times":  {Type: "array", Items: &Schema{Type: "string"}},
		"by":     {Type: "object", Additional: &Schema{Type: "integer"}},
		"ratio":  {Type: "number"},
		"any":    {},
		"raw":    {Description: "Any JSON."},
		"fields": {Type: "array", Items: &Schema{Ref: RefPrefix + "events.Field"}},
		"id":     {Type: "string", Pattern: idPattern, Description: "An ID: {ULID}@{node}."},
	}
	if !reflect.DeepEqual(got.Properties, want) {
		for name := range got.Properties {
			t.Logf("%s: %+v", name, got.Properties[name])
		}
		t.Error("the properties differ")
	}
	if required := []string{"Plain", "times", "ratio", "any", "fields"}; !slices.Equal(got.Required, required) {
		t.Errorf("required are %q, want %q", got.Required, required)
	}
	if made["openapi.inner"] == nil || made["events.Field"] == nil {
		t.Error("a struct within it has no schema of its own")
	}
}

func TestPublishedNamesStay(t *testing.T) {
	made := Schemas{}
	for _, o := range api.Operations() {
		made.Of(o.Request)
		made.Of(o.Response)
	}
	made.Of(reflect.TypeFor[events.Field]())
	for _, name := range []string{"FormRequest", "actors.Envelope", "actors.Snapshot", "actors.Filter", "actors.Outcome", "events.Field", "parley.Error"} {
		if made[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for name := range made {
		if strings.HasPrefix(name, "view.") || strings.HasPrefix(name, "api.") {
			t.Errorf("%s is named after its package of today", name)
		}
	}
}
