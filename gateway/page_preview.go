package gateway

import (
	"net/http"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/web"
	"parley/mailbox/form"
)

// previewPath shows a form that nobody has sent yet: whoever builds it sees what its recipient will.
const previewPath = "/preview"

// preview draws the form of a FormRequest. It refuses what is wrong with the fields as sending them would; to whom the
// form goes, and until when, is looked at when it is sent.
func (v *viewing) preview() error {
	if v.r.Method != http.MethodPost {
		v.w.Header().Set("Allow", http.MethodPost)
		return parley.Refuse(parley.InvalidArgument, "a form is shown with POST")
	}
	if err := checkBody(v.body); err != nil {
		return err
	}
	var r api.FormRequest
	if err := decode(v.body, &r); err != nil {
		return err
	}
	fields, err := r.Fields.List(form.ParseFields)
	if err != nil {
		return err
	}
	contract, err := v.agent.Compile(fields)
	if err != nil {
		return err
	}
	const key = "preview"
	return v.render(http.StatusOK, "message", web.Card{
		Message: view.Message{
			Type: "form", From: v.agent.ID(), Title: r.Title, Description: r.Description, Fields: contract.Fields(),
			Deadline: r.Deadline, NoForward: r.NoForward, AnswerNeeded: true,
		},
		Base: pagePrefix(v.r.Context()), Key: key, Status: view.StatusOpen, Widgets: web.DrawFields(key, contract.Fields(), nil),
	})
}
