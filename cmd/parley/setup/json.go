package setup

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// document is a JSON object as text. An edit leaves the rest of the text as it is, to the byte.
type document struct {
	text    []byte
	unit    string // that indents one level
	newline string
}

// part is a member of an object, or an element of an array, with its place in the text.
type part struct {
	name           string // of a member
	begin, at, end int    // of the part, of its value, and behind it
}

// place is a step from an object or an array to a value in it: a name or an index.
type place any

// readDocument reads a JSON object. An empty text is an empty object, and a single line is laid out.
func readDocument(text []byte) (*document, bool) {
	text = bytes.Clone(text)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if !json.Valid(text) || bytes.TrimSpace(text)[0] != '{' {
		return nil, false
	}
	d := &document{text: text, unit: "  ", newline: "\n"}
	if bytes.Contains(text, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	if !bytes.Contains(bytes.TrimSpace(text), []byte("\n")) {
		d.text = bytes.ReplaceAll(indented(text), []byte("\n"), []byte(d.newline))
	}
	if parts := d.parts(d.root()); len(parts) > 0 && d.beginsLine(parts[0].begin) && d.margin(parts[0].begin) != "" {
		d.unit = d.margin(parts[0].begin)
	}
	return d, true
}

func (d *document) root() int { return bytes.IndexByte(d.text, '{') }

// parts returns the parts of the object or the array at a place in the text. Another value has none.
func (d *document) parts(at int) (parts []part) {
	if d.text[at] != '{' && d.text[at] != '[' {
		return nil
	}
	r := json.NewDecoder(bytes.NewReader(d.text[at:]))
	_, _ = r.Token() // the text is valid JSON, here and below
	for r.More() {
		from := at + int(r.InputOffset())
		p := part{begin: from + len(d.text[from:]) - len(bytes.TrimLeft(d.text[from:], " \t\r\n,"))}
		if d.text[at] == '{' {
			name, _ := r.Token()
			p.name, _ = name.(string)
		}
		var value json.RawMessage
		_ = r.Decode(&value)
		p.end = at + int(r.InputOffset())
		p.at = p.end - len(value)
		parts = append(parts, p)
	}
	return parts
}

// index returns the index of a part, or -1. Of several members with one name it is the last, as for other readers.
func index(parts []part, step place) int {
	if i, ok := step.(int); ok && i < len(parts) {
		return i
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if name, ok := step.(string); ok && parts[i].name == name {
			return i
		}
	}
	return -1
}

// find returns the place of a value in the text.
func (d *document) find(path ...place) (at int, ok bool) {
	at = d.root()
	for _, step := range path {
		parts := d.parts(at)
		i := index(parts, step)
		if _, named := step.(string); i < 0 || named != (d.text[at] == '{') {
			return 0, false
		}
		at = parts[i].at
	}
	return at, true
}

// get returns a value, nil without one.
func (d *document) get(path ...place) (value json.RawMessage) {
	if at, ok := d.find(path...); ok {
		_ = json.NewDecoder(bytes.NewReader(d.text[at:])).Decode(&value) // the text is valid JSON
	}
	return value
}

// names returns the names of an object's members.
func (d *document) names(path ...place) (names []string) {
	if at, ok := d.find(path...); ok && d.text[at] == '{' {
		for _, p := range d.parts(at) {
			names = append(names, p.name)
		}
	}
	return names
}

// count returns the number of an array's elements, or -1 for what is no array.
func (d *document) count(path ...place) int {
	at, ok := d.find(path...)
	if !ok || d.text[at] != '[' {
		return -1
	}
	return len(d.parts(at))
}

// set puts a value at a path. It makes the objects that lead there, and adds an element behind the last one. What it goes
// into has to be an object, or an array for an index.
func (d *document) set(value json.RawMessage, path ...place) {
	last := len(path) - 1
	at, ok := d.find(path[:last]...)
	if !ok {
		d.set(plainJSON(map[string]json.RawMessage{path[last].(string): value}), path[:last]...)
		return
	}
	parts := d.parts(at)
	if i := index(parts, path[last]); i >= 0 {
		p := parts[i]
		if !sameJSON(d.text[p.at:p.end], value) {
			d.splice(p.at, p.end, d.laidOut(value, d.beginsLine(p.begin), d.margin(p.begin)))
		}
		return
	}
	name := ""
	if s, ok := path[last].(string); ok {
		name = string(plainJSON(s)) + ": "
	}
	if len(parts) == 0 {
		margin := d.margin(at)
		inner := d.newline + margin + d.unit
		end := at + bytes.IndexAny(d.text[at:], "}]") + 1
		d.splice(at+1, end-1, inner+name+d.laidOut(value, true, margin+d.unit)+d.newline+margin)
		return
	}
	end := parts[len(parts)-1].end
	if margin := d.margin(parts[0].begin); d.beginsLine(parts[0].begin) {
		d.splice(end, end, ","+d.newline+margin+name+d.laidOut(value, true, margin))
		return
	}
	d.splice(end, end, ", "+name+d.laidOut(value, false, ""))
}

// cut takes out the value at a path, with its name.
func (d *document) cut(path ...place) {
	last := len(path) - 1
	at, ok := d.find(path[:last]...)
	if !ok {
		return
	}
	parts := d.parts(at)
	switch i := index(parts, path[last]); {
	case i < 0:
	case len(parts) == 1:
		end := parts[0].end + bytes.IndexAny(d.text[parts[0].end:], "}]")
		d.splice(at+1, end, "")
	case i == len(parts)-1:
		d.splice(parts[i-1].end, parts[i].end, "")
	default:
		d.splice(parts[i].begin, parts[i+1].begin, "")
	}
}

func (d *document) splice(begin, end int, text string) {
	d.text = slices.Replace(d.text, begin, end, []byte(text)...)
}

// laidOut returns a value as text: in several lines behind a margin, or in one.
func (d *document) laidOut(value json.RawMessage, lines bool, margin string) string {
	if !lines {
		return string(value)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, value, margin, d.unit); err != nil {
		panic(err) // it was made of valid parts
	}
	return strings.ReplaceAll(b.String(), "\n", d.newline)
}

// margin returns the white space that the line of a place begins with.
func (d *document) margin(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func (d *document) beginsLine(at int) bool {
	begin := bytes.LastIndexByte(d.text[:at], '\n') + 1
	return begin > 0 && len(bytes.TrimLeft(d.text[begin:at], " \t")) == 0
}

// plainJSON returns the JSON form of a value that has one, without escapes for HTML.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and records of them always have one
	}
	return bytes.TrimSpace(b.Bytes())
}

func indented(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		panic(err) // it was made of valid parts
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// sameJSON reports whether two JSON texts differ in layout only.
func sameJSON(a, b []byte) bool {
	var first, second bytes.Buffer
	return json.Compact(&first, a) == nil && json.Compact(&second, b) == nil && bytes.Equal(first.Bytes(), second.Bytes())
}
