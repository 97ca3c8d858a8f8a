package edgetest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	"parley"
	"parley/gateway/api"
)

// changing has the parts of a response that are others in each run, but for their IDs.
var changing = []struct {
	text *regexp.Regexp
	mark string
}{
	{regexp.MustCompile(`ply_[0-9A-Za-z_-]{20,}`), "(token)"},
	{regexp.MustCompile(`parley://[^"]*`), "(locator)"},
	{regexp.MustCompile(`https?://[^"]*`), "(link)"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]*Z`), "(time)"},
	{regexp.MustCompile(`…[0-9A-Z]{8}\b`), "(end of an id)"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "(digest)"},
	{regexp.MustCompile(`"delivered":(true|false),`), ""},
	{regexp.MustCompile(`"state":"delivered",`), ""}, // or not yet
	{regexp.MustCompile(`"(changed|commit|cursor)":\d+`), `"$1":0`},
	{regexp.MustCompile(`no lease \d+:`), "no lease (number):"},
	{regexp.MustCompile(`\(lease \d+\), for [0-9hms]+ more`), "(lease), for (a time) more"},
}

var anID = regexp.MustCompile(`N[A-Z2-7]{55}|[0-9A-HJKMNP-TV-Z]{26}(@N[A-Z2-7]{55})?`)

// plain returns the JSON of a response with its IDs numbered. It leaves out the parts that differ in each run.
func (p *play) plain(response []byte) string {
	p.t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(response))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		p.t.Fatalf("%s: %v", response, err)
	}
	var sorted bytes.Buffer
	e := json.NewEncoder(&sorted)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		p.t.Fatal(err)
	}
	text := strings.NewReplacer(p.variables["fae"], "$fae", p.variables["bob"], "$bob").Replace(strings.TrimSpace(sorted.String()))
	for _, c := range changing {
		text = c.text.ReplaceAllString(text, c.mark)
	}
	numbers := map[string]int{}
	return anID.ReplaceAllStringFunc(text, func(id string) string {
		ulid, _, _ := strings.Cut(id, "@")
		n, known := numbers[ulid]
		if !known {
			n = len(numbers) + 1
			numbers[ulid] = n
		}
		return fmt.Sprintf("(id %d)", n)
	})
}

// perOperation calls each operation with what all have to refuse.
func (p *play) perOperation() {
	p.t.Helper()
	for _, o := range api.Operations() {
		for _, c := range []struct {
			name, by, request string
			code              parley.Code
		}{
			{"without a token", "nobody", `{}`, parley.Unauthenticated},
			{"with a token that was revoked", "ended", `{}`, parley.Unauthenticated},
			{"without the scope", lacking(o.Scope), `{}`, parley.NotPermitted},
			{"as another", "fae", `{"as":"bob"}`, parley.NotPermitted},
			{"as somebody unknown", "host", `{"as":"nobody"}`, parley.UnknownName},
		} {
			if p.edge.Shapes[o.Name] && c.by != lacking(o.Scope) { // the name of the agent is no argument there
				continue
			}
			if p.edge.Local && c.by != "host" || o.OfNode && c.by == "host" {
				continue
			}
			if _, err := p.edge.Call(p.t.Context(), p.callers[c.by], o.Name, c.request); codeOf(err) != c.code {
				p.t.Errorf("%s %s: %v, want %s", o.Name, c.name, err, c.code)
			}
		}
	}
}

// lacking returns the caller whose token lacks a scope.
func lacking(s api.Scope) string {
	if s == api.ScopeRead {
		return "manager"
	}
	return "reader"
}

// compare compares the transcript with the golden file, or with -rewrite writes that file.
func (p *play) compare(golden string) {
	p.t.Helper()
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" && len(p.edge.Differs) == 0 && !p.edge.Local {
		var b strings.Builder
		for _, at := range p.blocks {
			fmt.Fprintf(&b, "# %s\n%s\n----\n%s\n\n", at.title, at.call, at.result)
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		p.t.Fatal(err)
	}
	want := map[string]string{}
	for part := range strings.SplitSeq(string(text), "\n\n") {
		title, rest, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
		_, want[title], _ = strings.Cut(rest, "\n----\n")
	}
	for _, b := range p.blocks {
		if b.result != "" && b.result != want[b.title] {
			p.t.Errorf("%s (%s):\n got %s\nwant %s", b.title, b.call, b.result, want[b.title])
		}
	}
}
