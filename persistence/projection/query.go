package projection

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"parley/capabilities"
)

// Order is the order of what a search finds.
type Order string

// The orders.
const (
	Newest    Order = ""          // the highest number first
	Oldest    Order = "oldest"    // the lowest number first
	Relevance Order = "relevance" // the best match of the words first, then the newest
	Urgency   Order = "urgency"   // by priority, then the newest
	BySubject Order = "subject"   // by subject, then the newest
	Ended     Order = "ended"     // only forms that have ended: the end that was last first
)

// Query describes messages of a mailbox. A zero member fits all.
type Query struct {
	// Words have to be in the message with its subject or in its answer, all of them. A word in quotation marks with others is a
	// phrase, one that ends with * the beginning of a word.
	Words     string
	Subject   string // words of the subject alone, in the same form
	Sender    []capabilities.ID
	Recipient capabilities.ID
	Decider   capabilities.ID
	Thread    capabilities.ID // any message of it that is in the mailbox
	Kinds     []string        // message, form, request, approval
	Outcomes  []string        // answered, declined, cancelled, expired, superseded
	Verdict   string          // Allowed or Denied: approvals that were answered so
	Tool      string          // approvals of calls of that tool
	Since     capabilities.Time
	Until     capabilities.Time
	Before    uint64 // only numbers below it, if it is not 0; with Ended, only what ended before the form of that number
	Order     Order
	Skip      int // matches to leave out, those before in the order
	Limit     int // 0 is 100
}

// Bounds of a query.
const (
	MaxWords     = 32   // and phrases, of Words or Subject
	MaxText      = 1000 // bytes of Words or Subject
	defaultLimit = 100
	MaxFound     = 1000 // Limit, and Skip
)

// match returns words as the index matches them: each is quoted, so that none is an operator. It is "" for none.
func match(column, words string) string {
	terms := termsOf(words)
	if len(terms) == 0 {
		return ""
	}
	return column + "(" + strings.Join(terms, " AND ") + ")"
}

// termsOf returns the first MaxWords of the Terms, each once.
func termsOf(words string) (terms []string) {
	for _, term := range Terms(words) {
		if len(terms) < MaxWords && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return terms
}

// Terms returns the words and phrases that are searched for, as the index matches them. A search has MaxWords of them at most.
func Terms(words string) (terms []string) {
	add := func(term string, prefix bool) {
		if !strings.ContainsFunc(term, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			return
		}
		term = folded(term)
		quoted := `"` + strings.ReplaceAll(term, `"`, `""`) + `"`
		if prefix {
			quoted += "*"
		}
		terms = append(terms, quoted)
	}
	for i, part := range strings.Split(strings.ReplaceAll(words, "\x00", " "), `"`) {
		if i%2 == 1 {
			add(part, false)
			continue
		}
		for _, word := range strings.Fields(part) {
			whole, prefix := strings.CutSuffix(word, "*")
			add(whole, prefix)
		}
	}
	return terms
}

// Find returns the numbers of the messages that fit a query, in its order, and whether there may be more. It fails with ErrOrder if the
// file turned out to be damaged: it is empty then.
func (x *Index) Find(ctx context.Context, mailbox capabilities.ID, q Query) (found []uint64, more bool, err error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, MaxFound)
	q.Skip = max(0, min(q.Skip, MaxFound))
	err = x.using(func(db *sql.DB) error {
		place, _, err := place(ctx, db, mailbox)
		if err != nil || place == 0 {
			return err
		}
		text, args, none := q.statement(place)
		if none {
			return nil
		}
		rows, err := db.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var row int64
			if err := rows.Scan(&row); err != nil {
				return err
			}
			found = append(found, uint64(row&0xffffffff))
		}
		return rows.Err()
	})
	if err != nil {
		return nil, false, fmt.Errorf("search: %w", x.replaced(ctx, err))
	}
	if more = len(found) > q.Limit; more {
		found = found[:q.Limit]
	}
	return found, more, nil
}

// statement returns the query in SQL. None reports words that no message can have.
func (q Query) statement(place int64) (text string, args []any, none bool) {
	words, subject := match("", q.Words), match("subject : ", q.Subject)
	if q.Words != "" && words == "" || q.Subject != "" && subject == "" {
		return "", nil, true
	}
	first, last := place<<32, place<<32|0xffffffff
	if q.Before > 0 && q.Order != Ended {
		last = place<<32 | int64(min(q.Before-1, 0xffffffff))
	}
	conditions, values := q.conditions(first, place<<32|0xffffffff)
	if subject != "" {
		conditions = append(conditions, "m.row IN (SELECT rowid FROM asked WHERE asked MATCH ? AND rowid BETWEEN ? AND ?)")
		values = append(values, subject, first, last)
	}
	if q.Order == Ended {
		conditions, values = append(conditions, "(m.row >> 32) = ?", "m.outcome <> ''"), append(values, place)
		if q.Before > 0 {
			conditions = append(conditions, "(m.decided, m.row) < (SELECT decided, row FROM message WHERE row = ?)")
			values = append(values, place<<32|int64(min(q.Before, 0xffffffff)))
		}
	}
	order, ok := map[Order]string{Newest: "row DESC", Oldest: "row", Relevance: "rank, row DESC", Urgency: "priority, row DESC", BySubject: "subject COLLATE NOCASE, row DESC", Ended: "decided DESC, row DESC"}[q.Order]
	if !ok {
		return "", nil, true
	}
	most := q.Skip + q.Limit + 1
	part := func(row, rank, from string, more ...any) string {
		args = append(append(append(args, more...), values...), most)
		inOrder := order
		if inRows, ok := strings.CutPrefix(order, "row"); ok { // a table is read in the order of its own rows until there are enough
			inOrder, rank = row+inRows, "0"
		}
		return fmt.Sprintf("SELECT %s AS row, %s AS rank, m.priority AS priority, m.subject AS subject, m.decided AS decided FROM %s WHERE %s ORDER BY %s LIMIT ?",
			row, rank, from, strings.Join(conditions, " AND "), inOrder)
	}
	if words == "" && q.Order != Ended { // that has the rows of one mailbox in its own order
		conditions = append(conditions, "m.row BETWEEN ? AND ?")
		values = append(values, first, last)
		text = part("m.row", "0", "message m")
	} else if words == "" {
		text = part("m.row", "0", "message m")
	} else {
		conditions = append([]string{""}, conditions...)
		in := func(table, also string, more ...any) {
			conditions[0] = table + " MATCH ? AND " + table + ".rowid BETWEEN ? AND ?" + also
			if text != "" {
				text += ") UNION ALL SELECT * FROM ("
			}
			text += part(table+".rowid", table+".rank", table+" CROSS JOIN message m ON m.row = "+table+".rowid", more...)
		}
		in("asked", "", words, first, last)
		in("answered", "", words, first, last)
		if terms := termsOf(q.Words); len(terms) > 1 { // some are in the answer, and the others in the question
			also, more := "", []any{"(" + strings.Join(terms, " OR ") + ")", first, last}
			for _, term := range terms {
				also += " AND (m.row IN (SELECT rowid FROM asked WHERE asked MATCH ? AND rowid BETWEEN ? AND ?) OR m.row IN (SELECT rowid FROM answered WHERE answered MATCH ? AND rowid BETWEEN ? AND ?))"
				more = append(more, term, first, last, term, first, last)
			}
			in("answered", also, more...)
		}
		text = "SELECT row, min(rank) AS rank, priority, subject, decided FROM (SELECT * FROM (" + text + ")) GROUP BY row ORDER BY " + order + " LIMIT ?"
		args = append(args, most)
	}
	args = append(args, q.Limit+1, q.Skip)
	return "SELECT row FROM (" + text + ") ORDER BY " + order + " LIMIT ? OFFSET ?", args, false
}

// conditions returns the conditions on a message, with their values.
func (q Query) conditions(first, last int64) (conditions []string, values []any) {
	cond := func(text string, some ...any) { conditions, values = append(conditions, text), append(values, some...) }
	oneOf := func(column string, some []any) {
		if len(some) > 0 {
			cond("m."+column+" IN ("+strings.Join(slices.Repeat([]string{"?"}, len(some)), ",")+")", some...)
		}
	}
	oneOf("sender", ids(q.Sender...))
	oneOf("recipient", ids(q.Recipient))
	oneOf("decider", ids(q.Decider))
	oneOf("kind", texts(q.Kinds))
	oneOf("outcome", texts(q.Outcomes))
	if q.Verdict != "" {
		cond("m.verdict = ?", q.Verdict)
	}
	if q.Tool != "" {
		cond("m.kind = 'approval' AND m.subject = ?", q.Tool)
	}
	if !q.Thread.IsZero() {
		thread := idBytes(q.Thread)
		cond("m.thread = coalesce((SELECT thread FROM message WHERE id = ? AND row BETWEEN ? AND ?), ?)", thread, first, last, thread)
	}
	if q.Since != 0 {
		cond("m.date >= ?", int64(q.Since))
	}
	if q.Until != 0 {
		cond("m.date < ?", int64(q.Until))
	}
	return conditions, values
}

// ids returns IDs as values, without zero ones.
func ids(some ...capabilities.ID) (values []any) {
	for _, id := range some {
		if !id.IsZero() {
			values = append(values, idBytes(id))
		}
	}
	return values
}

func texts(some []string) (values []any) {
	for _, s := range some {
		values = append(values, s)
	}
	return values
}
