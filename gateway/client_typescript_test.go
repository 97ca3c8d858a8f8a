package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/gateway/api/openapi"
)

// typescript is the folder of the npm package. Its knowledge of the operations is generated from their table.
var typescript = filepath.Join("client", "typescript")

func TestTypeScriptMatchesOperations(t *testing.T) {
	t.Parallel()
	doc := openapi.Describe("test")
	for name, text := range map[string]string{"operations.d.ts": declarations(t, doc), "operations.js": looksOf(t, doc)} {
		path := filepath.Join(typescript, name)
		if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal([]byte(text), want) {
			t.Errorf("%s is another: look at what changed, and run go test -run %s -rewrite ./gateway if it is wanted", path, t.Name())
		}
	}
}

const generatedBy = "// Written from the node's table of operations by a test, TestTypeScriptMatchesOperations: not by hand.\n\n"

// looksOf returns the names of the operations that change nothing, as a list in JavaScript.
func looksOf(t *testing.T, doc openapi.Document) string {
	t.Helper()
	var names []string
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		if call := doc.Paths[path].Post; call != nil && call.Scope == api.ScopeRead {
			names = append(names, call.OperationID)
		}
	}
	list, err := json.MarshalIndent(names, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return generatedBy + "/** The operations that change nothing, and so can be called again. */\nexport const looks = new Set(" + string(list) + ");\n"
}

// declarations returns the types of the requests and responses, and a map from operations to these.
func declarations(t *testing.T, doc openapi.Document) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(generatedBy)
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		typed := typeName(name)
		if other, ok := taken[typed]; ok {
			t.Errorf("%s and %s are both %s", name, other, typed)
		}
		taken[typed] = name
		if made := doc.Components.Schemas[name]; made.OneOf != nil {
			fmt.Fprintf(&b, "/** %s */\nexport type %s = %s;\n\n", made.Description, typed, typeOf(made))
		} else {
			fmt.Fprintf(&b, "export interface %s ", typed)
			writeMembers(&b, made)
			b.WriteString("\n\n")
		}
	}
	b.WriteString("/** What is sent to each operation, and what it answers. */\nexport interface Operations {\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		if call := doc.Paths[path].Post; call != nil {
			request, response := call.Request.Content[openapi.JSON].Schema, call.Responses["200"].Content[openapi.JSON].Schema
			fmt.Fprintf(&b, "  %s: { request: %s; response: %s };\n", call.OperationID, typeOf(request), typeOf(response))
		}
	}
	b.WriteString("}\n\n/** The operations that change nothing, and so can be called again. */\nexport const looks: Set<string>;\n")
	return b.String()
}

func writeMembers(b *strings.Builder, s *openapi.Schema) {
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member, optional := s.Properties[name], "?"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		if said := cmp.Or(member.Description, map[string]string{"date-time": "A time in UTC, with milliseconds."}[member.Format]); said != "" {
			fmt.Fprintf(b, "  /** %s */\n", said)
		}
		fmt.Fprintf(b, "  %s%s: %s;\n", name, optional, typeOf(member))
	}
	b.WriteString("}")
}

// typeName returns a schema's name without its package. JavaScript has its own Error.
func typeName(schema string) string {
	if name := schema[strings.LastIndexByte(schema, '.')+1:]; name != "Error" {
		return name
	}
	return "Refusal"
}

func typeOf(s *openapi.Schema) string {
	if s.Ref != "" {
		return typeName(strings.TrimPrefix(s.Ref, openapi.RefPrefix))
	}
	if s.OneOf != nil {
		kinds := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			kinds[i] = typeOf(one)
		}
		return strings.Join(kinds, " | ")
	}
	switch s.Type {
	case "integer", "number":
		return "number"
	case "array":
		return "Array<" + typeOf(s.Items) + ">"
	case "object":
		if s.Additional == nil {
			return "Record<string, unknown>"
		}
		return "Record<string, " + typeOf(s.Additional) + ">"
	case "":
		return "unknown"
	}
	return s.Type
}
