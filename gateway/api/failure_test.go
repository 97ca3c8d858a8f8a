package api

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"testing"

	"parley"
)

// codes returns all codes of package parley.
func codes(t *testing.T) []parley.Code {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "../../internal/fault/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []parley.Code
	ast.Inspect(tree, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Code" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, parley.Code(text))
			}
		}
		return true
	})
	if len(all) < 30 {
		t.Fatalf("found only the codes %v", all)
	}
	return all
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for _, c := range codes(t) {
		status := HTTPStatus(c)
		if status < 400 || http.StatusText(status) == "" {
			t.Errorf("%s has the status %d", c, status)
		}
		if (status == http.StatusInternalServerError) != (c == parley.Internal) {
			t.Errorf("%s has the status %d", c, status)
		}
	}
	for _, c := range []parley.Code{"", "FLY", "internal"} {
		if got := HTTPStatus(c); got != http.StatusInternalServerError {
			t.Errorf("%q has the status %d", c, got)
		}
	}
}

func TestStatusesStay(t *testing.T) {
	for c, want := range map[parley.Code]int{
		parley.InvalidArgument: 400, parley.Unauthenticated: 401, parley.NotPermitted: 403, parley.NoSuchMessage: 404,
		parley.AlreadyAnswered: 409, parley.TooLarge: 413, parley.InvalidAnswer: 422, parley.RateLimited: 429,
		parley.Internal: 500, parley.NodeUnreachable: 502, parley.NotRunning: 503, parley.Timeout: 504,
	} {
		if got := HTTPStatus(c); got != want {
			t.Errorf("%s has the status %d, want %d", c, got, want)
		}
	}
}

func TestFailureJSON(t *testing.T) {
	text, err := json.Marshal(Failure{Error: parley.Refuse(parley.TooLarge, "<x>").WithHint("less")})
	if want := `{"error":{"code":"TOO_LARGE","message":"\u003cx\u003e","hint":"less"}}`; err != nil || string(text) != want {
		t.Errorf("%s %v, want %s", text, err, want)
	}
}
