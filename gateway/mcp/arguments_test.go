package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func TestArgumentsMayBeGivenAsText(t *testing.T) {
	t.Parallel()
	all, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]json.RawMessage{}
	for _, d := range all {
		schemas[d.Name] = d.InputSchema.(json.RawMessage)
	}
	for _, c := range []struct{ tool, given, want string }{
		{"ask_user", `{"fields":"[{\"name\":\"a\"}]","message":"q"}`, `{"fields":[{"name":"a"}],"message":"q"}`},
		{"ask_user", `{"fields":["{\"name\":\"a\",\"required\":\"true\"}"]}`, `{"fields":[{"name":"a","required":true}]}`},
		{"ask_user", `{"fields":"[{\"name\":\"a\",\"required\":\"True\"}]","timeoutSeconds":""}`, `{"fields":[{"name":"a","required":true}],"timeoutSeconds":null}`},
		{"ask_user", `{"fields":[{"name":"1","label":"[2]","default":"3","options":"[{\"value\":\"4\"}]","pattern":"{\"type\":\"integer\"}"}]}`,
			`{"fields":[{"default":"3","label":"[2]","name":"1","options":[{"value":"4"}],"pattern":{"type":"integer"}}]}`},
		{"ask_user", `{"timeoutSeconds":"0","need":"2","veto":"false","expiresInSeconds":"1.5","remind":"[\"1h\"]"}`,
			`{"expiresInSeconds":1.5,"need":2,"remind":["1h"],"timeoutSeconds":0,"veto":false}`},
		{"ask_user", `{"timeoutSeconds":"null"}`, `{"timeoutSeconds":null}`},
		{"answer_form", `{"form":"7","values":"{\"n\":9007199254740993}","revision":"2"}`, `{"form":"7","revision":2,"values":{"n":9007199254740993}}`},
		{"list_inbox", `{"limit":"5","view":"all","message":"12"}`, `{"limit":5,"message":12,"view":"all"}`},
		// An integer is one however its number is written: some clients have floating-point numbers alone.
		{"list_inbox", `{"limit":5.0,"message":"12.0"}`, `{"limit":5,"message":12}`},
		{"answer_form", `{"form":7.0,"values":{"n":1.0},"revision":2e0}`, `{"form":7,"revision":2,"values":{"n":1.0}}`},
		{"ask_user", `{"need":1.5,"timeoutSeconds":1e300}`, `{"need":1.5,"timeoutSeconds":1e300}`},
		// What does not fit is left to be refused.
		{"ask_user", `{"need":"1.5"}`, `{"need":"1.5"}`},
		{"ask_user", `{"need":"many","fields":"a, b","veto":"no"}`, `{"need":"many","fields":"a, b","veto":"no"}`},
		{"ask_user", `{"fields":"{\"name\":\"a\"}"}`, `{"fields":"{\"name\":\"a\"}"}`},
		{"ask_user", `{"title":"[1]","message":"{}"}`, `{"title":"[1]","message":"{}"}`},
		{"ask_user", `{"need":"1 2"}`, `{"need":"1 2"}`},
	} {
		if got := readArguments(schemas[c.tool], json.RawMessage(c.given)); string(got) != c.want {
			t.Errorf("%s %s is read as %s, want %s", c.tool, c.given, got, c.want)
		}
	}
	for _, c := range []struct{ tool, given, says, hint string }{
		{"send_message", `{"to":"fae","text":"a"}`, `there is no argument "to"`, "recipient, recipients"},
		{"ask_user", `{"fields":[{"name":"a"},{"title":"b"}]}`, `fields has no member "title"`, "label"},
		{"ask_user", `{"fields":"[{\"title\":\"b\"}]"}`, `fields has no member "title"`, "label"},
	} {
		err := checkNames(schemas[c.tool], readArguments(schemas[c.tool], json.RawMessage(c.given)))
		if e := parley.AsError(err); e.Code != parley.InvalidArgument || e.Message != c.says || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %s: %+v", c.tool, c.given, e)
		}
	}
}

func TestValuesMayBeGivenAsText(t *testing.T) {
	t.Parallel()
	fields := []events.Field{
		{Name: "n", Type: events.Number}, {Name: "text"}, {Name: "yes", Type: events.Checkbox}, {Name: "some", Type: events.Multiselect, Options: []events.Option{{Value: "a"}}},
		{Name: "wrong", Type: events.Number},
	}
	values := map[string]capabilities.Value{
		"n": capabilities.String("12"), "text": capabilities.String("12"), "yes": capabilities.String("true"), "some": capabilities.String(`["a"]`),
		"wrong": capabilities.String("twelve"),
	}
	readValues(fields, values)
	got, err := capabilities.Record(values).MarshalJSON()
	if want := `{"n":12,"some":["a"],"text":"12","wrong":"twelve","yes":true}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
