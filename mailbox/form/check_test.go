package form

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

type values = map[string]capabilities.Value

func TestAnswersOfEachType(t *testing.T) {
	var (
		text  = capabilities.String
		whole = capabilities.Int
		ref   = capabilities.Reference(testRef(t))
		eu    = choices("eu", "us")
	)
	for _, c := range []struct {
		field events.Field
		value capabilities.Value
		want  string // the error, or "" for a valid value
	}{
		{field("a", ""), text("x"), ""},
		{field("a", ""), whole(5), "want text"},
		{field("a", events.Text), text("two\nlines"), ""},
		{field("a", events.Textarea), capabilities.Bool(true), "want text"},
		{field("a", events.Text), text("\xff"), "text is not valid UTF-8"},
		{field("a", events.Text), ref, "want text"},
		{field("a", events.Text), capabilities.Sealed([]byte("x")), "only a secret field takes a sealed value"},
		{field("a", events.Number), whole(80), ""},
		{field("a", events.Number), capabilities.Float(0.5), ""},
		{field("a", events.Number), capabilities.Float(math.NaN()), "no passable number"},
		{field("a", events.Number), capabilities.Float(math.Inf(1)), "no passable number"},
		{field("a", events.Number), text("80"), "want a number"},
		{field("a", events.Checkbox, required), capabilities.Bool(false), ""},
		{field("a", events.Checkbox), text("true"), "want true or false"},
		{field("a", events.Checkbox, eu), capabilities.Strings("us"), ""},
		{field("a", events.Checkbox, eu), capabilities.Bool(true), "want a list of options"},
		{field("a", events.Select, eu), text("eu"), ""},
		{field("a", events.Select, eu), text("mars"), "not one of the options: eu, us"},
		{field("a", events.Radio, eu), text("EU"), "not one of the options: eu, us"},
		{field("a", events.Buttons, eu), whole(1), "not one of the options: eu, us"},
		{field("a", events.Confirm), text("Yes"), ""},
		{field("a", events.Confirm), capabilities.Bool(true), "not one of the options: Yes, No"},
		{field("a", events.Multiselect, eu), capabilities.Strings("us", "eu"), ""},
		{field("a", events.Multiselect, eu), capabilities.Strings("us", "us"), "us is chosen twice"},
		{field("a", events.Multiselect, eu), capabilities.Strings("us", "mars"), "not one of the options: eu, us"},
		{field("a", events.Multiselect, eu), text("us"), "want a list of options"},
		{field("a", events.Date), text("2028-02-29"), ""},
		{field("a", events.Date), text("2027-02-29"), "there is no such date"},
		{field("a", events.Date), text("2027-13-01"), "there is no such date"},
		{field("a", events.Date), text("2027-2-1"), "want a date such as"},
		{field("a", events.Date), text("2027-02-01T00:00:00Z"), "want a date such as"},
		{field("a", events.Date), whole(20270201), "want a date such as"},
		{field("a", events.URL), text("https://example.com"), ""},
		{field("a", events.URL), text("HTTP://joe@[::1]:8080/a%20b?q=ü#c"), ""},
		{field("a", events.URL), text("https://example.com/" + strings.Repeat("a", 2028)), ""},
		{field("a", events.URL), text("https://example.com/" + strings.Repeat("a", 2029)), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com/" + strings.Repeat("ü", 1024)), "of at most 2048 bytes"},
		{field("a", events.URL), text("example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("/a"), "want an absolute http or https URL"},
		{field("a", events.URL), text("//example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("ftp://example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("javascript:alert(1)//https://example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https:example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https:///a"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://joe@:80/"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com:65536"), "want an absolute http or https URL"},
		{field("a", events.URL), text(" https://example.com"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com/a b"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com/\n"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com/\u202e"), "want an absolute http or https URL"},
		{field("a", events.URL), text("https://example.com/\u00a0"), "want an absolute http or https URL"},
		{field("a", events.URL), whole(1), "want an absolute http or https URL"},
		{field("a", events.URL, patterned(`{"pattern":"^https:"}`)), text("http://example.com"), "does not match ^https:"},
		{field("a", events.Secret), text("x"), ""},
		{field("a", events.Secret), capabilities.Sealed([]byte("x")), ""},
		{field("a", events.Secret, patterned(`{"minLength":9}`)), capabilities.Sealed([]byte("x")), ""},
		{field("a", events.Secret, patterned(`{"minLength":9}`)), text("x"), "at least 9 characters"},
		{field("a", events.Capability), ref, ""},
		{field("a", events.Capability), text("bob"), "want a capability"},
		{field("a", events.Capability, patterned(`{"properties":{"kind":{"const":"form"}}}`)), ref, "at kind: want form"},
		{field("a", "", patterned("true")), ref, "which only a field of type capability takes"},
		{field("a", "", patterned("true")), capabilities.Record(values{"x": ref}), "which only a field of type capability takes"},
		{field("a", "", patterned("true")), capabilities.List(capabilities.Sealed(nil)), "only a secret field takes"},
		{field("a", "", patterned("true")), nested(31), ""},
		{field("a", "", patterned("true")), nested(32), "nested more than 31 deep"}, // an answer is one record
		{field("a", "", patterned("true")), nested(64), "nested more than 31 deep"},
		{field("a", "", patterned("false")), whole(1), "nothing is allowed here"},
	} {
		given := values{"a": c.value}
		got, err := compiled(t, c.field).Check(given)
		what := fmt.Sprintf("%s %v %.60s", c.field.Type, c.field.Options, c.value.Text())
		if c.want == "" {
			if err != nil || !got["a"].Equal(c.value) {
				t.Errorf("%s: got %v, %v", what, got, err)
			}
			if err := capabilities.Record(got).Check(); err != nil {
				t.Errorf("%s: cannot be stored: %v", what, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: accepted, want %q", what, c.want)
			continue
		}
		wantFields(t, err, parley.InvalidAnswer, map[string]string{"a": c.want})
	}
}

func TestEmptyIsMissing(t *testing.T) {
	empties := values{"null": capabilities.Null(), "text": capabilities.String(""), "list": capabilities.List()}
	for _, typ := range []events.FieldType{"", events.Number, events.Date, events.Capability, events.Checkbox} {
		for name, v := range empties {
			got, err := compiled(t, field("a", typ, patterned(`{"not":{"enum":[null,"",[]]}}`))).Check(values{"a": v})
			if err != nil || len(got) != 0 {
				t.Errorf("optional %q given %s: %v, %v", typ, name, got, err)
			}
			_, err = compiled(t, field("a", typ, required)).Check(values{"a": v})
			wantFields(t, err, parley.InvalidAnswer, map[string]string{"a": "required"})
		}
	}
}

func TestDefaultsReplaceMissingValues(t *testing.T) {
	c := compiled(t,
		field("tier", events.Select, choices("standard", "fast"), defaulting(capabilities.String("standard")), required),
		field("n", events.Number, defaulting(capabilities.Int(0))),
	)
	given := values{}
	got, err := c.Check(given)
	if want := (values{"tier": capabilities.String("standard"), "n": capabilities.Int(0)}); err != nil || !maps.EqualFunc(got, want, capabilities.Value.Equal) {
		t.Errorf("got %v, %v", got, err)
	}
	if len(given) != 0 {
		t.Error("the caller's map was changed")
	}
	if got, err := c.Check(values{"tier": capabilities.String("fast"), "n": capabilities.Null()}); err != nil || len(got) != 1 {
		t.Errorf("with an empty value: %v, %v", got, err)
	}
}

func TestCheckNamesEveryWrongField(t *testing.T) {
	c := compiled(t,
		field("service", events.Text, required),
		field("port", events.Number, required, patterned(`{"type":"integer","minimum":1,"maximum":65535}`)),
		field("region", events.Multiselect, choices("eu", "us")),
	)
	_, err := c.Check(values{
		"port": capabilities.Int(70000), "region": capabilities.Strings("mars"),
		"bogus": capabilities.Int(1), "a\u202eb": capabilities.Int(1), strings.Repeat("n", 300): capabilities.Null(),
	})
	wantFields(t, err, parley.InvalidAnswer, map[string]string{
		"service": "required", "port": "at most 65535", "region": "not one of the options: eu, us",
		"bogus": "no such field", `a\u202eb`: "no such field", strings.Repeat("n", 128) + "…": "no such field",
	})
	want := "6 fields are wrong: service: required; port: at most 65535; region: not one of the options: eu, us; a\\u202eb: no such field; bogus: "
	if e, _ := errors.AsType[*parley.Error](err); !strings.HasPrefix(e.Message, want) {
		t.Errorf("message %q", e.Message)
	}
	_, err = c.Check(values{"service": capabilities.String("web"), "port": capabilities.String("eighty")})
	if e, _ := errors.AsType[*parley.Error](err); e == nil || e.Message != "port: want a number" {
		t.Errorf("%v", err)
	}
}

// TestOtherNeedsWords answers a choice that takes other words with the option for them.
func TestOtherNeedsWords(t *testing.T) {
	for _, several := range []bool{false, true} {
		fields, err := WidgetFields([]Widget{{Type: events.Radio, Several: several, Other: true, Options: []WidgetOption{{Label: "Postgres"}}}, {Type: events.Confirm}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(fields)
		if err != nil {
			t.Fatal(err)
		}
		chosen := func(options ...string) capabilities.Value {
			if several {
				return capabilities.Strings(options...)
			}
			return capabilities.String(options[len(options)-1])
		}
		for _, words := range []string{"", " \n"} {
			_, err := c.Check(values{"value": chosen("Postgres", OtherOption), "value_other": capabilities.String(words)})
			wantFields(t, err, parley.InvalidAnswer, map[string]string{"value_other": "say it in words: Other alone is no answer"})
		}
		for name, v := range map[string]values{
			"words":       {"value": chosen(OtherOption), "value_other": capabilities.String("SQLite")},
			"a remark":    {"value": chosen("Postgres"), "value_other": capabilities.String("16 or later")},
			"words alone": {"value_other": capabilities.String("SQLite")},
		} {
			if _, err := c.Check(v); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestLargeAnswersAreRefused(t *testing.T) {
	c := compiled(t, field("a", ""), field("b", ""))
	half := capabilities.String(strings.Repeat("x", 130<<10))
	for name, v := range map[string]values{
		"300 KiB":         {"a": capabilities.String(strings.Repeat("x", 300<<10))},
		"two halves":      {"a": half, "b": half},
		"of another name": {"c": capabilities.String(strings.Repeat("x", 300<<10))},
		"names":           {strings.Repeat("n", 300<<10): capabilities.Null()},
	} {
		if _, err := c.Check(v); parley.CodeOf(err) != parley.TooLarge {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if _, err := c.Check(values{"a": half}); err != nil {
		t.Errorf("130 KiB: %v", err)
	}
	defaults := compiled(t, field("a", "", defaulting(half)), field("b", ""))
	if _, err := defaults.Check(values{"b": half}); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("with a default: %.200v", err)
	}
}

func TestCostlyChecksAreRefusedEarly(t *testing.T) {
	longList := capabilities.List(slices.Repeat([]capabilities.Value{capabilities.Int(7)}, 25_000)...)
	numbers := strings.TrimSuffix(strings.Repeat("1,", 4000), ",")
	for name, c := range map[string]struct {
		pattern string
		value   capabilities.Value
	}{
		"a long list and a long enum": {`{"items":{"enum":[` + numbers + `]}}`, longList},
		"a long text and many states": {`{"pattern":"(a|b){999}c"}`, capabilities.String(strings.Repeat("ab", 100_000))},
		"regular expressions":         {`{"items":{"format":"regex"}}`, capabilities.List(slices.Repeat([]capabilities.Value{capabilities.String("a{999}")}, 1000)...)},
	} {
		start := time.Now()
		_, err := compiled(t, field("a", "", patterned(c.pattern))).Check(values{"a": c.value})
		wantFields(t, err, parley.InvalidAnswer, map[string]string{"a": "the answer is too large for its patterns"})
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
	var fields []events.Field
	answer := values{}
	for i := range 50 {
		name := fmt.Sprintf("f%02d", i)
		fields = append(fields, field(name, "", patterned(doublingPattern(6))))
		answer[name] = capabilities.List(slices.Repeat([]capabilities.Value{capabilities.Int(7)}, 200)...)
	}
	_, err := compiled(t, fields...).Check(answer)
	if e, _ := errors.AsType[*parley.Error](err); e == nil || e.Fields["f00"] != "want text" || e.Fields["f49"] != "the answer is too large for its patterns" {
		t.Errorf("many fields: %v", err)
	}
	if _, err := compiled(t, field("a", "", patterned(`{"items":{"type":"integer"}}`))).Check(values{"a": longList}); err != nil {
		t.Errorf("a long list and a small pattern: %v", err)
	}
}

func TestPatternErrors(t *testing.T) {
	person := `{"type":"object","required":["name","age"],"properties":{"name":{"type":"string"},"age":{"type":"integer"}},"additionalProperties":false}`
	for _, c := range []struct{ pattern, json, want string }{
		{`{"type":"integer"}`, `1.5`, "want a whole number"},
		{`{"type":["string","null"]}`, `5`, "want nothing or text"},
		{`{"minimum":0.5}`, `0.25`, "at least 0.5"},
		{`{"maximum":65535}`, `70000`, "at most 65535"},
		{`{"exclusiveMinimum":0}`, `0`, "more than 0"},
		{`{"exclusiveMaximum":9007199254740993}`, `9007199254740993`, "less than 9007199254740993"},
		{`{"multipleOf":5}`, `7`, "a multiple of 5"},
		{`{"minLength":1000}`, `"x"`, "at least 1000 characters"},
		{`{"maxLength":1}`, `"secret"`, "at most 1 character"},
		{`{"pattern":"^[a-z]+$"}`, `"A"`, "does not match ^[a-z]+$"},
		{`{"format":"email"}`, `"x"`, "not a valid email"},
		{`{"format":"date-time"}`, `"today"`, "not a valid date-time"},
		{`{"enum":["a",1,null,[1]]}`, `"b"`, "not one of: a, 1, null, a certain list"},
		{`{"const":true}`, `false`, "want true"},
		{`{"minItems":2}`, `[1]`, "at least 2 items"},
		{`{"maxItems":1}`, `[1,2]`, "at most 1 item"},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, "items 1 and 3 are the same"},
		{`{"contains":{"const":1}}`, `[2]`, "too few items of the kind asked for"},
		{`{"minProperties":2}`, `{"a":1}`, "at least 2 entries"},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, `invalid name "abc"`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "missing: b"},
		{`{"not":{"const":1}}`, `1`, "not allowed"},
		{`{"oneOf":[{"minimum":0},{"maximum":9}]}`, `5`, "fits more than one of the choices"},
		{`{"anyOf":[{"type":"string"},{"type":"integer","minimum":5}]}`, `3`, "at least 5"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `[1]`, "want a whole number, or want text"},
		{`{"if":{"type":"string"},"then":{"minLength":3}}`, `"x"`, "at least 3 characters"},
		{person, `{"name":5}`, "missing: age; at name: want text"},
		{person, `{"name":"x","age":5,"z":1,"y":2}`, "not known: y, z"},
		{`{"items":` + person + `}`, `[{"name":"x","age":1},{"name":"x"}]`, "at 1: missing: age"},
		{`{"items":{"type":"string"}}`, `[1,2,3,4,5]`, "at 0: want text; at 1: want text; at 2: want text; and 2 more"},
		{`{"items":{"multipleOf":2}}`, `[2,2,1,2,2,2,2,2,2,2,2,1]`, "at 2: a multiple of 2; at 11: a multiple of 2"},
		{`{"additionalProperties":false}`, `{"\u202e":1}`, `not known: \u202e`},
		{`{"unevaluatedProperties":false}`, `{"x":1}`, "at x: nothing is allowed here"},
		{`{"maximum":1e308}`, `1.5e308`, "at most 1e+308"},
	} {
		p, why := compilePattern([]byte(c.pattern), newPatternBudget())
		if p == nil {
			t.Errorf("%s: %s", c.pattern, why)
			continue
		}
		v, err := capabilities.ParseJSON([]byte(c.json))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // the library walks records in any order
			if got := p.wrong(v, newCheckBudget()); got != c.want {
				t.Errorf("%s of %s: %q, want %q", c.json, c.pattern, got, c.want)
				break
			}
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var options []string
	for i := range 50 {
		options = append(options, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 100)))
	}
	_, err := compiled(t, field("a", events.Select, choices(options...))).Check(values{"a": capabilities.String("y")})
	if e, _ := errors.AsType[*parley.Error](err); e == nil || len(e.Message) > 600 || !strings.HasSuffix(e.Message, "and 40 more") {
		t.Errorf("%v", err)
	}
	unknown := values{}
	for i := range 500 {
		unknown[fmt.Sprint("unknown", i)] = capabilities.Null()
	}
	_, err = compiled(t, field("a", "")).Check(unknown)
	if e, _ := errors.AsType[*parley.Error](err); e == nil || len(e.Fields) != 500 || len(e.Message) > 1100 {
		t.Errorf("%.2000v", err)
	}
}

func BenchmarkCompileAndCheck(b *testing.B) {
	plain := []events.Field{
		field("service", events.Text, required), field("port", events.Number, required),
		field("region", events.Multiselect, choices("eu", "us")), field("dryRun", events.Checkbox),
	}
	withPattern := slices.Clone(plain)
	withPattern[1].Pattern = []byte(`{"type":"integer","minimum":1,"maximum":65535}`)
	answer := values{
		"service": capabilities.String("web"), "port": capabilities.Int(8080),
		"region": capabilities.Strings("eu", "us"), "dryRun": capabilities.Bool(true),
	}
	for name, fields := range map[string][]events.Field{"plain": plain, "pattern": withPattern} {
		b.Run(name+"/both", func(b *testing.B) {
			for b.Loop() {
				if _, err := compiled(b, fields...).Check(answer); err != nil {
					b.Fatal(err)
				}
			}
		})
		c := compiled(b, fields...)
		b.Run(name+"/check", func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Check(answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
