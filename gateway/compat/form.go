package compat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// dialectForm is a form of a dialect in the agent's mailbox.
type dialectForm struct {
	Asked events.Origin
	view.Message
}

// dialectOf returns a form with its origin, if it is one of a dialect. All approvals are, whoever asked them.
func dialectOf(e view.Message) (f dialectForm, ok bool) {
	f.Message = e
	if e.Origin != nil {
		f.Asked = *e.Origin
	}
	if e.Type == string(events.Approval) {
		f.Asked.Dialect = approvalDialect
		return f, true
	}
	return f, f.Asked.Dialect != "" && f.Asked.Dialect != approvalDialect
}

// keyPrefix begins the idempotency keys of forms of dialects.
const keyPrefix = "parley:"

// maxKey is the longest idempotency key, in bytes.
const maxKey = 255

// keyOf returns the idempotency key of a form. It is made of the asker's names for the form.
func keyOf(o events.Origin) string {
	key := keyPrefix + o.Dialect
	for _, name := range []string{o.Session, o.ID, o.Run, o.Agent, strconv.FormatUint(o.Turn, 10)} {
		key += "/" + url.PathEscape(name)
	}
	if len(key) > maxKey {
		digest := sha256.Sum256([]byte(key))
		key = keyPrefix + o.Dialect + ":" + hex.EncodeToString(digest[:])
	}
	return key
}

// formsOf returns the agent's forms of an origin that are wanted, oldest first. It leaves out forms that are settled and
// dismissed.
func (r *Relay) formsOf(ctx context.Context, o events.Origin, wanted func(dialectForm) bool) ([]dialectForm, error) {
	in, err := r.agent.Mail().FormsOf(ctx, o)
	var found []dialectForm
	for _, e := range in.Messages {
		if f, ok := dialectOf(e); ok && wanted(f) {
			found = append(found, f)
		}
	}
	return found, err
}

// calling describes the form that a client means.
type calling struct {
	origin  events.Origin
	form    string                 // the form's own ID, if the client gives it
	called  func(dialectForm) bool // reports whether a form has the name that the client uses
	repeats bool                   // one asker uses the name for several forms, one after another
	none    error
}

// byID returns the form of a dialect with an ID, if the agent received one.
func (r *Relay) byID(ctx context.Context, dialect, id string) (dialectForm, bool) {
	ref, err := capabilities.ParseFormRef(id)
	if err != nil {
		return dialectForm{}, false
	}
	e, err := r.agent.Message(ctx, ref)
	if err != nil || !e.Received || e.MessageID.String() != id {
		return dialectForm{}, false
	}
	f, ok := dialectOf(e)
	return f, ok && f.Asked.Dialect == dialect
}

// asked returns the received form that a client means. The asker's name identifies it while no other form of that name is
// open or in view. Otherwise asked refuses with AMBIGUOUS: the form that the client has seen may have ended, with another
// in its place.
func (r *Relay) asked(ctx context.Context, by calling) (dialectForm, error) {
	var forms []dialectForm
	var err error
	if by.form == "" {
		forms, err = r.formsOf(ctx, by.origin, func(f dialectForm) bool { return f.Received && by.called(f) })
	} else if f, ok := r.byID(ctx, by.origin.Dialect, by.form); ok && by.called(f) {
		forms = append(forms, f)
	}
	switch {
	case err != nil:
		return dialectForm{}, err
	case len(forms) == 0:
		return dialectForm{}, by.none
	}
	waits := slices.IndexFunc(forms, func(f dialectForm) bool { return f.AnswerNeeded })
	switch {
	case waits < 0 && by.repeats:
		return dialectForm{}, by.none
	case by.form == "" && by.shared(forms):
		return dialectForm{}, shared(forms)
	case waits < 0:
		waits = len(forms) - 1
	}
	return forms[waits], nil
}

// shared reports whether the client could mean several forms: of several askers, or of one that uses a name again.
func (by calling) shared(forms []dialectForm) bool {
	return slices.ContainsFunc(forms[1:], func(f dialectForm) bool { return !by.repeats || f.From != forms[0].From })
}

// maxWaiting bounds the forms that an error names.
const maxWaiting = 5

// shared returns the refusal with AMBIGUOUS, which names the forms that wait.
func shared(forms []dialectForm) error {
	var waits []string
	for _, f := range forms {
		if f.AnswerNeeded && len(waits) < maxWaiting {
			waits = append(waits, fmt.Sprintf("%s of %s", f.MessageID, cmp.Or(f.FromName, f.From.String())))
		}
	}
	return parley.Refuse(parley.Ambiguous, "%d forms were called so, and %d of them wait", len(forms), len(waits)).
		WithHint(`say which one by its ID, as "form": %s`, cmp.Or(strings.Join(waits, ", "), "none waits now"))
}

// checkID refuses with INVALID_ARGUMENT an ID that is missing or too long.
func checkID(what, id string) error {
	if id == "" || len(id) > MaxRequestID {
		return parley.Refuse(parley.InvalidArgument, "%s is a text of 1 to %d bytes", what, MaxRequestID)
	}
	return nil
}

// unanswered returns the error for a form that ended without an answer.
func unanswered(o view.Outcome) error {
	switch o.Status {
	case view.StatusDeclined:
		return parley.Refuse(parley.Declined, "%s", cmp.Or(o.Note, "it was declined"))
	case view.StatusExpired:
		return parley.Refuse(parley.Expired, "its deadline passed")
	}
	return parley.Refuse(parley.Cancelled, "%s", cmp.Or(o.Note, "it was cancelled"))
}
