package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func field(name string, t events.FieldType, change ...func(*events.Field)) events.Field {
	f := events.Field{Name: name, Label: "L", Type: t}
	for _, c := range change {
		c(&f)
	}
	return f
}

func patterned(p string) func(*events.Field) {
	return func(f *events.Field) { f.Pattern = json.RawMessage(p) }
}

func defaulting(v capabilities.Value) func(*events.Field) {
	return func(f *events.Field) { f.Default = v }
}

func choices(values ...string) func(*events.Field) {
	return func(f *events.Field) {
		for _, v := range values {
			f.Options = append(f.Options, events.Option{Value: v})
		}
	}
}

func required(f *events.Field) { f.Required = true }

func compiled(t testing.TB, fields ...events.Field) *Schema {
	t.Helper()
	c, err := Compile(fields)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return c
}

// wantFields checks that err has the code and names exactly the wanted fields. Each field's error contains the wanted text.
func wantFields(t testing.TB, err error, code parley.Code, want map[string]string) {
	t.Helper()
	e, ok := errors.AsType[*parley.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	if got, want := slices.Sorted(maps.Keys(e.Fields)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Fatalf("wrong fields are %q, want %q: %v", got, want, err)
	}
	for name, why := range want {
		if !strings.Contains(e.Fields[name], why) {
			t.Errorf("%s: %q, want %q", name, e.Fields[name], why)
		}
	}
	if len([]rune(e.Message)) > 1000+1 {
		t.Errorf("a message of %d bytes", len(e.Message))
	}
}

func testRef(t testing.TB) capabilities.Ref {
	t.Helper()
	id := capabilities.ID{ULID: [16]byte{1}, Node: capabilities.NodeOf([32]byte{1})}
	return capabilities.Ref{Target: id, Kind: capabilities.KindAgent}
}

// nested returns lists nested depth deep.
func nested(depth int) capabilities.Value {
	v := capabilities.Int(1)
	for range depth {
		v = capabilities.List(v)
	}
	return v
}

func TestValidFieldsCompile(t *testing.T) {
	for name, f := range map[string]events.Field{
		"untyped":             field("a", ""),
		"spaces within":       field("two words", events.Text),
		"other scripts":       field("Größe 寸法", events.Text),
		"confirm":             field("a", events.Confirm),
		"confirm, options":    field("a", events.Confirm, choices("Ship", "Wait"), defaulting(capabilities.String("Wait"))),
		"checkbox":            field("a", events.Checkbox, defaulting(capabilities.Bool(false))),
		"checkboxes":          field("a", events.Checkbox, choices("x", "y"), defaulting(capabilities.Strings("y"))),
		"date":                field("a", events.Date, defaulting(capabilities.String("2028-02-29"))),
		"pattern true":        field("a", "", patterned(`true`)),
		"pattern null":        field("a", "", patterned(`null`)),
		"pattern of its own":  field("a", "", patterned(`{"$schema":"https://json-schema.org/draft/2020-12/schema#","$ref":"#/$defs/x","$defs":{"x":{"type":"string"}}}`)),
		"anchors":             field("a", "", patterned(`{"$ref":"#x","$defs":{"x":{"$anchor":"x","type":"string"}}}`)),
		"dynamic anchors":     field("a", "", patterned(`{"$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x","type":"string"}}}`)),
		"property named $ref": field("a", "", patterned(`{"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}`)),
		"floats to the limit": field("a", events.Number, patterned(`{"maximum":1.7976931348623157e308}`)),
		"empty default":       field("a", events.Number, defaulting(capabilities.String(""))),
		"a long text allowed": field("a", events.Text, patterned(`{"pattern":"^.{1,1000}$"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			c := compiled(t, f)
			again := compiled(t, c.Fields()...)
			if !reflect.DeepEqual(c.Fields(), again.Fields()) {
				t.Errorf("compiled twice %v, once %v", again.Fields(), c.Fields())
			}
		})
	}
}

func TestCompileNormalizesFields(t *testing.T) {
	given := []events.Field{field("a", events.Confirm), field("b", "", patterned("null"), defaulting(capabilities.String("")))}
	c := compiled(t, given...)
	got := c.Fields()
	if want := []events.Option{{Value: "Yes"}, {Value: "No"}}; !slices.Equal(got[0].Options, want) {
		t.Errorf("confirm has %v", got[0].Options)
	}
	if got[1].Pattern != nil || !got[1].Default.IsNull() {
		t.Errorf("kept: %s %v", got[1].Pattern, got[1].Default)
	}
	if given[0].Options != nil || given[1].Pattern == nil {
		t.Error("the caller's fields were changed")
	}
}

func TestCompileNamesEveryWrongField(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	text := capabilities.String
	for name, c := range map[string]struct {
		field events.Field
		want  string
	}{
		"no name":             {field("", events.Text), "a name is required"},
		"long name":           {field(strings.Repeat("n", 129), ""), "more than 128 characters"},
		"colon":               {field("a:b", ""), "colon"},
		"slash":               {field("a/b", ""), "cannot be used: it holds a /"},
		"at":                  {field("@a", ""), "special"},
		"special":             {field("HOST", ""), "spelling of @host"},
		"space in front":      {field(" a", ""), "space"},
		"space behind":        {field("a ", ""), "space"},
		"control":             {field("a\tb", ""), "invisible"},
		"NUL":                 {field("a\x00", ""), "NUL"},
		"bidi":                {field("a\u202eb", ""), "invisible"},
		"zero width":          {field("a\u200bb", ""), "invisible"},
		"byte order mark":     {field("\ufeffa", ""), "invisible"},
		"filler":              {field("a\u3164", ""), "invisible"},
		"variation selector":  {field("a\ufe0f", ""), "invisible"},
		"no-break space":      {field("a\u00a0b", ""), "invisible"},
		"UTF-8":               {field("a\xff", ""), "UTF-8"},
		"proto":               {field("__proto__", ""), "scripts"},
		"prototype":           {field("prototype", ""), "scripts"},
		"constructor":         {field("constructor", ""), "scripts"},
		"label":               {field("a", "", func(f *events.Field) { f.Label = long }), "label has more than 1000"},
		"help":                {field("a", "", func(f *events.Field) { f.Help = long }), "help has more than 4000"},
		"placeholder":         {field("a", "", func(f *events.Field) { f.Placeholder = long }), "placeholder has more than 1000"},
		"label UTF-8":         {field("a", "", func(f *events.Field) { f.Label = "\xc3" }), "label is not valid UTF-8"},
		"type":                {field("a", "slider"), `unknown type "slider"`},
		"type, hidden":        {field("a", "sl\u202eider"), `unknown type "sl\u202eider"`},
		"select":              {field("a", events.Select), "a select field needs options"},
		"multiselect":         {field("a", events.Multiselect), "needs options"},
		"radio":               {field("a", events.Radio), "needs options"},
		"buttons":             {field("a", events.Buttons), "needs options"},
		"text with options":   {field("a", "", choices("x")), "a text field takes no options"},
		"number with options": {field("a", events.Number, choices("1")), "a number field takes no options"},
		"option empty":        {field("a", events.Select, choices("x", "")), "option 2 has no value"},
		"option twice":        {field("a", events.Select, choices("x", "y", "x")), "option 3 has the same value"},
		"option long":         {field("a", events.Select, choices(long)), "option 1 has more than 1000"},
		"option UTF-8":        {field("a", events.Select, choices("\xff")), "option 1 is not valid UTF-8"},
		"options, many":       {field("a", events.Select, choices(make([]string, 1001)...)), "over the limit of 1000"},
		"default not option":  {field("a", events.Select, choices("x"), defaulting(text("y"))), "default: not one of the options: x"},
		"default type":        {field("a", events.Number, defaulting(text("5"))), "default: want a number"},
		"default pattern":     {field("a", events.Number, patterned(`{"minimum":5}`), defaulting(capabilities.Int(4))), "default: at least 5"},
		"default sealed":      {field("a", events.Text, defaulting(capabilities.Sealed([]byte("x")))), "default: only a secret"},
		"default reference":   {field("a", "", patterned("true"), defaulting(capabilities.Reference(testRef(t)))), "default: it holds a capability"},
		"default deep":        {field("a", "", patterned("true"), defaulting(nested(64))), "nested more than"},
		"example reference":   {field("a", "", func(f *events.Field) { f.Example = capabilities.List(capabilities.Reference(testRef(t))) }), "example: it holds a capability"},
		"secret default":      {field("a", events.Secret, defaulting(text("y"))), "a secret field has no default"},
		"capability default":  {field("a", events.Capability, defaulting(capabilities.Reference(testRef(t)))), "a capability field has no default"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]events.Field{field("good", ""), c.field})
			key := parley.FieldKey(c.field.Name, 1)
			wantFields(t, err, parley.InvalidForm, map[string]string{key: c.want})
			if strings.ContainsFunc(err.Error(), parley.IsInvisible) {
				t.Errorf("%q is not fit to be shown", err)
			}
		})
	}
	_, err := Compile([]events.Field{field("", ""), field("a", ""), field("a", ""), field("b", "slider", choices("x"), patterned(`{"type":"strin"}`))})
	wantFields(t, err, parley.InvalidForm, map[string]string{"field 1": "name is required", "a": "stands twice", "b": "unknown type"})
	if e, _ := errors.AsType[*parley.Error](err); !strings.Contains(e.Fields["b"], "not a JSON Schema") || !strings.HasPrefix(e.Message, "3 fields are wrong: field 1: ") {
		t.Errorf("%v", e)
	}
}

func TestLargeFormsAreRefused(t *testing.T) {
	many := make([]events.Field, 10_000)
	for i := range many {
		many[i] = field(fmt.Sprint("f", i), "")
	}
	big := slices.Clone(many[:100])
	for i := range big {
		big[i].Help = strings.Repeat("h", 3900)
	}
	large := field("a", "", defaulting(capabilities.String(strings.Repeat("x", 300<<10))))
	for name, c := range map[string]struct {
		fields []events.Field
		want   parley.Code
	}{
		"none":          {nil, parley.InvalidForm},
		"10,000":        {many, parley.TooLarge},
		"256":           {many[:256], ""},
		"257":           {many[:257], parley.TooLarge},
		"long texts":    {big, parley.TooLarge},
		"large default": {[]events.Field{large}, parley.TooLarge},
	} {
		if _, err := Compile(c.fields); parley.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// deepPattern returns a schema of nested lists.
func deepPattern(depth int) string {
	return strings.Repeat(`{"items":`, depth) + "true" + strings.Repeat("}", depth)
}

// doublingPattern returns a short schema whose size doubles with each level.
func doublingPattern(levels int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range levels {
		fmt.Fprintf(&b, `"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]},`, i, i+1)
	}
	fmt.Fprintf(&b, `"%d":{"type":"string"}}}`, levels)
	return b.String()
}

var badPatterns = []struct{ name, pattern, want string }{
	{"not JSON", `{"type":`, "not JSON"},
	{"two documents", `{} {}`, "not JSON"},
	{"a text", `"string"`, "want an object, true or false"},
	{"a number", `5`, "want an object, true or false"},
	{"a list", `[]`, "want an object, true or false"},
	{"a list of schemas", `[{}]`, "the pattern is not a JSON Schema"},
	{"UTF-8", "{\"title\":\"\xff\"}", "UTF-8"},
	{"unknown type", `{"type":"strin"}`, "at type: not one of: array, boolean"},
	{"wrong keyword type", `{"minLength":"3"}`, "at minLength: want a whole number"},
	{"negative length", `{"minLength":-1}`, "at minLength: at least 0"},
	{"below", `{"properties":{"a":{"type":5}}}`, "at properties/a/type"},
	{"regular expression", `{"pattern":"("}`, "missing closing )"},
	{"look-ahead", `{"pattern":"(?=a)"}`, "not a regular expression"},
	{"pattern property", `{"patternProperties":{"(":true}}`, "not a JSON Schema"},
	{"another document", `{"$ref":"https://example.com/x"}`, "refers outside itself"},
	{"a file", `{"$ref":"file:///etc/passwd"}`, "refers outside itself"},
	{"relative", `{"$ref":"other.json"}`, "refers outside itself"},
	{"the metaschema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "refers outside itself"},
	{"dynamic", `{"$dynamicRef":"x#y"}`, "refers outside itself"},
	{"another document, below", `{"anyOf":[true,{"not":{"$ref":"x"}}]}`, "refers outside itself"},
	{"dialect", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, "2020-12"},
	{"own dialect", `{"$schema":"parley:///pattern"}`, "2020-12"},
	{"id", `{"$id":"https://example.com/x"}`, "$id"},
	{"id below", `{"$defs":{"x":{"$id":"y"}}}`, "$id"},
	{"to nothing", `{"$ref":"#/$defs/x"}`, "a part that it does not have"},
	{"to no anchor", `{"$ref":"#x"}`, "a part that it does not have"},
	{"to no schema", `{"title":"t","$ref":"#/title"}`, "the pattern is not a JSON Schema"},
	{"itself", `{"$ref":"#"}`, "circle"},
	{"itself below", `{"properties":{"next":{"$ref":"#"}}}`, "circle"},
	{"each other", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"items":{"$ref":"#/$defs/a"}}}}`, "circle"},
	{"dynamic circle", `{"$dynamicAnchor":"x","items":{"$dynamicRef":"#x"}}`, "circle"},
	{"long", `{"title":"` + strings.Repeat("x", MaxPattern) + `"}`, "over the limit of 16384"},
	{"deep", deepPattern(80), "nested more than 64 deep"},
	{"doubling", doublingPattern(30), "too much work"},
	{"wide", `{"allOf":[` + strings.Repeat("true,", 1500) + `true]}`, "too much work"},
	{"many schemas", `{"allOf":[` + strings.Repeat("{},", 1500) + `{}]}`, "too much work"},
	{"repetition", `{"pattern":"(a{1000}){9}"}`, "not a regular expression"},
	{"repetitions", `{"pattern":"` + strings.Repeat("(a{100}){9}", 99) + `"}`, "it is too large"},
	{"many regexps", `{"allOf":[` + strings.Repeat(`{"pattern":"a{999}"},`, 20) + `true]}`, "too much work"},
	{"regexps referred to", `{"$defs":{"x":{"pattern":"a{999}"}},"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/x"},`, 20) + `true]}`, "too much work"},
	{"large exponent", `{"maximum":1e999999999}`, "beyond bounds"},
	{"small exponent", `{"multipleOf":1e-999999999}`, "beyond bounds"},
	{"long number", `{"const":` + strings.Repeat("1", 200) + `}`, "beyond bounds"},
}

func TestBadPatternsAreRefused(t *testing.T) {
	for _, c := range badPatterns {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile([]events.Field{field("a", "", patterned(c.pattern))})
			wantFields(t, err, parley.InvalidForm, map[string]string{"a": c.want})
			if e, _ := errors.AsType[*parley.Error](err); strings.Contains(e.Message, "://") || strings.Contains(e.Message, "\n") {
				t.Errorf("the message has a URL or a newline: %s", e.Message)
			}
		})
	}
}

func TestNestedReferencesAreCounted(t *testing.T) {
	compiled(t, field("a", "", patterned(doublingPattern(6))))
	if _, err := Compile([]events.Field{field("a", "", patterned(doublingPattern(10)))}); parley.CodeOf(err) != parley.InvalidForm {
		t.Errorf("%v", err)
	}
}

// FuzzPattern checks that compiling a pattern and checking a value take bounded time.
func FuzzPattern(f *testing.F) {
	for _, c := range badPatterns {
		f.Add([]byte(c.pattern), `{"a":[1,2.5,"x",null,true]}`)
	}
	f.Add([]byte(`{"type":"object","properties":{"a":{"items":{"enum":[1,"x"]},"uniqueItems":true}},"unevaluatedProperties":false}`), `{"a":[1,1]}`)
	f.Add([]byte(`{"format":"regex"}`), `"a{1000}"`)
	f.Fuzz(func(t *testing.T, raw []byte, value string) {
		start := time.Now()
		defer func() {
			if d := time.Since(start); d > 10*time.Second { // far above the measured times, for slow machines
				t.Errorf("took %v", d)
			}
		}()
		p, why := compilePattern(raw, newPatternBudget())
		if (p == nil) == (why == "") {
			t.Fatalf("pattern %v, why %q", p, why)
		}
		v, err := capabilities.ParseJSON([]byte(value))
		if err != nil || p == nil {
			return
		}
		if first := p.wrong(v, newCheckBudget()); first != p.wrong(v, newCheckBudget()) {
			t.Errorf("first %q, then %q", first, p.wrong(v, newCheckBudget()))
		}
	})
}

// TestPatternsCompareSpellingsAlike gives each spelling of a text to patterns that hold the other: they compare and measure what is
// read the same alike. The value itself stays as it was written.
func TestPatternsCompareSpellingsAlike(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	for _, spelled := range []string{composed, apart} {
		for _, p := range []string{`{"enum":["X"]}`, `{"const":"X"}`, `{"maxLength":4}`, `{"pattern":"^caf.$"}`, `{"pattern":"^X$"}`, `{"not":{"minLength":5}}`} {
			c := compiled(t, field("a", events.Text, patterned(strings.ReplaceAll(p, "X", spelled))))
			for _, text := range []string{composed, apart} {
				got, err := c.Check(map[string]capabilities.Value{"a": capabilities.String(text)})
				if s, _ := got["a"].AsString(); err != nil || s != text {
					t.Errorf("%+q by %+q: %+q, %v", text, p, s, err)
				}
			}
		}
		c := compiled(t, field("a", "", patterned(strings.ReplaceAll(`{"required":["X"],"properties":{"X":{"const":"X"}}}`, "X", spelled))))
		for _, name := range []string{composed, apart} {
			if _, err := c.Check(map[string]capabilities.Value{"a": capabilities.Record(map[string]capabilities.Value{name: capabilities.String(name)})}); err != nil {
				t.Errorf("a member %+q: %v", name, err)
			}
			if _, err := c.Check(map[string]capabilities.Value{"a": capabilities.Record(map[string]capabilities.Value{name: capabilities.String("tea")})}); err == nil {
				t.Errorf("a member %+q is not checked", name)
			}
		}
		_, err := c.Check(map[string]capabilities.Value{"a": capabilities.Record(map[string]capabilities.Value{composed: capabilities.String(composed), apart: capabilities.String("tea")})})
		wantFields(t, err, parley.InvalidAnswer, map[string]string{"a": "twice"})
	}
	_, err := Compile([]events.Field{field("a", "", patterned(`{"properties":{"`+composed+`":{},"`+apart+`":{}}}`))})
	wantFields(t, err, parley.InvalidForm, map[string]string{"a": "twice"})
}
