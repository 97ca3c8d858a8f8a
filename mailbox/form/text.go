package form

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// SplitText parses "name:value", where the value may hold colons. It refuses with INVALID_ARGUMENT.
func SplitText(arg string) (events.FieldText, error) {
	name, text, ok := strings.Cut(arg, ":")
	if !ok || name == "" {
		return events.FieldText{}, parley.Refuse(parley.InvalidArgument, `Invalid value format %.80q, expected "name:value"`, arg)
	}
	return events.FieldText{Name: name, Text: text}, nil
}

// finder returns the value at a path of the answerer's names.
type finder = func(path string) (capabilities.Value, error)

// ReadAndCheck parses texts by the types of their fields: a number, true or false, a capability by its path. It adds
// them to values, in which only a capability may be a path, and checks the whole. It refuses with INVALID_ANSWER,
// naming every text that cannot be parsed and every fault that Check finds.
func (c *Schema) ReadAndCheck(texts []events.FieldText, values map[string]capabilities.Value, lookup func(path string) (capabilities.Value, error)) (map[string]capabilities.Value, error) {
	var w parley.FieldErrors
	all := values
	if len(texts) > 0 || c.has(Reference) {
		all = c.readAll(texts, values, lookup, &w)
	}
	return c.check(all, &w)
}

// has reports whether there is a field with a kind of control.
func (c *Schema) has(k Control) bool {
	return slices.ContainsFunc(c.fields, func(f events.Field) bool { return ControlOf(&f) == k })
}

// readAll adds the values of texts and paths to values.
func (c *Schema) readAll(texts []events.FieldText, values map[string]capabilities.Value, lookup finder, w *parley.FieldErrors) map[string]capabilities.Value {
	all := readTexts(c.fields, texts, lookup, w)
	values = normalNames(values, w)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, twice := all[name]; twice || w.Has(name) {
			w.Add(name, "given twice")
			continue
		}
		v := values[name]
		i, known := c.find(name)
		if known && ControlOf(&c.fields[i]) == Reference {
			if path, isText := v.AsString(); isText && path != "" {
				v = find(path, name, lookup, w)
			} else if isEmpty(v) { // no name was given, which a value that is held would have
				continue
			}
		}
		all[name] = v
	}
	return all
}

// normalNames returns values by names in normal form.
func normalNames(values map[string]capabilities.Value, w *parley.FieldErrors) map[string]capabilities.Value {
	for name := range values {
		if capabilities.Normal(name) == name {
			continue
		}
		all := make(map[string]capabilities.Value, len(values))
		for name, v := range values {
			normal := capabilities.Normal(name)
			if _, twice := all[normal]; twice {
				w.Add(parley.Shown(normal, maxFieldName), "given twice")
			}
			all[normal] = v
		}
		return all
	}
	return values
}

// readTexts returns the values of the texts that can be parsed, and adds the faults of the others to w.
func readTexts(fields []events.Field, texts []events.FieldText, lookup finder, w *parley.FieldErrors) map[string]capabilities.Value {
	given := make(map[string][]string, len(texts))
	for _, t := range texts {
		name := capabilities.Normal(t.Name)
		given[name] = append(given[name], t.Text)
	}
	values := make(map[string]capabilities.Value, len(given))
	for _, f := range fields {
		if texts, ok := given[f.Name]; ok {
			if ControlOf(&f) == Reference && len(texts) == 1 && texts[0] == "" {
				delete(given, f.Name) // no name was given
				continue
			}
			if v := readField(f, texts, lookup, w); !w.Has(f.Name) {
				values[f.Name] = v
			}
			delete(given, f.Name)
		}
	}
	for name := range given {
		w.Add(parley.Shown(name, maxFieldName), "no such field")
	}
	return values
}

func readField(f events.Field, texts []string, lookup finder, w *parley.FieldErrors) capabilities.Value {
	asks := ControlOf(&f)
	if asks == Choices {
		if len(texts) == 1 && texts[0] == "" {
			texts = nil
		}
		chosen := make([]string, len(texts))
		for i, text := range texts {
			chosen[i] = readOption(f.Options, text)
		}
		return capabilities.Strings(chosen...)
	}
	if len(texts) > 1 {
		w.Add(f.Name, "given twice")
		return capabilities.Null()
	}
	text := texts[0]
	if text == "" {
		return capabilities.String("") // nothing was given
	}
	switch asks {
	case Number:
		return readNumber(f.Name, text, w)
	case YesNo:
		return readBool(f.Name, text, w)
	case Choice:
		return capabilities.String(readOption(f.Options, text))
	case Reference:
		return find(text, f.Name, lookup, w)
	case File:
		v, why := readFile(text)
		if why != "" {
			w.Add(f.Name, why)
		}
		return v
	case Any:
		if len(f.Pattern) > 0 && !wantsText(f.Pattern) {
			if v, err := capabilities.ParseJSON([]byte(text)); err == nil {
				return v
			}
		}
	}
	return capabilities.String(text)
}

// readOption returns the value of the option that a text names: by its value, or else by its value or label in any
// case. Yes and no may be given as y or n. A text that names none, or several, is returned as it is.
func readOption(options []events.Option, text string) string {
	text = capabilities.Normal(text)
	if slices.ContainsFunc(options, func(o events.Option) bool { return o.Value == text }) {
		return text
	}
	typed := strings.TrimSpace(text)
	switch strings.ToLower(typed) {
	case "y":
		typed = "yes"
	case "n":
		typed = "no"
	}
	var found []string
	for _, o := range options {
		if strings.EqualFold(o.Value, typed) || strings.EqualFold(o.Label, typed) {
			found = append(found, o.Value)
		}
	}
	if len(found) != 1 {
		return text
	}
	return found[0]
}

func readNumber(name, text string, w *parley.FieldErrors) capabilities.Value {
	text = strings.TrimSpace(text)
	i, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return capabilities.Int(i)
	}
	digits := strings.Trim(text, "+-0123456789")
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case strings.Trim(text, "+-.0123456789eE") != "" || math.IsNaN(f) || err != nil && !math.IsInf(f, 0):
		w.Add(name, "want a number")
	case digits == "" || math.IsInf(f, 0): // rounding would change the number
		w.Add(name, "the number is too large")
	}
	return capabilities.Float(f)
}

func readBool(name, text string, w *parley.FieldErrors) capabilities.Value {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "y", "on":
		return capabilities.Bool(true)
	case "false", "no", "n", "off":
		return capabilities.Bool(false)
	}
	w.Add(name, "want true or false")
	return capabilities.Null()
}

func find(path, name string, lookup finder, w *parley.FieldErrors) capabilities.Value {
	if lookup == nil {
		w.Add(name, "no names are known here")
		return capabilities.Null()
	}
	v, err := lookup(path)
	if err != nil {
		e := parley.AsError(err)
		w.Add(name, string(e.Code)+": "+parley.Shown(e.Message, maxWhy))
	}
	return v
}

// wantsText reports whether a pattern accepts only text. Text in the form of JSON stays text then.
func wantsText(p json.RawMessage) bool {
	var top struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(p, &top) == nil && top.Type == "string"
}
