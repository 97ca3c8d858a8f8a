package call

import (
	"encoding/json"

	"parley"
	"parley/capabilities"
)

// readUse reads the use of a resource. What it does is known by its verb, which the resource has checked.
func (r *reader) readUse(in object) {
	var input object
	var ok bool
	verb, _ := in.text("verb")
	if input, ok = membersOf(string(in.raw("input"))); !ok || verb == "" || len(in) != 2 {
		r.risks.Unread("The use is not understood: read it with care.")
		r.add(Block{Kind: Values, Values: []Value{{Text: pretty([]byte(r.call.Input))}}})
		return
	}
	u := r.call.Use
	path, _ := input.text("path")
	rest := Block{Kind: Values}
	r.verb, r.object = verb, "the "+string(u.Kind)+" "+named(u.Name)
	shown := ""
	switch {
	case u.Kind == capabilities.KindFolder:
		if path != "" {
			r.object = named(path) + " in " + named(u.Name)
		}
		if verb != "write" {
			r.risks.Reads(path)
			break
		}
		r.risks.Changes("Writes " + path + " in " + u.Name + ".")
		r.risks.Writes(path)
		if content, ok := input.text("content"); ok {
			r.add(edit{path: path, new: content, isFile: true}.block())
			shown = "content"
		}
	case u.Kind == capabilities.KindSecret:
		address, _ := input.text("url")
		method, _ := input.text("method")
		if method == "" {
			method = "GET"
		}
		r.object = method + " " + address
		r.risks.Request(method, address)
	case u.Kind == capabilities.KindTool && verb == "call":
		tool, _ := input.text("tool")
		r.verb, r.object = "use", u.Name+" · "+tool
		r.risks.Tool(u.Name, tool, string(input.raw("arguments")))
	}
	for _, m := range input {
		if m.key == shown || shown != "" && m.key == "path" {
			continue
		}
		v := Value{Key: m.key, Text: pretty(m.value)}
		if text, ok := input.text(m.key); ok {
			v.Text = text
		}
		rest.Values = append(rest.Values, v)
	}
	if len(rest.Values) > 0 || len(r.blocks) == 0 {
		r.add(rest)
	}
}

// Holder returns who uses a resource, as its giver knows it.
func Holder(u *parley.AskedUse) string {
	switch {
	case u.Holder != "":
		return u.Holder
	case u.Through != "":
		return "an agent that has it from " + u.Through
	}
	return "an agent without a name"
}

// Asker returns who wants to make the call: the holder of a resource, or else the agent that asks, as from.
func (r Reading) Asker(from string) string {
	if r.call.Use != nil {
		return Spelled(Holder(r.call.Use))
	}
	return from
}

// Fact says who uses which resource. The node has found it out, and not the agent. It is "" for the call of an agent.
func (r Reading) Fact() string {
	u := r.call.Use
	if u == nil {
		return ""
	}
	text := "Used by " + Holder(u) + ": the " + string(u.Kind) + " " + named(u.Name)
	if u.Called != "" && u.Called != u.Name {
		called, _ := json.Marshal(u.Called) // a text always has a JSON form
		text += ", which it calls " + string(called)
	}
	if u.Holder != "" && u.Through != "" {
		text += ", and has from " + u.Through
	}
	return Spelled(text)
}
