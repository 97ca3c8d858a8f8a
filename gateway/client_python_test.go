package gateway

import (
	"bytes"
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

// TestPythonDeclarationsMatchOperations holds the Python client's knowledge of the operations to their table.
func TestPythonDeclarationsMatchOperations(t *testing.T) {
	t.Parallel()
	path := filepath.Join("client", "python", "parley", "operations.py")
	text := []byte(pythonOperations(openapi.Describe("test")))
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s is another: look at what changed, and run go test -run %s -rewrite ./gateway if it is wanted", path, t.Name())
	}
}

const pythonHead = `"""The operations of a node: their requests and responses, and which of them change nothing.

Written from the node's table of operations by a test, TestPythonDeclarationsMatchOperations: not by hand.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, TypedDict, Union

`

// pythonOperations returns the types of all requests and responses, a map from operations to these, and the
// operations that change nothing.
func pythonOperations(doc openapi.Document) string {
	var b strings.Builder
	b.WriteString(pythonHead)
	names := slices.Sorted(maps.Keys(doc.Components.Schemas))
	for _, name := range names { // first: a union is no text, which may name what follows
		if s := doc.Components.Schemas[name]; s.OneOf != nil {
			fmt.Fprintf(&b, "%s = %s\n\"\"\"%s\"\"\"\n", typeName(name), pythonType(s), s.Description)
		}
	}
	requests := map[string]bool{}
	for _, path := range doc.Paths {
		if path.Post != nil {
			requests[path.Post.Request.Content[openapi.JSON].Schema.Ref] = true
		}
	}
	for _, name := range names {
		s := doc.Components.Schemas[name]
		if s.OneOf != nil {
			continue
		}
		var required, optional []string
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			switch {
			case member == "as" && requests[openapi.RefPrefix+name]: // the client adds it
			case slices.Contains(s.Required, member):
				required = append(required, member)
			default:
				optional = append(optional, member)
			}
		}
		writePython(&b, typeName(name), s, required, optional)
	}
	b.WriteString("\n\n# What is sent to each operation, and what it answers.\nOPERATIONS: Dict[str, Tuple[Any, Any]] = {\n")
	var looks []string
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		call := doc.Paths[path].Post
		if call == nil {
			continue
		}
		request, response := call.Request.Content[openapi.JSON].Schema, call.Responses["200"].Content[openapi.JSON].Schema
		fmt.Fprintf(&b, "    %q: (%s, %s),\n", call.OperationID, pythonType(request), pythonType(response))
		if call.Scope == api.ScopeRead {
			looks = append(looks, call.OperationID)
		}
	}
	b.WriteString("}\n\n# The operations that change nothing, and so can be called again.\nLOOKS = frozenset(\n    [\n")
	for _, name := range looks {
		fmt.Fprintf(&b, "        %q,\n", name)
	}
	b.WriteString("    ]\n)\n")
	fmt.Fprintf(&b, "\n# The bytes of the largest request.\nMAX_BODY = %d\n", api.MaxBody)
	return b.String()
}

// writePython writes a TypedDict. Members that are there always are those of its base, because NotRequired is of Python 3.11.
func writePython(b *strings.Builder, name string, s *openapi.Schema, required, optional []string) {
	var bases []string
	if len(required) > 0 && len(optional) > 0 || isOdd(required) {
		bases = append(bases, "_"+name)
		writeTable(b, "_"+name, s, required, "", "")
		required = nil
	}
	if isOdd(optional) {
		bases = append(bases, "_"+name+"Optional")
		writeTable(b, "_"+name+"Optional", s, optional, "", ", total=False")
		optional = nil
	}
	if bases == nil {
		bases = []string{"TypedDict"}
	}
	total := ""
	if len(optional) > 0 {
		total = ", total=False"
	}
	writeTable(b, name, s, slices.Concat(required, optional), strings.Join(bases, ", "), total)
}

// writeTable writes one class, or without bases a call, which may have members that are words of the language.
func writeTable(b *strings.Builder, name string, s *openapi.Schema, members []string, bases, total string) {
	if bases == "" && isOdd(members) {
		fmt.Fprintf(b, "\n\n%s = TypedDict(\n    %[1]q,\n    {\n", name)
		for _, member := range members {
			fmt.Fprintf(b, "        %q: \"%s\",\n", member, pythonType(s.Properties[member]))
		}
		fmt.Fprintf(b, "    }%s,\n)\n", total)
		return
	}
	if bases == "" {
		bases = "TypedDict"
	}
	fmt.Fprintf(b, "\n\nclass %s(%s%s):\n", name, bases, total)
	if len(members) == 0 {
		b.WriteString("    pass\n")
	}
	for _, member := range members {
		said := ""
		if d := s.Properties[member].Description; d != "" {
			said = "  # " + d
		}
		fmt.Fprintf(b, "    %s: %s%s\n", member, pythonType(s.Properties[member]), said)
	}
}

// isOdd reports whether a member cannot be named in a class.
func isOdd(members []string) bool {
	return slices.ContainsFunc(members, func(m string) bool {
		return slices.Contains([]string{"as", "for", "from", "in", "is", "class", "pass", "with"}, m) || strings.ContainsAny(m, "$-.")
	})
}

func pythonType(s *openapi.Schema) string {
	if s.Ref != "" {
		return typeName(strings.TrimPrefix(s.Ref, openapi.RefPrefix))
	}
	if s.OneOf != nil {
		kinds := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			kinds[i] = pythonType(one)
		}
		return "Union[" + strings.Join(kinds, ", ") + "]"
	}
	switch s.Type {
	case "string":
		return "str"
	case "boolean":
		return "bool"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "array":
		return "List[" + pythonType(s.Items) + "]"
	case "object":
		if s.Additional == nil {
			return "Dict[str, Any]"
		}
		return "Dict[str, " + pythonType(s.Additional) + "]"
	}
	return "Any"
}
