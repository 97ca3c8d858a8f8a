package web

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
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

// FormsPath, with a number or an ID behind it, is the address of the page of one message. The page needs no script.
const FormsPath = api.FormsPath

// maxPlainForm bounds what a plain HTML form may send: an answer, with every byte of it written as three.
const maxPlainForm = 4 * api.MaxBody

// form shows one message, or takes the data of its plain HTML form.
func (p *page) form() error {
	ref, err := api.RefTo(strings.TrimPrefix(p.r.URL.Path, FormsPath)).Parse()
	if err != nil {
		return err
	}
	if p.r.Method == http.MethodPost {
		return p.takeForm(ref)
	}
	if err := p.readsOnly(); err != nil {
		return err
	}
	if digest := p.r.URL.Query().Get("file"); digest != "" {
		return download(p, api.RefTo(strings.TrimPrefix(p.r.URL.Path, FormsPath)), digest)
	}
	if p.r.URL.Query().Get("proof") != "" {
		return proofOf(p, api.RefTo(strings.TrimPrefix(p.r.URL.Path, FormsPath)))
	}
	return p.showForm(ref, http.StatusOK, nil)
}

func (p *page) showForm(ref capabilities.FormRef, status int, t *refusedAnswer) error {
	e, err := p.agent.Message(p.ctx(), ref)
	if parley.CodeOf(err) == parley.Archived {
		e, err = p.archived(ref, err)
	}
	if err != nil {
		return err
	}
	c := p.card(p.ctx(), local{p.as, p.agent}, e, t)
	if isLike(p) {
		addSimilar(p, p.ctx(), local{p.as, p.agent}, &c)
	}
	addThread(p, p.ctx(), local{p.as, p.agent}, &c)
	addSigned(p, p.ctx(), local{p.as, p.agent}, &c)
	if c.Approval != nil {
		c.Approval.whole()
		p.tryRules(&c)
	}
	c.Tools = c.Received
	f := layout{Title: sanitize.Line(headlineOf(c)), Main: c, Alone: true}
	if f.Title == "" {
		f.Title = "Message"
	}
	if p.pane() == "" {
		l, err := p.list(queryIn(p.r.URL.Query().Get("in"), p.as), "", nil)
		if err != nil {
			return err
		}
		for i := range l.Rows {
			l.Rows[i].Current = l.Rows[i].Has(c.Key)
		}
		f.List = &l
		c.Near = l.stepsIn(c.Key)
		f.Main = c
	}
	return p.show(status, "mail.html", f)
}

// isLike reports whether the address is that of an open call with the similar ones.
func isLike(p *page) bool { return p.r.URL.Query().Has("like") }

// archived returns a message as a list has it. Its content is in a segment of the archive that is elsewhere. That list
// knows it by its number alone; for another reference it returns the error.
func (p *page) archived(ref capabilities.FormRef, refused error) (view.Message, error) {
	number, err := strconv.ParseUint(ref.String(), 10, 64)
	if err != nil {
		return view.Message{}, refused
	}
	in, err := p.agent.Mail().Last(p.ctx(), view.MessageFilter{All: true}, number+1, 1)
	if err != nil || len(in.Messages) == 0 || in.Messages[0].Number != number || in.Messages[0].Archived == nil {
		return view.Message{}, refused
	}
	return in.Messages[0], nil
}

// takeForm performs the operation that a plain HTML form asks for. It redirects to the page that shows the result, or
// shows the form again with the error.
func (p *page) takeForm(ref capabilities.FormRef) error {
	p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
	e, err := p.agent.Message(p.ctx(), ref)
	if err != nil {
		return err
	}
	if kind, _, _ := mime.ParseMediaType(p.r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		if err := takeUploads(p, e.Fields); err != nil {
			return err
		}
	} else if err := p.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	sent := p.r.PostForm
	do := p.r.URL.Query().Get("do")
	show := func(t *refusedAnswer) error { return p.showForm(ref, http.StatusOK, t) }
	if do == "show" {
		return showEdited(p, e, sent, show)
	}
	if do == "give" || sent.Get("do") == "give" {
		return showGiven(p, e, sent, show)
	}
	if do == "make" || sent.Get("do") == "make" {
		return makeGiven(p, e, sent, show)
	}
	if do == "leave" || sent.Get("do") == "leave" {
		return showLeave(p, e, sent, show)
	}
	t := &refusedAnswer{Texts: readTexts(e.Fields, sent), Sent: sent}
	wasShown := false // and what is edited is allowed in one step
	if do == "edited" && e.Permission != nil && e.AnswerNeeded {
		input := editOf(e, sent)
		d := newEdited(e, input)
		if wasShown = d.Digest == sent.Get("shown"); d.Wrong == "" && !wasShown {
			return showEdited(p, e, sent, show)
		}
		for i := range t.Texts {
			if t.Texts[i].Name == "input" {
				t.Texts[i].Text = input
			}
		}
	}
	if !wasShown && isUnsure(e, sent) {
		http.Redirect(p.w, p.r, there(p, "allow"), http.StatusSeeOther)
		return nil
	}
	if err := p.act(e, ref, sent, t.Texts); err != nil {
		shown := api.Shown(err)
		if t.Wrong, t.Fields = shown.Message, shown.Fields; shown.Code == parley.Amended {
			t.Wrong = amendedMeanwhile
		}
		return p.showForm(ref, api.HTTPStatus(shown.Code), t)
	}
	next := there(p, "")
	if sent.Get("do") == "dismiss" {
		next = p.base + listQuery{View: allMail, As: p.as}.Address()
	}
	http.Redirect(p.w, p.r, next, http.StatusSeeOther)
	return nil
}

// there returns the address of the message of the request, with a part of its bar open; "" for none.
func there(p *page, do string) string {
	q := url.Values{}
	for key, text := range map[string]string{"as": p.as, "in": p.r.URL.Query().Get("in"), "like": p.r.URL.Query().Get("like"), "do": do} {
		if text != "" {
			q.Set(key, text)
		}
	}
	at := url.URL{Path: p.base + p.r.URL.Path, RawQuery: q.Encode()}
	return at.String()
}

// isUnsure reports whether a plain HTML form allows a call of high risk by its first step.
func isUnsure(e view.Message, sent url.Values) bool {
	if e.Permission == nil || !e.AnswerNeeded || sent.Has("sure") || sent.Get("do") != "" {
		return false
	}
	at := slices.IndexFunc(e.Fields, func(f events.Field) bool { return f.Name == "decision" })
	return at >= 0 && sent.Get(control(at)) == mailbox.Once && newApproval(e).IsHigh()
}

// amendedMeanwhile says AMENDED in plain words.
const amendedMeanwhile = "Not sent: the question was changed while you answered. Look at what it asks now, and answer again."

// act performs the operation of the button that was pressed at a message.
func (p *page) act(e view.Message, ref capabilities.FormRef, sent url.Values, texts []events.FieldText) error {
	button := sent.Get("do")
	if button == "" {
		button = "answer"
	}
	if e.Type == string(events.Approval) {
		var err error
		if texts, err = apt(texts, p.r.URL.Query().Get("do")); err != nil {
			return err
		}
	}
	if button == "together" && sent.Get("decision") != mailbox.Deny {
		return errNotShown
	}
	as, which := api.Acting{As: p.as}, api.RefTo(ref.String())
	switch button {
	case "answer":
		return p.answer(e, answerTo(as, which, sent, texts), sent)
	case "together":
		return decideMany(p.ctx(), p, decisionsOf(as, sent))
	case "amend":
		return api.AmendForm.Run(p.ctx(), p, amendmentOf(e, as, which, sent))
	}
	act := actOf(button, as, which, sent)
	if act == nil {
		return errNoButton(button)
	}
	return act(p.ctx(), p)
}

// answer answers a form, and with it the calls that the page has selected.
func (p *page) answer(e view.Message, r api.RespondFormRequest, sent url.Values) (err error) {
	if r.Narrow, err = narrowings(e.Fields, sent); err != nil {
		return err
	}
	if p.r.URL.Query().Get("do") == "allow-leave" {
		if r, err = leaveAnswer(e, r, sent); err != nil {
			return err
		}
		return api.RespondForm.Run(p.ctx(), p, r)
	}
	if several := decisionsLike(e, r.Acting, sent, r.Texts); len(several.Decisions) > 1 || isLike(p) {
		if err := p.checkShown(e, several.Decisions); err != nil {
			return err
		}
		return decideMany(p.ctx(), p, several)
	}
	return api.RespondForm.Run(p.ctx(), p, r)
}

// decideMany decides several calls. It fails if one of them does.
func decideMany(ctx context.Context, c api.Client, r api.DecideManyRequest) error {
	got, err := api.DecideMany.Do(ctx, c, r)
	if err != nil {
		return err
	}
	return undecided(got)
}

func errNoButton(button string) error {
	return parley.Refuse(parley.InvalidArgument, "nothing is known of %.40q", button)
}

// checkShown refuses decisions on calls that the page of a message does not show: others than the same, and those that are one
// row with it.
func (p *page) checkShown(e view.Message, decisions []parley.Decision) error {
	if len(decisions) == 0 {
		return parley.Refuse(parley.InvalidArgument, "no call is selected")
	}
	var similar []view.Message
	if isLike(p) {
		similar = p.similarTo(p.ctx(), local{p.as, p.agent}, e)
	}
	for _, d := range decisions {
		if slices.ContainsFunc(similar, func(m view.Message) bool { return m.MessageID == d.Form }) {
			continue
		}
		if o, err := p.agent.Message(p.ctx(), capabilities.FormID(d.Form)); err != nil || o.Permission == nil || !o.Permission.IsSameCall(e.Permission) {
			return errNotShown
		}
	}
	return nil
}

// amendmentOf returns the changed question of a plain HTML form. It has fields only if a label has changed.
func amendmentOf(e view.Message, as api.Acting, which api.FormRef, sent url.Values) api.AmendFormRequest {
	title, description := sent.Get("title"), strings.ReplaceAll(sent.Get("description"), "\r\n", "\n")
	r := api.AmendFormRequest{Acting: as, FormRef: which, Amendment: parley.Amendment{Title: &title, Description: &description, Note: sent.Get("note")}}
	fields, changed := slices.Clone(e.Fields), false
	for i, label := range sent["label"][:min(len(sent["label"]), len(fields))] {
		if f := &fields[i]; label != cmp.Or(f.Label, f.Name) {
			f.Label, changed = label, true
		}
	}
	if changed {
		r.Fields = fields
	}
	return r
}

// undecided returns an error for the decisions of several that were refused; nil if none was.
func undecided(r api.DecideManyResponse) error {
	var first *parley.Error
	count := 0
	for _, d := range r.Results {
		if d.Error != nil {
			if count++; first == nil {
				first = d.Error
			}
		}
	}
	if first == nil {
		return nil
	}
	return parley.Refuse(first.Code, "%d of %d calls were not decided, the first because %s", count, len(r.Results), first.Message)
}

// errNotShown refuses to allow calls of which a plain HTML form shows a line at most.
var errNotShown = parley.Refuse(parley.InvalidArgument, "a call is allowed where the whole of it is shown").
	WithHint("open each call, and allow it there; several are denied at once")

// apt returns the answer to an approval without what its decision does not take: a denial takes no input to allow
// instead, and what is allowed takes no reason. The reason was begun for a denial. The button of the edit names its part in the
// address; no other button sends it.
func apt(texts []events.FieldText, part string) ([]events.FieldText, error) {
	texts = slices.Clone(texts)
	denies := slices.ContainsFunc(texts, func(t events.FieldText) bool {
		return t.Name == "decision" && (t.Text == mailbox.Deny || t.Text == mailbox.Never)
	})
	for i := range texts {
		switch t := &texts[i]; {
		case t.Name == "reason" && !denies:
			t.Text = ""
		case t.Name == "input" && part == "edited" && !denies && strings.TrimSpace(t.Text) == "":
			return nil, &parley.Error{Code: parley.InvalidAnswer, Message: "the input to allow instead is empty", Fields: map[string]string{"input": emptyEdit}}
		case t.Name == "input" && part != "edited":
			t.Text = ""
		}
	}
	return texts, nil
}

// decisionsOf returns the decisions about the calls that a plain HTML form names, each by its ID and digest.
func decisionsOf(as api.Acting, sent url.Values) api.DecideManyRequest {
	r := api.DecideManyRequest{Acting: as}
	for _, named := range sent["of"] {
		id, digest, _ := strings.Cut(named, " ")
		form, err := capabilities.ParseID(id)
		if err != nil {
			continue // no page has such a name
		}
		r.Decisions = append(r.Decisions, parley.Decision{Form: form, Digest: digest, Decision: sent.Get("decision"), Reason: sent.Get("reason")})
	}
	return r
}

// decisionsLike returns the decision on a call, and the same on the others that the plain HTML form names. Only one makes a rule:
// the call itself, or the first if it is not among them. There are none for a call that is allowed with another input.
func decisionsLike(e view.Message, as api.Acting, sent url.Values, texts []events.FieldText) api.DecideManyRequest {
	said := map[string]string{}
	for _, t := range texts {
		said[t.Name] = t.Text
	}
	if e.Type != string(events.Approval) || said["input"] != "" && said["input"] != e.Description {
		return api.DecideManyRequest{}
	}
	r := decisionsOf(as, sent)
	maker := max(slices.IndexFunc(r.Decisions, func(d parley.Decision) bool { return d.Form == e.MessageID }), 0)
	for i := range r.Decisions {
		d := &r.Decisions[i]
		d.Reason, d.Decision = said["reason"], said["decision"]
		switch {
		case i == maker:
			d.Rule, d.Until = said["rule"], said["until"]
			if d.Decision == mailbox.Once || d.Decision == mailbox.Deny {
				d.Rule, d.Until = "", ""
			}
		case d.Decision == mailbox.Always:
			d.Decision = mailbox.Once
		case d.Decision == mailbox.Never:
			d.Decision = mailbox.Deny
		}
	}
	return r
}

// maxSnooze bounds the hours for which the page snoozes a message.
const maxSnooze = 24 * 366

// answerTo returns the answer of a plain HTML form.
func answerTo(as api.Acting, which api.FormRef, sent url.Values, texts []events.FieldText) api.RespondFormRequest {
	return api.RespondFormRequest{Acting: as, FormRef: which, Answer: parley.Answer{Revision: revisionOf(sent), Texts: texts}}
}

// revisionOf returns the revision of the form that was shown; 0, which is the present one, for pages without it.
func revisionOf(sent url.Values) uint64 {
	n, _ := strconv.ParseUint(sent.Get("revision"), 10, 64)
	return n
}

// snoozeOf returns the time until which a button snoozes a message, if it is such a button.
func snoozeOf(button string) (until capabilities.Time, ok bool) {
	hours, ok := strings.CutPrefix(button, "snooze-")
	n, err := strconv.Atoi(hours)
	if !ok || err != nil || n < 1 || n > maxSnooze {
		return 0, false
	}
	return capabilities.At(time.Now().Add(time.Duration(n) * time.Hour)), true
}

// actOf returns what a button does with a message beside answering it; nil for an unknown one.
func actOf(button string, as api.Acting, which api.FormRef, sent url.Values) api.Act {
	if until, ok := snoozeOf(button); ok {
		return api.Snooze.With(api.SnoozeRequest{Acting: as, FormRef: which, Until: until})
	}
	switch button {
	case "decline":
		return api.DeclineForm.With(api.DeclineRequest{Acting: as, FormRef: which, Revision: revisionOf(sent), Reason: sent.Get("reason")})
	case "cancel":
		return api.CancelForm.With(api.EndRequest{Acting: as, FormRef: which, Reason: sent.Get("reason")})
	case "withdraw":
		return api.WithdrawVote.With(api.MessageRequest{Acting: as, FormRef: which})
	case "claim", "release", "take-over":
		return api.ClaimForm.With(api.ClaimFormRequest{Acting: as, FormRef: which, Release: button == "release", TakeOver: button == "take-over"})
	case "forward":
		return api.ForwardForm.With(api.ForwardFormRequest{Acting: as, FormRef: which, Recipient: sent.Get("to")})
	case "rule":
		r := api.MakeRuleRequest{Acting: as, Agent: sent.Get("agent"), Offer: sent.Get("offer"), Never: sent.Has("never")}
		r.Form, _ = capabilities.ParseID(sent.Get("form"))
		if after, err := time.ParseDuration(sent.Get("until")); err == nil && after > 0 && after <= maxLimit {
			r.Until = capabilities.At(time.Now().Add(after))
		} else if sent.Get("until") != "" {
			return nil
		}
		return api.MakeRule.With(r)
	case "restore":
		return api.RestoreMessage.With(api.MessageRequest{Acting: as, FormRef: which})
	case "wake":
		return api.Snooze.With(api.SnoozeRequest{Acting: as, FormRef: which})
	case "dismiss":
		return api.Dismiss.With(api.MessageRequest{Acting: as, FormRef: which})
	case "adopt":
		return api.Adopt.With(api.AdoptRequest{Acting: as, FormRef: which, Edge: sent.Get("edge"), Name: sent.Get("name")})
	case "asked":
		return api.Reply.With(api.ReplyRequest{Acting: as, FormRef: which, Post: parley.Post{Text: sent.Get("question")}})
	case "reply":
		return api.Reply.With(api.ReplyRequest{Acting: as, FormRef: which, Post: parley.Post{Text: sent.Get("text")}})
	}
	return nil
}

// PreviewPath is the address that draws a form before it is sent, as its recipient will see it.
const PreviewPath = "/preview"

// preview draws the form of a FormRequest. It refuses fields as sending the form would. It does not look at the
// recipient and the deadline.
func (p *page) preview() error {
	if p.r.Method != http.MethodPost {
		p.w.Header().Set("Allow", http.MethodPost)
		return parley.Refuse(parley.InvalidArgument, "a form is shown with POST")
	}
	if err := api.CheckBody(p.body); err != nil {
		return err
	}
	var r api.FormRequest
	if err := api.Decode(p.body, &r); err != nil {
		return err
	}
	fields, err := p.agent.Compile(r.Fields)
	if err != nil {
		return err
	}
	const key = "preview"
	return p.render(http.StatusOK, "message", card{
		Message: view.Message{
			Type: "form", From: p.agent.ID(), Title: r.Title, Description: r.Description, Fields: fields,
			Deadline: r.Deadline, NoForward: r.NoForward, AnswerNeeded: true,
		},
		Base: p.base, Key: key, Status: view.StatusOpen, Widgets: drawFields(key, fields, nil),
	})
}
