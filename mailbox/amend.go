package mailbox

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/quota"
)

// maxRevision bounds the amendments of one form.
const maxRevision = 33

// Question is what a form asks: now, and before its amendments.
type Question struct {
	*events.FormRequested
	amended rare[amended]
}

// amended is the way to the present question of an amended form.
type amended struct {
	last   *events.FormAmended
	asked  *events.FormRequested // as it was asked
	before *events.FormRequested // before the last amendment
}

// Amended returns the last amendment, which FormRequested includes; nil if there is none.
func (q *Question) Amended() *events.FormAmended { return q.amended.get().last }

// Revision returns the number of the present question. The form as it was asked is 1.
func (q *Question) Revision() uint64 {
	if e := q.Amended(); e != nil {
		return e.Revision
	}
	return 1
}

// answering returns the revision as an answer has it, which is 0 for the form as it was asked.
func (q *Question) answering() uint64 {
	if e := q.Amended(); e != nil {
		return e.Revision
	}
	return 0
}

// asAsked returns the form as it was asked.
func (q *Question) asAsked() *events.FormRequested {
	if asked := q.amended.get().asked; asked != nil {
		return asked
	}
	return q.FormRequested
}

// amend replaces the question, whether in the state or of a form that is made again. Votes on the one before are void.
func (f *Form) amend(e *events.FormAmended) {
	f.revise(e)
	f.votes.edit().Amend(e.Revision)
}

// revise replaces the question. A copy of the question stays as it is.
func (q *Question) revise(e *events.FormAmended) {
	now := *q.FormRequested
	now.Title, now.Description, now.Fields = e.Title, e.Description, e.Fields
	q.amended.part = &amended{last: e, asked: q.asAsked(), before: q.FormRequested}
	q.FormRequested = &now
}

// checkRevision refuses with AMENDED an answer to another revision than the present one. It says what has changed since
// the form was asked, or since the revision before.
func (q *Question) checkRevision(answered uint64, what string) error {
	answered = max(answered, 1)
	switch now := q.Revision(); {
	case answered == now:
		return nil
	case answered > now:
		return parley.Refuse(parley.Amended, "%s has no revision %d: the present one is %d", what, answered, now)
	}
	way := q.amended.get()
	since := way.asked
	if answered == way.last.Revision-1 {
		since = way.before
	} else if answered != 1 {
		return parley.Refuse(parley.Amended, "%s was amended after revision %d: the present one is %d", what, answered, q.Revision())
	}
	return parley.Refuse(parley.Amended, "%s was amended at %s to revision %d, and the answer is to revision %d: %s",
		what, way.last.Date, q.Revision(), answered, parley.Shown(strings.Join(changedParts(since, q.FormRequested), ", "), maxChanges)).
		WithHint("look at the form again, and answer what it asks now")
}

// checkShown refuses with AMENDED what was decided on another revision of the form. Revision 0 stands for the present one.
func (m *Message) checkShown(revision uint64) error {
	if revision == 0 {
		return nil
	}
	return m.Form.checkRevision(revision, fmt.Sprintf("form %d", m.Number))
}

// maxChanges bounds the changes that a refusal names, in characters.
const maxChanges = 120

// Changes returns the parts of the question that the last amendment has changed.
func (q *Question) Changes() []string {
	way := q.amended.get()
	if way.last == nil {
		return nil
	}
	return changedParts(way.before, q.FormRequested)
}

// changedParts returns the parts in which two questions differ, in words.
func changedParts(before, after *events.FormRequested) (parts []string) {
	if before.Title != after.Title {
		parts = append(parts, "another title")
	}
	if before.Description != after.Description {
		parts = append(parts, "another description")
	}
	byName := map[string]events.Field{}
	for _, f := range before.Fields {
		byName[f.Name] = f
	}
	for _, f := range after.Fields {
		was, known := byName[f.Name]
		delete(byName, f.Name)
		switch {
		case !known:
			parts = append(parts, "new field "+parley.Quoted(f.Name, 40))
		case !form.SameFields([]events.Field{was}, []events.Field{f}):
			parts = append(parts, "another field "+parley.Quoted(f.Name, 40))
		}
	}
	for _, f := range before.Fields {
		if _, gone := byName[f.Name]; gone {
			parts = append(parts, "no field "+parley.Quoted(f.Name, 40))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "another order of fields")
	}
	return parts
}

// AmendForm corrects the question of an open form that the agent asked. Nil Title, Description and Fields stay as they
// are. Answers to an earlier revision are refused. An amendment that changes nothing has no effect.
type AmendForm struct {
	Form capabilities.FormRef
	parley.Amendment

	Schema *form.Schema // of Fields, if they were compiled before
}

func (c AmendForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindForm(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if err := c.checkAsker(s, m, now); err != nil {
		return nil, err
	}
	e := &events.FormAmended{
		Form: f.ID, Revision: f.Revision() + 1, Title: f.Title, Description: f.Description, Fields: f.Fields, Note: c.Note, Date: now,
	}
	if c.Title != nil {
		e.Title = titleOf(f.Kind, *c.Title)
	}
	if c.Description != nil {
		e.Description = *c.Description
	}
	if c.Fields != nil {
		if c.Schema == nil {
			if c.Schema, err = form.Compile(c.Fields); err != nil {
				return nil, err
			}
		}
		e.Fields = c.Schema.Fields()
	}
	if e.Title == f.Title && e.Description == f.Description && form.SameFields(e.Fields, f.Fields) {
		return nil, nil
	}
	if err := f.checkAmendment(e); err != nil {
		return nil, err
	}
	e.Digest = e.QuestionDigest()
	return []events.Event{e}, nil
}

// checkAsker refuses a form that the agent did not ask, or that has ended.
func (c AmendForm) checkAsker(s *State, m *Message, now capabilities.Time) error {
	f := m.Form
	if f.From != s.ID {
		asker, err := s.Names.describe(f.From)
		if err != nil {
			return err
		}
		return parley.Refuse(parley.NotPermitted, "only %s, who asked it, may amend form %d", asker, m.Number)
	}
	if !f.IsOpen() {
		return endedError(s, m)
	}
	if f.isExpired(now) { // ExpireForms has not run yet
		return parley.Refuse(parley.AlreadyExpired, "form %d expired at %s", m.Number, f.Deadline)
	}
	return s.Profile.checkActive()
}

// checkAmendment refuses a question that cannot take the place of the form's own. An approval is of one call. A form
// that was asked in a dialect is shown by programs that know no amendments.
func (q *Question) checkAmendment(e *events.FormAmended) error {
	switch {
	case q.Kind == events.Approval:
		return parley.Refuse(parley.NotPermitted, "an approval is of the call that it shows, and cannot be amended").WithHint("cancel it and ask again")
	case q.AskedIn() != nil:
		return parley.Refuse(parley.NotPermitted, "a form that was asked by an older kind of client cannot be amended").WithHint("cancel it and ask again")
	case e.Revision > maxRevision:
		return parley.Refuse(parley.TooLarge, "a form is amended %d times at most", maxRevision-1).WithHint("cancel it and ask again")
	}
	if err := checkKind(q.Kind, e.Fields, false); err != nil {
		return err
	}
	if err := checkVotes(q.Kind, q.Route, e.Fields, false); err != nil {
		return err
	}
	if err := checkFormWords(q.Kind, e.Description, e.Title); err != nil {
		return err
	}
	return checkText("a comment", e.Note, maxReason)
}

// RecordAmendment records the latest amendment of a form in a copy of it. It comes from the form's home on this node. An
// amendment that is here already has no effect, nor one of a form that has ended.
type RecordAmendment struct {
	Amendment *events.FormAmended

	Quotas *quota.Amounts // the asker's; nil for none
}

// RemoteAmendment is a RecordAmendment from another node. Home is its sender there. The fields are compiled again.
type RemoteAmendment struct {
	RecordAmendment

	Home   capabilities.ID
	Schema *form.Schema // of the fields, if they were compiled before
}

// IsNews reports whether the amendment changes the copy of its form. It fails with PagedOut, and for an unknown form.
func (c RecordAmendment) IsNews(s *State) (bool, error) {
	m, err := s.Mail.FindFormID(c.Amendment.Form)
	return err == nil && m.Form.IsOpen() && c.Amendment.Revision > m.Form.Revision(), err
}

func (c RecordAmendment) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	return c.record(s, c.Amendment, now)
}

func (c RemoteAmendment) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Amendment.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who amends it", c.Amendment.Form)
	}
	if news, err := c.IsNews(s); err != nil || !news {
		return nil, err
	}
	e := new(*c.Amendment)
	if c.Schema == nil {
		if c.Schema, err = form.Compile(e.Fields); err != nil {
			return nil, err
		}
	}
	e.Fields, e.Date = c.Schema.Fields(), clampDate(e.Date, now)
	if e.Digest != e.QuestionDigest() {
		return nil, parley.Refuse(parley.InvalidArgument, "the amendment of form %s is not the one that its digest is of", e.Form)
	}
	return c.record(s, e, now)
}

// record returns the event of an amendment.
func (c RecordAmendment) record(s *State, e *events.FormAmended, now capabilities.Time) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(e.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From == s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", e.Form)
	}
	if news, err := c.IsNews(s); err != nil || !news {
		return nil, err
	}
	if err := m.Form.checkAmendment(e); err != nil {
		return nil, err
	}
	if err := checkRoom(s, c.Quotas, e, now); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// formAmended folds an amendment in. At the form's home, it is enqueued for every holder. A copy comes back unread, and
// keeps the parts of a draft that still fit.
func (f fold) formAmended(e *events.FormAmended) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if e.Revision <= m.Form.Revision() {
		return fmt.Errorf("%w: revision %d of form %s after %d", ErrNonsense, e.Revision, e.Form, m.Form.Revision())
	}
	m.Form.amend(e)
	f.keepDraft(m.Form)
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if m.Form.From != f.ID {
		f.Mail.Index.setRead(m.Number, false)
		return nil
	}
	for _, h := range m.Form.Holders {
		f.Outbox.enqueue(events.OutboxAmendment, e.Form, h)
	}
	return nil
}

// keepDraft drops the parts of a draft that do not fit the form any more. A field keeps its text if it has the type that
// it had, and the options that were chosen.
func (f fold) keepDraft(of *Form) {
	if of.Draft == nil {
		return
	}
	values, _ := of.Draft.Values.AsRecord()
	kept := map[string]capabilities.Value{}
	before := of.amended.get().before.Fields
	for _, now := range of.Fields {
		i := slices.IndexFunc(before, func(was events.Field) bool { return was.Name == now.Name && was.Type == now.Type })
		if v, ok := values[now.Name]; ok && i >= 0 && offers(now, v) {
			kept[now.Name] = v
		}
	}
	if len(kept) == 0 {
		of.Draft = nil
		f.Mail.drafts--
		return
	}
	draft := *of.Draft
	draft.Values = capabilities.Record(kept)
	of.Draft = &draft
}

// offers reports whether a field with options has each that a draft chose. A field without options has all.
func offers(field events.Field, chosen capabilities.Value) bool {
	if len(field.Options) == 0 {
		return true
	}
	list, _ := chosen.AsList()
	for _, v := range list {
		text, _ := v.AsString()
		if !slices.ContainsFunc(field.Options, func(o events.Option) bool { return o.Value == text }) {
			return false
		}
	}
	return true
}

// size returns the bytes of the form that count for quotas, with the earlier questions that are kept.
func (q *Question) size() int64 {
	n := sizeOfForm(q.FormRequested)
	if way := q.amended.get(); way.last != nil {
		n += sizeOfForm(way.asked) + sizeOfForm(way.before)
	}
	return n
}

// growth returns the bytes by which an amendment makes the form larger.
func (q *Question) growth(e *events.FormAmended) int64 {
	after := *q
	after.revise(e)
	return after.size() - q.size()
}

func sizeOfAmendment(e *events.FormAmended) int64 {
	question := events.FormRequested{Title: e.Title, Description: e.Description, Fields: e.Fields}
	return sizeOfForm(&question) + int64(len(e.Note))
}

// titleOf returns the title of a form of a kind as it is stored. That of an approval is a tool, whose name stays as it is.
func titleOf(kind events.FormKind, title string) string {
	if kind == events.Approval {
		return title
	}
	return capabilities.Normal(title)
}
