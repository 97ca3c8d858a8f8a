package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/capabilities"
	"parley/cmd/parley/terminal"
)

// line is a message as the inbox shows it: one line, whatever is in it.
func (e *envelope) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d. ", e.Number)
	if e.Sent {
		b.WriteString("you " + e.verb(e.preposition()+" "+party(e.ToName, e.To)))
	} else {
		b.WriteString(party(e.FromName, e.From) + " " + e.verb(""))
	}
	if !e.Forwarder.IsZero() {
		b.WriteString(" forwarded by " + party(e.ForwardName, e.Forwarder))
	}
	if len(e.ForwardedTo) > 0 {
		to := make([]string, len(e.ForwardedTo))
		for i, f := range e.ForwardedTo {
			to[i] = party(f.Name, f.ID)
		}
		b.WriteString(" forwarded to " + strings.Join(to, ", "))
	}
	fmt.Fprintf(&b, " at %q", e.Date)
	if e.Dismissed {
		b.WriteString(" (dismissed)")
	}
	if e.Outcome != nil {
		b.WriteString(" - " + e.Outcome.end())
	}
	switch {
	case e.Queued:
		b.WriteString(" - queued")
	case e.Interrupted:
		b.WriteString(" - interrupted")
	case e.Answering:
		b.WriteString(" - answering")
	case e.Refused != "":
		b.WriteString(" - refused: " + terminal.Visible(e.Refused))
	}
	return b.String()
}

// verb says what was done, with whom where it was done by the agent itself.
func (e *envelope) verb(with string) string {
	var words []string
	switch e.Type {
	case "form":
		words = []string{"sent form", terminal.Quoted(cmp.Or(e.Description, e.Title)), with, "(fields: " + e.fieldNames() + ")"}
	case "request":
		words = []string{"requested", terminal.Quoted(e.Description), with}
	case approvalType:
		words = []string{"asked to call", terminal.Quoted(e.Title), with, "(input: " + terminal.Visible(e.Description) + ")"}
	default:
		words = []string{"sent", terminal.Quoted(e.Text), with}
		if !e.ReplyTo.IsZero() {
			words[0] = "replied"
			words = append(words, "in reply to "+e.repliedTo())
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

func (e *envelope) preposition() string {
	switch e.Type {
	case "request":
		return "of"
	case approvalType:
		return "from"
	}
	return "to"
}

func (e *envelope) repliedTo() string {
	if e.ReplyNumber != nil {
		return fmt.Sprintf("#%d", *e.ReplyNumber)
	}
	return terminal.Quoted(e.ReplyTo.String())
}

func (e *envelope) fieldNames() string {
	names := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		names[i] = terminal.Visible(f.Name)
	}
	return strings.Join(names, ", ")
}

// end says how a form ended.
func (o *outcome) end() string {
	var text string
	switch {
	case o.By.IsZero():
		text = fmt.Sprintf("%s at %q", o.Status, o.At)
	default:
		text = fmt.Sprintf("%s by %s at %q", o.Status, party(o.ByName, o.By), o.At)
	}
	if o.Note != "" {
		text += ": " + terminal.Visible(o.Note)
	}
	return text
}

// party shows another agent by its name, or by its ID: never by nothing.
func party(name string, id capabilities.ID) string {
	if name == "" {
		name = id.String()
	}
	return terminal.Quoted(name)
}

// sorted gives what is in a record by name.
func sorted(record map[string]json.RawMessage) []named {
	list := make([]named, 0, len(record))
	for _, name := range slices.Sorted(maps.Keys(record)) {
		list = append(list, named{name, record[name]})
	}
	return list
}
