package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/mailbox"
)

// give is how a form draws what is given in a field for something that the reader holds: how much of it, and a sentence with all that.
type give struct {
	Control string     // of the field; the names of the others begin with it
	Sent    url.Values // what was sent of them
	Given   *given     // nil before the reader has named something
}

// The names of the controls of a give, behind that of the field.
const (
	giveRead    = "-read"
	giveUntil   = "-until"
	giveUses    = "-uses"
	giveRate    = "-rate"
	giveIn      = "-in"
	giveBelow   = "-below"
	giveOnly    = "-only"
	giveMethods = "-methods"
	giveAsk     = "-ask"
	giveFolder  = "-folder" // that is made under the name, so that it can be given
)

// Typed returns what was sent of a control.
func (g give) Typed(name string) string { return g.Sent.Get(g.Control + name) }

// Untils returns the ends of a reference to choose from.
func (g give) Untils() []choice {
	all := endings(g.Typed(giveUntil))
	all[0].Label = "I revoke it"
	return all
}

// Ins returns the times of a rate to choose from.
func (g give) Ins() []choice {
	all := []choice{{Value: "60", Label: "a minute"}, {Value: "3600", Label: "an hour"}, {Value: "86400", Label: "a day"}}
	for i := range all {
		all[i].Chosen = all[i].Value == g.Typed(giveIn)
	}
	return all
}

// Methods returns the methods to choose from.
func (g give) Methods() []choice {
	all := make([]choice, len(mailbox.Methods))
	for i, m := range mailbox.Methods {
		all[i] = choice{Value: m, Label: m}
		for _, sent := range g.Sent[g.Control+giveMethods] {
			all[i].Chosen = all[i].Chosen || sent == m
		}
	}
	return all
}

// narrowing returns what a field is narrowed to, from now on. It refuses with INVALID_ANSWER what narrows nothing, or cannot be read.
func narrowing(control string, sent url.Values, now time.Time) (f capabilities.Facet, err error) {
	typed := func(name string) string { return strings.TrimSpace(sent.Get(control + name)) }
	number := func(name string) uint32 {
		if typed(name) == "" || err != nil {
			return 0
		}
		n, wrong := strconv.ParseUint(typed(name), 10, 32)
		if wrong != nil || n == 0 {
			err = parley.Refuse(parley.InvalidAnswer, "%s is not a number of uses", parley.Quoted(typed(name), 20))
		}
		return uint32(n)
	}
	if sent.Has(control + giveRead) {
		f.Mode = capabilities.ReadOnly
	}
	f.Uses, f.Ask, f.Below = number(giveUses), sent.Has(control+giveAsk), strings.Trim(typed(giveBelow), "/")
	if typed(giveBelow) != "" && f.Below == "" {
		return f, parley.Refuse(parley.InvalidAnswer, "a path is as in docs/plans")
	}
	f.Only = capabilities.WordsOf(strings.FieldsFunc(typed(giveOnly), func(r rune) bool { return r == ',' || r == ' ' })...)
	f.Methods = capabilities.WordsOf(sent[control+giveMethods]...)
	if uses := number(giveRate); uses > 0 {
		seconds, _ := strconv.ParseUint(typed(giveIn), 10, 32)
		f.Rate = capabilities.Rate{Uses: uses, Seconds: uint32(seconds)}
	}
	if text := typed(giveUntil); text != "" {
		after, wrong := time.ParseDuration(text)
		if wrong != nil || after <= 0 || after > maxLimit {
			return f, parley.Refuse(parley.InvalidAnswer, "%s is no time until which it can be given", parley.Quoted(text, 20))
		}
		f.Until = capabilities.At(now.Add(after))
	}
	if err == nil {
		err = f.Check()
	}
	return f, err
}

// narrowings returns what the fields of a plain HTML form are narrowed to.
func narrowings(fields []events.Field, sent url.Values) (map[string]capabilities.Facet, error) {
	var all map[string]capabilities.Facet
	for i, f := range fields {
		if drawnAs(f) != drawCapability || strings.TrimSpace(sent.Get(control(i))) == "" {
			continue
		}
		narrow, err := narrowing(control(i), sent, time.Now())
		if err != nil {
			return nil, &parley.Error{Code: parley.InvalidAnswer, Message: "the answer gives what it cannot", Fields: map[string]string{f.Name: parley.AsError(err).Message}}
		}
		if narrow.IsFull() {
			continue
		}
		if all == nil {
			all = map[string]capabilities.Facet{}
		}
		all[f.Name] = narrow
	}
	return all, nil
}

// given is what a field gives, as it is shown before it is sent.
type given struct {
	Says  string            // in a sentence; "" if nothing is given
	Kind  capabilities.Kind // of what is given
	Facet string            // what it is narrowed to, as JSON; "" for nothing
	Wrong string            // why it cannot be given
	Makes bool              // the reader has nothing of the name, and may make it
}

// givenBy returns what a field would give to whoever asked.
func givenBy(p *page, e view.Message, control string, sent url.Values) *given {
	name := strings.TrimSpace(sent.Get(control))
	if name == "" {
		return nil
	}
	held, err := heldBy(p, name)
	kind, f := held.Kind, capabilities.Facet{}
	if err == nil {
		f, err = narrowing(control, sent, time.Now())
	}
	all := held.Facet.Narrow(f)
	if err == nil {
		err = all.CheckFor(kind)
	}
	if err == nil && f.Ask && !held.Facet.Ask && held.Target.Node != p.agent.ID().Node {
		err = parley.Refuse(parley.InvalidAnswer, "only a giver on the resource's own node can be asked at each use")
	}
	if err != nil {
		wrong := api.Shown(err).Message
		unknown := parley.CodeOf(err) == parley.UnknownName
		if unknown {
			wrong = "You have nothing called " + parley.Quoted(strings.TrimSpace(sent.Get(control)), 80) // it may still be typed
		}
		return &given{Kind: kind, Wrong: sanitize.Line(wrong), Makes: unknown && mayMake(p)}
	}
	who := cmp.Or(e.Sender(), view.ShortID(e.From))
	words := all.Words(kind, readable)
	if kind == capabilities.KindAgent && all.IsFull() {
		words = "write to it and ask it"
	}
	g := &given{Kind: kind, Says: who + " gets the " + string(kind) + " " + name + ": " + words + ". You can revoke it under Rules and access."}
	if !f.IsFull() {
		text, err := json.Marshal(f)
		if err != nil {
			return &given{Kind: kind, Wrong: "This cannot be given"}
		}
		g.Facet = string(text)
	}
	return g
}

// heldBy returns what the reader holds under a name. Its facet has also the limits that the home of a resource has.
func heldBy(p *page, name string) (capabilities.Ref, error) {
	v, err := p.agent.Names().Show(p.ctx(), name, false)
	if err != nil {
		return capabilities.Ref{}, err
	}
	ref, ok := v.AsRef()
	if !ok {
		return ref, parley.Refuse(parley.InvalidAnswer, "%s is nothing that can be given so", parley.Quoted(name, 80))
	}
	if !ref.Kind.IsResource() {
		return ref, nil
	}
	u, err := api.Invoke.Do(p.ctx(), p, api.InvokeRequest{Acting: api.Acting{As: p.as}, Name: name})
	if err == nil && u.Holds != nil {
		ref.Facet = u.Holds.Facet
	}
	return ref, err
}

// mayMake reports whether the reader may make folders of the node.
func mayMake(p *page) bool {
	return p.as == "" && p.principal.IsHost() && p.principal.May(api.Operation{Name: string(api.MakeResource), Scope: api.ScopeAdmin}) == nil
}

// makeGiven makes a folder of the name that a field has, and draws what the form would give then.
func makeGiven(p *page, e view.Message, sent url.Values, show func(*refusedAnswer) error) error {
	for i, f := range e.Fields {
		folder := strings.TrimSpace(sent.Get(control(i) + giveFolder))
		if !e.AnswerNeeded || drawnAs(f) != drawCapability || folder == "" {
			continue
		}
		err := api.MakeResource.Run(p.ctx(), p, api.MakeResourceRequest{Kind: capabilities.KindFolder, Name: strings.TrimSpace(sent.Get(control(i))), Folder: folder})
		switch {
		case err == nil:
			return showGiven(p, e, sent, show)
		case p.pane() == "give":
			return p.render(http.StatusOK, "given", &given{Wrong: sanitize.Line(strings.TrimSuffix(api.Shown(err).Message, ".")), Makes: true})
		}
		return show(&refusedAnswer{Texts: readTexts(e.Fields, sent), Sent: sent, Wrong: api.Shown(err).Message})
	}
	return showGiven(p, e, sent, show)
}

// showGiven draws what a form would give: the sentence of one field for a script, or the page.
func showGiven(p *page, e view.Message, sent url.Values, show func(*refusedAnswer) error) error {
	if !e.AnswerNeeded {
		return parley.Refuse(parley.InvalidArgument, "the form is not open")
	}
	if p.pane() != "give" {
		return show(&refusedAnswer{Texts: readTexts(e.Fields, sent), Sent: sent})
	}
	for i, f := range e.Fields {
		if drawnAs(f) == drawCapability && sent.Has(control(i)) {
			return p.render(http.StatusOK, "given", givenBy(p, e, control(i), sent))
		}
	}
	return parley.Refuse(parley.InvalidArgument, "the form has no such field")
}
