package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/gateway/web"
)

// formsPath, with a number or an ID behind it, is one message on a page of its own. It needs no script.
const formsPath = "/forms/"

// maxPlainForm bounds what a plain HTML form may send: an answer, with every byte of it written as three.
const maxPlainForm = 4 * api.MaxBody

// form shows one message, and takes what its plain HTML form sends.
func (v *viewing) form() error {
	ref, err := api.RefTo(strings.TrimPrefix(v.r.URL.Path, formsPath)).Parse()
	if err != nil {
		return err
	}
	if v.r.Method == http.MethodPost {
		return v.take(ref)
	}
	if err := v.readsOnly(); err != nil {
		return err
	}
	return v.showForm(ref, http.StatusOK, nil)
}

func (v *viewing) showForm(ref capabilities.FormRef, status int, t *web.Tried) error {
	ctx := v.r.Context()
	e, err := v.agent.Message(ctx, ref)
	if err != nil {
		return err
	}
	c := v.s.card(ctx, local{v.as, v.agent}, e, t)
	f := web.Layout{Title: sanitize.Line(c.Heading()), Main: c}
	if f.Title == "" {
		f.Title = "Message"
	}
	return v.show(status, "form.html", f)
}

// take does what a plain HTML form asks for, and shows how it went.
func (v *viewing) take(ref capabilities.FormRef) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxPlainForm)
	if err := v.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	sent := v.r.PostForm
	e, err := v.agent.Message(v.r.Context(), ref)
	if err != nil {
		return err
	}
	t := &web.Tried{Texts: web.Texts(e.Fields, sent)}
	if err := v.act(ref, sent, t); err != nil {
		shown := api.Shown(err)
		t.Wrong, t.Fields = shown.Message, shown.Fields
		return v.showForm(ref, api.HTTPStatus(shown.Code), t)
	}
	there := url.URL{Path: v.s.pagePrefix(v.r.Context()) + v.r.URL.Path}
	if sent.Get("do") == "dismiss" {
		there.Path = v.s.pagePrefix(v.r.Context()) + "/"
	}
	if v.as != "" {
		there.RawQuery = url.Values{"as": {v.as}}.Encode()
	}
	http.Redirect(v.w, v.r, there.String(), http.StatusSeeOther)
	return nil
}

// act performs what a form's button stands for.
func (v *viewing) act(ref capabilities.FormRef, sent url.Values, t *web.Tried) error {
	ctx := v.r.Context()
	what := sent.Get("do")
	if what == "" {
		what = "answer"
	}
	operation, request := v.operationOf(what, api.RefTo(ref.String()), sent, t)
	o, known := v.s.backend.Operations()[operation]
	if !known {
		return parley.Refuse(parley.InvalidArgument, "nothing is known of %.40q", what)
	}
	p := v.s.caller(ctx)
	if err := p.May(o); err != nil {
		return err
	}
	_, err := v.s.backend.Call(ctx, p, operation, api.Typed{Value: request})
	return err
}

// operationOf returns the operation that a button stands for, "" for none, and its request.
func (v *viewing) operationOf(what string, which api.FormRef, sent url.Values, t *web.Tried) (operation string, request any) {
	as := api.Acting{As: v.as}
	switch what {
	case "answer":
		return "respond_form", api.RespondFormRequest{Acting: as, FormRef: which, Texts: t.Texts}
	case "decline":
		return "decline_form", api.EndRequest{Acting: as, FormRef: which, Reason: sent.Get("reason")}
	case "cancel":
		return "cancel_form", api.EndRequest{Acting: as, FormRef: which, Reason: sent.Get("reason")}
	case "forward":
		return "forward_form", api.ForwardFormRequest{Acting: as, FormRef: which, Recipient: sent.Get("to")}
	case "dismiss":
		return "dismiss", api.MessageRequest{Acting: as, FormRef: which}
	case "adopt":
		return "adopt", api.AdoptRequest{Acting: as, FormRef: which, Edge: sent.Get("edge"), Name: sent.Get("name")}
	case "reply":
		return "reply", api.ReplyRequest{Acting: as, FormRef: which, Text: sent.Get("text")}
	}
	return "", nil
}

// previewPath shows a form that nobody has sent yet: whoever builds it sees what its recipient will.
const previewPath = "/preview"

// preview draws the form of a FormRequest. It refuses what is wrong with the fields as sending them would; to whom the
// form goes, and until when, is looked at when it is sent.
func (v *viewing) preview() error {
	if v.r.Method != http.MethodPost {
		v.w.Header().Set("Allow", http.MethodPost)
		return parley.Refuse(parley.InvalidArgument, "a form is shown with POST")
	}
	if err := api.CheckBody(v.body); err != nil {
		return err
	}
	var r api.FormRequest
	if err := api.Decode(v.body, &r); err != nil {
		return err
	}
	fields, err := v.agent.Compile(r)
	if err != nil {
		return err
	}
	const key = "preview"
	return v.render(http.StatusOK, "message", web.Card{
		Message: view.Message{
			Type: "form", From: v.agent.ID(), Title: r.Title, Description: r.Description, Fields: fields,
			Deadline: r.Deadline, NoForward: r.NoForward, AnswerNeeded: true,
		},
		Base: v.s.pagePrefix(v.r.Context()), Key: key, Status: view.StatusOpen, Widgets: web.DrawFields(key, fields, nil),
	})
}
