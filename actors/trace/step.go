package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"parley/capabilities"
	"parley/events"
)

// Step is what a span shows: something that happened to a form in the mailbox of an agent.
type Step struct {
	name    string
	form    capabilities.ID
	agent   capabilities.ID // whose mailbox it is
	by      capabilities.ID // who did it
	home    bool
	kind    events.FormKind
	outcome string
	began   time.Time // zero if it began when the form came to by
}

// The names of spans.
const (
	whole     = "form"
	asked     = "ask"
	delivered = "delivered"
	decided   = "decided"
	settled   = "settled"
	told      = "told"
)

// FormOf returns the form that an event is a step of, and false if it is none.
func FormOf(e events.Event) (form capabilities.ID, ok bool) {
	switch e := e.(type) {
	case *events.FormRequested:
		return e.ID, true
	case *events.AnswerQueued:
		return e.Form, true
	case *events.VoteCast:
		return e.Form, true
	case *events.FormAnswered:
		return e.Form, true
	case *events.FormCancelled:
		return e.Form, true
	}
	return form, false
}

// StepOf returns the step that an event in an agent's mailbox is. Home reports whether the form's home is that mailbox. It
// keeps nothing of the event.
func StepOf(agent capabilities.ID, home bool, e events.Event) Step {
	form, _ := FormOf(e)
	s := Step{form: form, agent: agent, home: home}
	switch e := e.(type) {
	case *events.FormRequested:
		s.name, s.kind, s.by, s.began = delivered, e.Kind, e.From, e.Date.Std()
		if home {
			s.name = asked
		} else if e.Forwarder != (capabilities.ID{}) {
			s.by = e.Forwarder
		}
	case *events.AnswerQueued:
		s.name, s.by, s.outcome = decided, agent, outcomeOf(e.Reason)
	case *events.VoteCast:
		s.name, s.by, s.outcome = decided, e.By, string(e.Outcome)
		if e.By != agent {
			s.name = "" // it is a copy of what the voter's node shows
		}
	case *events.FormAnswered:
		s.name, s.by, s.outcome, s.began = told, e.By, "answered", e.Date.Std()
	case *events.FormCancelled:
		s.name, s.by, s.outcome, s.began = told, e.By, outcomeOf(e.Reason), e.Date.Std()
	}
	if s.name == told && home {
		s.name = settled
	}
	return s
}

// Told returns the step that an agent who waited for a form is told its outcome.
func Told(agent, form capabilities.ID, began time.Time) Step {
	return Step{name: told, form: form, agent: agent, began: began}
}

func outcomeOf(r events.Reason) string {
	if r == "" {
		return "answered"
	}
	return string(r)
}

// Record makes the spans of a step, which ends now.
func (r *Recorder) Record(s Step) {
	now := r.now()
	here := place{s.form, s.agent}
	switch s.name {
	case "":
		return
	case delivered:
		r.arrive(here, now)
	case decided:
		s.began, _ = r.since(here)
		r.arrive(here, time.Time{})
	case told:
		if began, open := r.since(here); open && s.by == s.agent { // no other event shows that it decided
			one := s
			one.name, one.began = decided, began
			r.span(within(s.form), one, s.began)
		}
		r.forget(here)
	case settled:
		all := s
		all.name, all.began = whole, askedAt(s.form)
		r.span(context.WithValue(context.Background(), wholeForm{}, s.form), all, now)
	}
	r.span(within(s.form), s, now)
}

func (r *Recorder) span(ctx context.Context, s Step, end time.Time) {
	if end.Before(s.began) { // another node's clock was ahead
		end = s.began
	}
	about := []attribute.KeyValue{attribute.String("parley.form", s.form.String()), attribute.String("parley.agent", s.agent.String())}
	for key, value := range map[string]string{"parley.kind": string(s.kind), "parley.outcome": s.outcome, "parley.by": idText(s.by)} {
		if value != "" {
			about = append(about, attribute.String(key, value))
		}
	}
	_, span := r.tracer.Start(ctx, s.name, otel.WithTimestamp(s.began), otel.WithAttributes(about...))
	span.End(otel.WithTimestamp(end))
}

func idText(id capabilities.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
