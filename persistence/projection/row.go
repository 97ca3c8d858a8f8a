package projection

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"parley/capabilities"
	"parley/events"
)

// maxBody bounds the text that is indexed of one message, in bytes.
const maxBody = 64 << 10

// adder adds the events of a mailbox in a transaction.
type adder struct {
	ctx   context.Context
	tx    *sql.Tx
	place int64
	self  capabilities.ID

	version uint64 // of the event that is added
}

// add adds one event. Events that change nothing of what is searched for are passed over.
func (a adder) add(r events.Recorded) error {
	switch e := r.Event.(type) {
	case *events.MessagePosted:
		return a.message(row{
			number: e.Number, id: e.Message, kind: "message", sender: e.From, recipient: e.To, reply: e.ReplyTo, thread: e.Thread, date: e.Date, priority: e.Priority.Rank(), subject: e.Subject,
		}, textOf(e.Text))
	case *events.FormRequested:
		call, err := a.called(e)
		if err != nil {
			return err
		}
		return a.message(row{
			number: e.Number, id: e.ID, kind: kindOf(e.Kind), sender: e.From, recipient: e.To, reply: e.ReplyTo, date: e.Date, subject: e.Title, call: call,
		}, formText(e.Description, e.Fields, e.Call))
	case *events.QueuedSent:
		return a.sent(e)
	case *events.FormAmended:
		return a.amended(e)
	case *events.FormAnswered:
		if err := a.decided(e); err != nil {
			return err
		}
		return a.ended(e.Form, "answered", e.By, e.Date, valueText(e.Values))
	case *events.RuleAdded:
		return a.madeRule(idBytes(e.Rule), e.Allow, false)
	case *events.MandateGiven:
		return a.madeRule(idBytes(e.Mandate), true, true)
	case *events.PolicySet:
		return a.setPolicy(e.Policy)
	case *events.RuleUsed:
		return a.ruled(e.Rule, r.At, e.Tool, e.Input)
	case *events.MandateCharged:
		return a.ruled(e.Mandate, r.At, e.Tool, e.Input)
	case *events.FormCancelled:
		return a.ended(e.Form, string(e.Reason), e.By, e.Date, e.Note)
	}
	return nil
}

// row is a message in the index.
type row struct {
	number            uint64
	id                capabilities.ID
	kind              string
	sender, recipient capabilities.ID
	reply, thread     capabilities.ID
	date              capabilities.Time
	priority          int
	subject           string
	call              int64
}

func kindOf(k events.FormKind) string {
	if k == events.PlainForm {
		return "form"
	}
	return string(k)
}

func (a adder) message(m row, body string) error {
	at := a.place<<32 | int64(m.number)
	thread, err := a.threadOf(m)
	if err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "INSERT INTO message (row, id, kind, sender, recipient, thread, date, priority, subject, call) VALUES (?,?,?,?,?,?,?,?,?,?)",
		at, idBytes(m.id), m.kind, idBytes(m.sender), idBytes(m.recipient), thread, int64(m.date), m.priority, m.subject, m.call)
	if err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "INSERT INTO asked (rowid, subject, body) VALUES (?,?,?)", at, folded(m.subject), folded(body))
	return err
}

// threadOf returns the first message of a message's thread, as far back as this mailbox has it.
func (a adder) threadOf(m row) (thread []byte, err error) {
	switch {
	case !m.thread.IsZero():
		return idBytes(m.thread), nil
	case m.reply.IsZero():
		return idBytes(m.id), nil
	}
	err = a.tx.QueryRowContext(a.ctx, "SELECT thread FROM message WHERE id = ? AND row BETWEEN ? AND ?", idBytes(m.reply), a.place<<32, a.place<<32|0xffffffff).Scan(&thread)
	if errors.Is(err, sql.ErrNoRows) {
		return idBytes(m.reply), nil
	}
	return thread, err
}

// rowOf returns the row of a form; 0 if it is not here.
func (a adder) rowOf(form capabilities.ID) (at int64, err error) {
	err = a.tx.QueryRowContext(a.ctx, "SELECT row FROM message WHERE id = ? AND row BETWEEN ? AND ?", idBytes(form), a.place<<32, a.place<<32|0xffffffff).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// sent records whom a message went to that was queued for an answer.
func (a adder) sent(e *events.QueuedSent) error {
	at, err := a.rowOf(e.Message)
	if err != nil || at == 0 {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "UPDATE message SET recipient = ? WHERE row = ?", idBytes(e.To), at)
	return err
}

func (a adder) amended(e *events.FormAmended) error {
	at, err := a.rowOf(e.Form)
	if err != nil || at == 0 {
		return err
	}
	if _, err := a.tx.ExecContext(a.ctx, "UPDATE message SET subject = ? WHERE row = ?", e.Title, at); err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "INSERT OR REPLACE INTO asked (rowid, subject, body) VALUES (?,?,?)", at, folded(e.Title), folded(formText(e.Description, e.Fields, nil)))
	return err
}

// ended records the end of a form.
func (a adder) ended(form capabilities.ID, outcome string, by capabilities.ID, date capabilities.Time, words string) error {
	at, err := a.rowOf(form)
	if err != nil || at == 0 {
		return err
	}
	if _, err := a.tx.ExecContext(a.ctx, "UPDATE message SET outcome = ?, decider = ?, decided = ? WHERE row = ?", outcome, idBytes(by), int64(date), at); err != nil {
		return err
	}
	if words == "" {
		return nil
	}
	_, err = a.tx.ExecContext(a.ctx, "INSERT OR REPLACE INTO answered (rowid, body) VALUES (?,?)", at, folded(words))
	return err
}

// folded returns a text as it is matched: bounded, and without differences of case, form and accent, as between ß and ss, or ł and l.
func folded(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxBody)], "")
	if isASCII(text) { // the index folds these
		return text
	}
	return apart(unaccented(cases.Fold().String(norm.NFKC.String(text))))
}

// accents are what may be left out in writing. The index itself knows those of Latin letters alone, and takes other points for the end of a
// word.
var accents = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x300, Hi: 0x36f, Stride: 1}, {Lo: 0x591, Hi: 0x5bd, Stride: 1}, {Lo: 0x5bf, Hi: 0x5bf, Stride: 1}, {Lo: 0x5c1, Hi: 0x5c2, Stride: 1},
	{Lo: 0x5c4, Hi: 0x5c5, Stride: 1}, {Lo: 0x5c7, Hi: 0x5c7, Stride: 1}, {Lo: 0x64b, Hi: 0x65f, Stride: 1}, {Lo: 0x670, Hi: 0x670, Stride: 1},
}}

// stroked are the letters that do not come apart into one and an accent.
var stroked = map[rune]string{'ł': "l", 'ø': "o", 'đ': "d", 'ħ': "h", 'ŧ': "t", 'ı': "i", 'æ': "ae", 'œ': "oe"}

// unaccented returns a text without accents. In Cyrillic it leaves out the stress and the dots of ё: й and ї are letters of their own.
func unaccented(text string) string {
	var b strings.Builder
	var letter rune // that accents stand on
	for _, r := range norm.NFD.String(text) {
		plain, isStroked := stroked[r]
		switch {
		case isStroked:
			b.WriteString(plain)
		case !unicode.Is(accents, r):
			b.WriteRune(r)
			letter = r
		case unicode.Is(unicode.Cyrillic, letter) && r != '\u0300' && r != '\u0301' && (r != '\u0308' || letter != 'е'):
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// unspaced are the scripts that put no spaces between words: for the index, which knows words by those alone, a sentence would be one word.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// apart has each letter of these scripts stand alone. What is searched for is written so too, and is a phrase: its letters in a row.
func apart(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unspaced...) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if alone := unicode.In(r, unspaced...) && unicode.IsLetter(r); alone {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// textOf returns the words of a message with the names of what it carries.
func textOf(spans []events.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Words)
		if s.Edge != "" {
			b.WriteString(" " + s.Edge + " ")
		}
	}
	return b.String()
}

// formText returns the words of a question.
func formText(description string, fields []events.Field, call *events.Call) string {
	words := []string{description}
	if call != nil {
		words = append(words, call.Folder, call.Reason, call.Part)
		if u := call.Use; u != nil {
			words = append(words, u.Holder, u.Name, u.Called)
		}
	} else {
		for _, f := range fields {
			words = append(words, f.Name, f.Label, f.Help)
			for _, o := range f.Options {
				words = append(words, o.Value, o.Label)
			}
		}
	}
	return strings.Join(words, "\n")
}

// valueText returns the texts and numbers in a value. Those that are sealed are left out.
func valueText(v capabilities.Value) string {
	var words []string
	_, _ = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) { // the function returns no error, so neither does Map
		if s, ok := leaf.AsString(); ok {
			words = append(words, s)
		}
		_, whole := leaf.AsInt()
		if _, broken := leaf.AsFloat(); whole || broken {
			words = append(words, leaf.Text())
		}
		return leaf, nil
	})
	return strings.Join(words, "\n")
}
