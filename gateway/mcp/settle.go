package mcp

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// end performs an operation that ends a form, and returns the outcome.
func end[R any](ctx context.Context, c *call, o api.Op[R, view.Outcome], request R) (any, error) {
	got, err := o.Do(ctx, c.agent, request)
	if err != nil {
		return nil, err
	}
	return endingOf(&got, got.Form.String()), nil
}

// asked returns the form that a tool settles, and its fields. It refuses forms from the agent to the person at the client, which the agent
// must not settle itself.
func (c *call) asked(ctx context.Context, form api.RefText) (ref api.FormRef, fields []events.Field, err error) {
	if form == "" {
		return ref, nil, parley.Refuse(parley.InvalidArgument, "which form? give its number or handle")
	}
	m, err := c.message(ctx, string(form))
	if err != nil {
		return ref, nil, err
	}
	if isForClient(m) {
		return ref, nil, parley.Refuse(parley.NotPermitted, "form %d is for the person at the client", m.Number).WithHint("await_answer waits for them")
	}
	return api.RefTo(m.MessageID.String()), m.Fields, nil
}

// answerForm answers a form that the agent received.
func answerForm(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Form   api.RefText                   `json:"form"`
		Values values                        `json:"values"`
		Shown  uint64                        `json:"revision"`
		Narrow map[string]capabilities.Facet `json:"narrow"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	form, fields, err := c.asked(ctx, arguments.Form)
	if err != nil {
		return nil, err
	}
	readValues(fields, arguments.Values)
	return end(ctx, c, api.RespondForm, api.RespondFormRequest{FormRef: form, Answer: parley.Answer{Revision: arguments.Shown, Values: arguments.Values, Narrow: arguments.Narrow}})
}

// ends has the arguments of the tools that end a form without an answer.
type ends struct {
	Form   api.RefText `json:"form"`
	Reason string      `json:"reason"`
}

// declineForm declines a form that the agent received.
func declineForm(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		ends
		Shown uint64 `json:"revision"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	form, _, err := c.asked(ctx, arguments.Form)
	if err != nil {
		return nil, err
	}
	return end(ctx, c, api.DeclineForm, api.DeclineRequest{FormRef: form, Revision: arguments.Shown, Reason: arguments.Reason})
}

// claimForm has the agent be on a form that others may answer too.
func claimForm(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Form     api.RefText `json:"form"`
		Minutes  *int64      `json:"minutes"`
		Release  bool        `json:"release"`
		TakeOver bool        `json:"takeOver"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	form, _, err := c.asked(ctx, arguments.Form)
	if err != nil {
		return nil, err
	}
	r := api.ClaimFormRequest{FormRef: form, Release: arguments.Release, TakeOver: arguments.TakeOver}
	if m := arguments.Minutes; m != nil {
		ms := min(max(*m, 0), 24*60+1) * 60_000
		r.ForMs = &ms
	}
	got, err := api.ClaimForm.Do(ctx, c.agent, r)
	if err != nil {
		return nil, err
	}
	words := "nobody is on it"
	switch {
	case got.Queued:
		words = "stored, and on its way to another node"
	case got.Claim != nil:
		words = claimWords(got.Claim)
	}
	return struct {
		Form  uint64 `json:"form"`
		Claim string `json:"claim"`
	}{got.Number, words}, nil
}

// cancelForm cancels a form that the agent sent.
func cancelForm(ctx context.Context, c *call) (any, error) {
	var arguments ends
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	if arguments.Form == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "which form? give its number or handle")
	}
	return end(ctx, c, api.CancelForm, api.EndRequest{FormRef: api.RefTo(string(arguments.Form)), Reason: arguments.Reason})
}

// withdraw cancels the form that a cancelled call has asked. The form may have ended already.
func (c *call) withdraw() {
	ctx, cancel := context.WithTimeout(c.life, patience)
	defer cancel()
	request := api.EndRequest{FormRef: api.RefTo(c.sent), Reason: "the client cancelled its call"}
	if err := api.CancelForm.Run(ctx, steady{c.agent}, request); err != nil {
		c.options.Log.Debug("the form of a cancelled call was not withdrawn", slog.Any("error", err))
	}
}

// sent is a message that was sent, and what is known of it now.
type sent struct {
	view.Sent
	Known string `json:"known"`

	Recipients string `json:"recipients,omitempty"` // in words
	NotTo      string `json:"notTo,omitempty"`
}

// sendMessage sends a message or a reply.
func sendMessage(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Recipient  string      `json:"recipient"`
		Recipients []string    `json:"recipients"`
		ReplyTo    api.RefText `json:"replyTo"`
		All        bool        `json:"all"`
		parley.Post
		AckBy  later      `json:"ackBy"`
		At     later      `json:"at"`
		Every  string     `json:"every"`
		Attach []attached `json:"attach"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	arguments.Post.AckBy = capabilities.Time(arguments.AckBy)
	if to := arguments.Recipient != "" || len(arguments.Recipients) > 0; to == (arguments.ReplyTo != "") {
		return nil, parley.Refuse(parley.InvalidArgument, "give either a recipient or what it replies to")
	}
	if err := attach(ctx, c, arguments.Attach, &arguments.Post); err != nil {
		return nil, err
	}
	if arguments.At != 0 || arguments.Every != "" {
		return scheduleMessage(ctx, c, api.ScheduleRequest{Recipient: arguments.Recipient, Recipients: arguments.Recipients, Post: arguments.Post, At: capabilities.Time(arguments.At), Every: arguments.Every})
	}
	s := sent{Known: "stored, and on its way; not yet shown"}
	var err error
	if arguments.ReplyTo == "" {
		s.Sent, err = api.Send.Do(ctx, c.agent, api.SendRequest{Recipient: arguments.Recipient, Recipients: arguments.Recipients, Post: arguments.Post})
	} else {
		s.Sent, err = api.Reply.Do(ctx, c.agent, api.ReplyRequest{FormRef: api.RefTo(string(arguments.ReplyTo)), All: arguments.All, Post: arguments.Post})
	}
	if err != nil {
		return nil, err
	}
	if s.Queued {
		s.Known = "stored; the recipient works: it is queued until the turn ends"
	}
	if s.Promised != nil {
		s.Known = "stored; it " + sanitize.Line(s.Promised.Words()) + ", and goes on, or ends, with that"
	}
	if lines := absentWords(s.Sent.Absent); lines != "" {
		s.Known, s.Sent.Absent = "stored; "+lines, nil
	}
	s.Recipients, s.NotTo = recipientWords(s.Sent.Recipients), recipientWords(s.Sent.NotTo)
	return &s, nil
}

// later is a time that a model gives: a moment or, as a model has no clock, how long it is until then, as 10m, 2h or 3d.
type later capabilities.Time

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *later) UnmarshalText(text []byte) error {
	words, unit := string(text), time.Duration(1)
	if days, ok := strings.CutSuffix(words, "d"); ok {
		words, unit = days+"h", 24
	}
	if d, err := time.ParseDuration(words); err == nil && d >= 0 && d <= longestLater/unit {
		*l = later(capabilities.At(time.Now().Add(unit * d)))
		return nil
	}
	if err := (*capabilities.Time)(l).UnmarshalText(text); err != nil {
		return parley.Refuse(parley.InvalidArgument, "%.40q is not a time: want 2026-01-31T12:00:00Z, or how long it is until then, as 10m, 2h or 3d", text)
	}
	return nil
}

// longestLater bounds how long it is until a time. A moment may be further away.
const longestLater = 10 * 365 * 24 * time.Hour

// scheduleMessage has a message sent later.
func scheduleMessage(ctx context.Context, c *call, r api.ScheduleRequest) (any, error) {
	if r.Recipient == "" && len(r.Recipients) == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "a reply is sent at once").WithHint("give a recipient to send a message later")
	}
	s, err := api.Schedule.Do(ctx, c.agent, r)
	switch {
	case err != nil:
		return nil, err
	case s.Number == 0: // the call is repeated after its time
		return struct {
			Message capabilities.ID `json:"message"`
			Known   string          `json:"known"`
		}{s.Last, "sent already, when its time had come"}, nil
	case s.Next == 0:
		return nil, parley.Refuse(parley.InvalidArgument, "it was not sent when its time had come: %s", s.Refused).WithHint("send it again with another key")
	}
	known := ""
	if r.At != 0 && s.Next != r.At {
		known = "scheduled already under this key: that time stands"
	}
	return struct {
		Schedule uint64            `json:"schedule"`
		Next     capabilities.Time `json:"next"`
		Known    string            `json:"known,omitempty"`
	}{s.Number, s.Next, known}, nil
}

// acknowledge tells the sender of a message that the agent has taken note of it.
func acknowledge(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Message api.RefText `json:"message"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	err := api.Acknowledge.Run(ctx, c.agent, api.MessageRequest{FormRef: api.RefTo(string(arguments.Message))})
	return acknowledged{true}, err
}

type acknowledged struct {
	Acknowledged bool `json:"acknowledged"`
}
