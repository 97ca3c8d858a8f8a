package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/call"
	"parley/gateway/call/risk"
	"parley/gateway/people"
)

// self is what an agent is called to itself. No agent has it as a name.
const self = "SELF"

// Message returns a message as one line, whatever it contains.
func Message(e view.Message, s terminal.Screen) string {
	number := fmt.Sprintf("%d. ", e.Number)
	if e.AnswerNeeded && e.SnoozedUntil == 0 {
		number = s.Paint(terminal.Waiting, fmt.Sprintf("%d.", e.Number)) + " "
	}
	return s.FitBetween(number, subject(e, s), ending(e, s))
}

// Repeated returns an approval that is asked several times as one line, as Message does.
func Repeated(e view.Message, times int, s terminal.Screen) string {
	if times < 2 {
		return Message(e, s)
	}
	number := s.Paint(terminal.Waiting, fmt.Sprintf("%d.", e.Number)) + " "
	return s.FitBetween(number, subject(e, s), s.Paint(terminal.Strong, fmt.Sprintf(" · %d the same", times))+ending(e, s))
}

// subject returns who did what.
func subject(e view.Message, s terminal.Screen) string {
	var b strings.Builder
	switch {
	case e.Archived != nil:
		b.WriteString(archived(e))
	case e.Sent:
		to := Party(e.ToName, e.To)
		if len(e.Recipients) > 0 {
			to = recipients(e.Recipients, 3)
		}
		who := "you "
		if !e.Author.IsZero() { // the agent is a group
			who = Writer(&e) + " by you "
		}
		b.WriteString(who + verb(e, preposition(e.Type)+" "+to))
	case s.Width > 0 && e.Type == string(events.Approval):
		b.WriteString(Sender(&e) + " wants to " + Wants(e))
	case !e.Author.IsZero():
		b.WriteString(Writer(&e) + " by " + Sender(&e) + " " + verb(e, toOthers(e)))
	default:
		b.WriteString(Sender(&e) + " " + verb(e, toOthers(e)))
	}
	b.WriteString(passed(e, s))
	return b.String()
}

// toOthers returns to whom a message went that others got too; "" for any other.
func toOthers(e view.Message) string {
	if len(e.Recipients) == 0 {
		return ""
	}
	return "to " + recipients(e.Recipients, 3)
}

// Recipients returns recipients in words.
func Recipients(all []view.Recipient) string { return recipients(all, len(all)) }

// recipients returns recipients in words, at most so many by name.
func recipients(all []view.Recipient, most int) string {
	return view.RecipientWords(all, most, recipient)
}

// recipient returns how a recipient is shown; "" for one without a name.
func recipient(r view.Recipient) string {
	switch {
	case r.Name == self:
		return people.You
	case r.Name != "":
		return terminal.Quoted(r.Name)
	case r.Said != "":
		return terminal.Quoted(r.Said) + " (its sender's name)"
	}
	return ""
}

// passed returns how a form came to the agent, and to whom it was forwarded.
func passed(e view.Message, s terminal.Screen) string {
	all, to := passedBy(e, s)
	if len(to) > 0 {
		all = append(all, "forwarded to "+strings.Join(to, ", "))
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, ", ")
}

func passedBy(e view.Message, s terminal.Screen) (came, to []string) {
	party := partyOf(&e)
	when := func(t capabilities.Time) string { return s.Moment(t.Std(), t.String()) }
	for _, step := range e.Steps {
		came = append(came, step.Words(party, when))
	}
	for _, f := range e.ForwardedTo {
		to = append(to, f.Words(party, when))
	}
	return came, to
}

// Passed returns lines on how a form came to the agent, in order, and to whom it was forwarded. They are in the line of the
// message too, of which a terminal may show the beginning alone.
func Passed(e view.Message, s terminal.Screen) (lines []Line) {
	came, to := passedBy(e, s)
	for _, words := range came {
		lines = append(lines, Line{Note, words})
	}
	for _, words := range to {
		lines = append(lines, Line{Note, "forwarded to " + words})
	}
	if words := Claimed(e, s); words != "" {
		lines = append(lines, Line{Note, words})
	}
	if words := strings.TrimPrefix(reviewed(e, s), ", "); words != "" {
		lines = append(lines, Line{Note, words})
	}
	return lines
}

// Claimed returns who is on a form, in words; "" for nobody.
func Claimed(e view.Message, s terminal.Screen) string {
	if e.Claim == nil {
		return ""
	}
	return e.Claim.Words(partyOf(&e), func(t capabilities.Time) string { return s.Moment(t.Std(), t.String()) })
}

// archived returns what is known of a message whose content is in a segment of the archive that is elsewhere.
func archived(e view.Message) string {
	text := "a message"
	if e.Archived.Form {
		text = "a form that has ended"
	}
	if e.Sent {
		text = "you sent " + text
	}
	if e.Dismissed {
		text += " (dismissed)"
	}
	return text
}

func day(t capabilities.Time) string { return t.Std().Local().Format(time.DateOnly) }

// ending returns the time of a message and its state.
func ending(e view.Message, s terminal.Screen) string {
	var b strings.Builder
	if a := e.Archived; a != nil {
		b.WriteString(fmt.Sprintf(" from %s to %s - elsewhere: %s", day(a.From), day(a.To), terminal.Visible(a.Hint)))
		return b.String()
	}
	b.WriteString(" " + s.Paint(terminal.Faint, s.Time(e.Date.Std(), fmt.Sprintf("at %q", e.Date))))
	if s.Width > 0 && e.AnswerNeeded && e.Deadline != 0 {
		b.WriteString(s.Paint(terminal.Waiting, ", expires "+terminal.Ago(e.Deadline.Std(), s.Now)))
	}
	if a := e.Amendment; a != nil {
		b.WriteString(fmt.Sprintf(", amended to revision %d: %s", e.Revision, terminal.Visible(strings.Join(a.Changes, ", "))))
		if a.Note != "" {
			b.WriteString(" (" + terminal.Visible(a.Note) + ")")
		}
	}
	b.WriteString(routed(e, s) + votes(e) + signing(e, s) + reviewed(e, s))
	if words := Claimed(e, s); words != "" {
		b.WriteString(", " + words)
	}
	if e.SnoozedUntil != 0 {
		b.WriteString(", snoozed until " + s.Moment(e.SnoozedUntil.Std(), e.SnoozedUntil.String()))
	}
	b.WriteString(state(e, s))
	if e.Dismissed {
		b.WriteString(" (dismissed)")
	}
	if e.Outcome != nil {
		b.WriteString(" - " + Settled(e, s))
	}
	if n := len(e.ToFollow); n > 0 {
		b.WriteString(fmt.Sprintf(", %d to follow", n))
	}
	switch {
	case e.Promised != nil:
		b.WriteString(" - " + terminal.Visible(e.Promised.Words()))
	case e.Queued && e.Sent && !e.Received:
		b.WriteString(" - queued until the turn ends")
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

// state returns how far a message has come that was sent, if that is further than its recipient's mailbox, and by when it is to
// be acknowledged.
func state(e view.Message, s terminal.Screen) (text string) {
	if e.Sent && !e.Received && e.Outcome == nil && e.State.Rank() > 0 {
		text = ", " + string(e.State)
	}
	if len(e.Unreached) > 0 && e.Refused == "" {
		text += fmt.Sprintf(", did not reach %d", len(e.Unreached))
	}
	if len(e.Late) > 0 {
		text += ", escalated: not acknowledged by " + recipients(e.Late, 3)
	}
	if e.AckBy == 0 || e.Refused != "" {
		return text
	}
	by := s.Moment(e.AckBy.Std(), e.AckBy.String())
	switch {
	case e.Acknowledged:
		return ", acknowledged"
	case e.Overdue:
		return text + s.Paint(terminal.Waiting, ", overdue: to be acknowledged by "+by)
	case e.Sent:
		return text + ", to be acknowledged by " + by
	}
	return text + s.Paint(terminal.Waiting, ", acknowledge by "+by)
}

// Receipts returns lines on how far a message has come, and with whom.
func Receipts(e view.Message, s terminal.Screen) (lines []Line) {
	switch {
	case e.Promised != nil:
		lines = append(lines, Line{Note, "not sent yet: it " + terminal.Visible(e.Promised.Words())})
	case e.Sent && !e.Received && e.Outcome == nil && e.State == "" && e.Refused == "":
		lines = append(lines, Line{Note, "not delivered yet"})
	}
	for _, f := range e.ToFollow {
		lines = append(lines, Line{Note, "goes on with the answer: " + terminal.Visible(f.Line())})
	}
	if len(e.Recipients) > 3 {
		lines = append(lines, Line{Note, "to " + recipients(e.Recipients, len(e.Recipients))})
	}
	if len(e.Late) > 0 {
		lines = append(lines, Line{Note, "escalated: not acknowledged by " + recipients(e.Late, len(e.Late))})
	}
	if e.Escalate != nil && !e.Acknowledged {
		lines = append(lines, Line{Note, "if it is not acknowledged in time, it goes to " + cmp.Or(recipient(*e.Escalate), "another agent")})
	}
	for _, r := range e.Receipts {
		words := e.ReceiptWords(r, partyOf(&e))
		if r.At != 0 {
			words += ", " + s.Moment(r.At.Std(), r.At.String())
		}
		lines = append(lines, Line{Note, terminal.Visible(words)})
	}
	for _, c := range e.Counts {
		lines = append(lines, Line{Note, terminal.Visible(c.Words(partyOf(&e)))})
	}
	for _, m := range e.Members {
		words := m.Words(func(r view.Recipient) string { return cmp.Or(recipient(r), "another agent") }, partyOf(&e))
		lines = append(lines, Line{Note, terminal.Visible(words) + ", " + s.Moment(m.At.Std(), m.At.String())})
	}
	for _, u := range e.Unreached {
		words := "did not reach " + cmp.Or(recipient(u.Recipient), "another agent") + " (" + terminal.Visible(u.Why) + ")"
		if u.ByName != self {
			words += ", " + partyOf(&e)(u.By, u.ByName) + " says"
		}
		lines = append(lines, Line{Note, words})
	}
	return lines
}

// routed returns what has become of a form's reminders and escalations. Those to come are shown while it is open.
func routed(e view.Message, s terminal.Screen) string {
	r := e.Route
	if r == nil {
		return ""
	}
	var b strings.Builder
	at := func(words string, at capabilities.Time) {
		b.WriteString(", " + words + " at " + s.Moment(at.Std(), at.String()))
	}
	if r.Reminded > 0 {
		at("reminded", r.RemindedAt)
	}
	for _, step := range r.Steps {
		to := terminal.Visible(cmp.Or(step.Name, view.ShortID(step.To)))
		switch step.Cause {
		case events.Escalated:
			at("escalated to "+to, step.At)
		case events.Revoked:
			at("taken back from "+to, step.At)
		case events.Unreachable:
			at("could not be escalated to "+to, step.At)
		default:
			at("escalates to "+to, step.At)
		}
	}
	if r.RemindsAt != 0 {
		at("reminds", r.RemindsAt)
	}
	return b.String()
}

// signing returns that an answer needs a passkey, or was signed with one; "" for neither.
func signing(e view.Message, s terminal.Screen) string {
	switch o := e.Outcome; {
	case o != nil && o.Signed:
		return ", signed with a passkey"
	case o == nil && e.Passkey && e.AnswerNeeded:
		return s.Paint(terminal.Waiting, ", needs a passkey: decide on the page")
	case o == nil && e.Passkey:
		return ", needs a passkey"
	}
	return ""
}

// maxOpinion bounds, in characters, what a line shows of a reviewer's opinion.
const maxOpinion = 300

// reviewed returns what the reviewer of a call says of it, or who reviews it; "" for none, and where the review has decided it.
func reviewed(e view.Message, s terminal.Screen) string {
	r := e.Review
	switch {
	case r == nil || e.ByReviewer() || e.Outcome != nil && r.How == "":
		return ""
	case r.How == "" && !e.Received:
		return ", reviewed by " + partyOf(&e)(r.By, r.ByName) + " until " + s.Moment(r.Until.Std(), r.Until.String())
	case r.How == "":
		text := ", for your review until " + s.Moment(r.Until.Std(), r.Until.String())
		if !r.MayAllow {
			text += ", and not for you to allow"
		}
		return text
	}
	words := r.Words()
	if e.Sent {
		words = r.ToAsker()
	}
	text := ", reviewer " + partyOf(&e)(r.By, r.ByName) + " " + words
	if r.Note != "" {
		note := []rune(r.Note)
		if len(note) > maxOpinion {
			note = append(note[:maxOpinion:maxOpinion], '…')
		}
		text += ": " + terminal.Quoted(string(note)) + " (its opinion)"
	}
	return text
}

// votes returns the votes on a form, as in ", 1 of 2, waiting for bob".
func votes(e view.Message) string {
	v := e.Votes
	if v == nil {
		return ""
	}
	text := fmt.Sprintf(", %d of %d", v.Have, v.Need)
	against, void := 0, 0
	for _, w := range v.Cast {
		switch {
		case w.Void:
			void++
		case w.Outcome == events.VoteDeclined:
			against++
		}
	}
	if against > 0 {
		text += fmt.Sprintf(", %d declined", against)
	}
	if void > 0 {
		text += fmt.Sprintf(", %d void by the amendment", void)
	}
	if len(v.Waiting) > 0 {
		names := make([]string, len(v.Waiting))
		for i, w := range v.Waiting {
			names[i] = terminal.Visible(cmp.Or(w.Name, view.ShortID(w.ID)))
		}
		text += ", waiting for " + strings.Join(names, ", ")
	}
	if e.IsSecondVote() {
		text += ", you have voted as " + Party(v.VotedAs.Name, v.VotedAs.ID)
	}
	if own := ownVote[v.Own]; own != "" {
		text += ", " + own
	}
	return text
}

// ownVote is what has become of the viewer's vote, in words.
var ownVote = map[view.OwnVote]string{
	view.VoteStands: "you voted", view.VoteVoid: "your vote is void: answer again", view.VoteCounted: "your vote counted", view.VoteMissed: "your vote did not count",
}

// verb returns the action of a message, with the other party where the agent itself acted.
func verb(e view.Message, with string) string {
	var words []string
	switch e.Type {
	case "form":
		words = []string{"sent form", terminal.Quoted(cmp.Or(e.Description, e.Title)), with, "(fields: " + fieldNames(e.Fields) + ")"}
	case string(events.Request):
		words = []string{"requested", terminal.Quoted(e.Description), with}
	case string(events.Approval):
		words = []string{"asked to call", terminal.Quoted(e.Title), with, "(input: " + terminal.Visible(e.Description) + ")"}
		if u := e.Permission.Use; u != nil {
			words[0], words[1] = "is to be used by", terminal.Quoted(call.Holder(u))
		}
		if p := e.Permission; p.Folder != "" {
			words = append(words, "in "+terminal.Visible(p.Folder))
		}
		if p := e.Permission; p.Session != "" {
			words = append(words, "from session "+terminal.Quoted(p.Session))
		}
		if p := e.Permission; p.Part != "" {
			words = append(words, "by what it calls "+terminal.Quoted(p.Part))
		}
		if p := e.Permission; p.Reason != "" {
			words = append(words, "saying why: "+terminal.Quoted(p.Reason))
		}
	default:
		words = []string{string(e.Priority), "sent", terminal.Quoted(e.Text), with, withFiles(e.Files)}
		switch {
		case e.Text == "" && e.Subject != "":
			words[2] = terminal.Quoted(e.Subject)
		case e.Text == "" && len(e.Files) > 0:
			words[2] = "no text"
		case e.Subject != "":
			words[2] = terminal.Quoted(e.Subject) + ": " + words[2]
		}
		if e.Priority != "" {
			words[0] = "(" + terminal.Visible(words[0]) + ")"
		}
		if !e.ReplyTo.IsZero() {
			words[1] = "replied"
			words = append(words, "in reply to "+repliedTo(e))
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// withFiles says that a message carries files; "" for none.
func withFiles(files []events.File) string {
	switch len(files) {
	case 0:
		return ""
	case 1:
		return "with the file " + terminal.Quoted(files[0].Name)
	}
	return fmt.Sprintf("with %d files", len(files))
}

// preposition returns the word between the action of a message of a type and its recipient.
func preposition(messageType string) string {
	switch messageType {
	case string(events.Request):
		return "of"
	case string(events.Approval):
		return "from"
	}
	return "to"
}

// repliedTo returns the message that another replies to.
func repliedTo(e view.Message) string {
	if e.ReplyNumber != nil {
		return fmt.Sprintf("#%d", *e.ReplyNumber)
	}
	return terminal.Quoted(e.ReplyTo.String())
}

// fieldNames returns the names of fields.
func fieldNames(fields []events.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = terminal.Visible(f.Name)
	}
	return strings.Join(names, ", ")
}

// Sender returns who sent a message: the reader's name for that in quotation marks, or what it calls itself, which reads as that.
func Sender(e *view.Message) string {
	if said := e.CallsItself(); said != "" {
		return terminal.Visible(said)
	}
	if e.FromName == "" && e.From.Node == e.To.Node { // it is all that the reader has, to name the sender by; of another node's it is no use
		return terminal.Quoted(e.From.String())
	}
	return Party(e.FromName, e.From)
}

// Writer returns who wrote what a group has passed on, as Sender does.
func Writer(e *view.Message) string {
	if said := e.Writer(); said != "" && e.AuthorName == "" {
		return terminal.Visible(said)
	}
	return Party(e.AuthorName, e.Author)
}

// Party returns an agent's name in quotes, or the end of its ID where it has none. Who reads is "you".
func Party(name string, id capabilities.ID) string {
	switch name {
	case self:
		return people.You
	case "":
		return view.ShortID(id)
	}
	return terminal.Quoted(name)
}

// partyOf returns Party for whoever a message speaks of. One for whom the reader has no name is called what the message says that it calls
// itself.
func partyOf(e *view.Message) func(id capabilities.ID, name string) string {
	return func(id capabilities.ID, name string) string {
		switch {
		case name == "" && id == e.From && e.FromSaid != "":
			return Sender(e)
		case name == "" && id == e.Author && e.AuthorSaid != "":
			return Writer(e)
		}
		if i := slices.IndexFunc(e.Recipients, func(r view.Recipient) bool { return r.ID == id }); name == "" && i >= 0 {
			if said := e.Recipients[i].CallsItself(); said != "" {
				return terminal.Visible(said)
			}
		}
		return Party(name, id)
	}
}

// IsHigh reports whether a message asks about a call of high risk: it is allowed once alone.
func IsHigh(e view.Message) bool {
	return e.Permission != nil && call.Read(e.Permission).Risks.Level() == risk.High
}

// maxGist bounds the words that tell a message from others, in cells.
const maxGist = 100

// Gist returns a few words that tell a message from others: "fae: Configure it", "fae wants to run git push".
func Gist(e view.Message) string {
	from := cmp.Or(e.Sender(), view.ShortID(e.From))
	words := terminal.Visible(from)
	switch e.Type {
	case string(events.Approval):
		words = terminal.Visible(call.Read(e.Permission).Asker(from)) + " wants to " + Wants(e)
	case "message":
		words += ": " + terminal.Visible(cmp.Or(e.Subject, e.Text))
	default:
		words += ": " + terminal.Visible(cmp.Or(e.Description, e.Title))
	}
	return terminal.Screen{Width: maxGist}.Fit(words)
}

// Whole returns a message with all that it says, and above that what was said of it.
func Whole(e view.Message, said []Line, s terminal.Screen) string {
	whole := s
	whole.Width = 0
	lines := append(Receipts(e, s), Lines(e)...)
	if s.Width > 0 {
		lines = append(Passed(e, s), lines...)
	}
	return Message(e, s) + "\n" + Preview(append(said, lines...), whole, 0, "")
}

// Lines returns all that a message says: its text, or the fields of a form.
func Lines(e view.Message) []Line {
	var lines []Line
	switch e.Type {
	case "message":
		if e.Subject != "" {
			lines = plain(Key, "", e.Subject)
		}
		lines = append(lines, plain(Text, "", e.Text)...)
		for _, f := range e.Files {
			lines = append(lines, Line{Key, "file: " + terminal.Visible(f.Name) + " (" + FileSize(f.Size) + ")"})
		}
	default:
		if e.Title != "" && e.Description != "" {
			lines = plain(Key, "", e.Title)
		}
		lines = append(lines, plain(Text, "", cmp.Or(e.Description, e.Title))...)
	}
	for _, edge := range slices.Sorted(maps.Keys(e.Edges)) {
		lines = append(lines, Line{Key, "@" + terminal.Visible(edge) + ": " + terminal.Visible(e.Edges[edge].Text())})
	}
	for _, f := range e.Fields {
		lines = append(lines, fieldLines(f)...)
	}
	return lines
}

// FileSize returns the size of a file for people.
func FileSize(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	case n == 1:
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// fieldLines returns a field of a form with its choices.
func fieldLines(f events.Field) []Line {
	about := []string{cmp.Or(string(f.Type), string(events.Text))}
	if f.Required {
		about = append(about, "required")
	}
	text := terminal.Visible(f.Name) + ": " + terminal.Visible(f.Label) + " (" + strings.Join(about, ", ") + ")"
	if f.Help != "" {
		text += " - " + terminal.Visible(f.Help)
	}
	lines := []Line{{Key, text}}
	for _, o := range f.Options {
		choice := "  " + terminal.Visible(o.Value)
		if o.Label != "" && o.Label != o.Value {
			choice += " - " + terminal.Visible(o.Label)
		}
		if o.Description != "" {
			choice += " - " + terminal.Visible(o.Description)
		}
		lines = append(lines, Line{Text, choice})
	}
	return lines
}
