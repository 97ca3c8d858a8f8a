package projection

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"

	"parley/capabilities"
	"parley/events"
)

// Call is a call that an agent has asked permission for, with what was decided about it by whom it asked. Calls that were
// decided without a question are none of these, but Ruled.
type Call struct {
	ID     int64 // in the order in which they were first asked
	Tool   string
	Folder string
	Input  string // "" if it is longer than MaxCall
	Asked  int    // how often

	Allowed, Denied         int   // how often it was decided so
	AllowedLast, DeniedLast int64 // the numbers of the last approvals that were decided so, in the agent's mailbox; -1 for none
}

// MaxCall bounds the inputs that are kept, in bytes.
const MaxCall = 16 << 10

// called counts a call that the mailbox's agent asks permission for, and returns the ID of the call; 0 for another form.
func (a adder) called(e *events.FormRequested) (call int64, err error) {
	if e.Kind != events.Approval || e.From != a.self {
		return 0, nil
	}
	folder := ""
	if e.Call != nil {
		folder = e.Call.Folder
	}
	h := sha256.New()
	for _, part := range []string{e.Title, folder, e.Description} {
		fmt.Fprintf(h, "%d:", len(part)) //nolint:errcheck // a hash takes all
		_, _ = io.WriteString(h, part)
	}
	input := e.Description
	if len(input) > MaxCall {
		input = ""
	}
	err = a.tx.QueryRowContext(a.ctx, `INSERT INTO call (place, key, tool, folder, input, asked) VALUES (?,?,?,?,?,1)
		ON CONFLICT (place, key) DO UPDATE SET asked = asked + 1 RETURNING id`, a.place, h.Sum(nil)[:16], e.Title, folder, input).Scan(&call)
	return call, err
}

// decided keeps the decision about a call, and counts it.
func (a adder) decided(e *events.FormAnswered) error {
	values, _ := e.Values.AsRecord()
	decision, _ := values["decision"].AsString()
	verdict := ""
	switch decision {
	case "once", "always":
		verdict = Allowed
	case "deny", "never":
		verdict = Denied
	default:
		return nil
	}
	at, err := a.rowOf(e.Form)
	if err != nil || at == 0 {
		return err
	}
	if _, err := a.tx.ExecContext(a.ctx, "UPDATE message SET verdict = ? WHERE row = ? AND kind = 'approval'", verdict, at); err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "UPDATE call SET "+verdict+" = "+verdict+" + 1, "+verdict+"_last = ? WHERE id = (SELECT call FROM message WHERE row = ?)", at&0xffffffff, at)
	return err
}

// The verdicts on a call.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// Tools returns the tools of which the agent of a mailbox asked about calls, at most so many.
func (x *Index) Tools(ctx context.Context, mailbox capabilities.ID, limit int) (tools []string, err error) {
	err = x.using(func(db *sql.DB) error {
		n, _, err := place(ctx, db, mailbox)
		if err != nil || n == 0 {
			return err
		}
		rows, err := db.QueryContext(ctx, "SELECT DISTINCT tool FROM call WHERE place = ? ORDER BY tool LIMIT ?", n, limit)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var tool string
			if err := rows.Scan(&tool); err != nil {
				return err
			}
			tools = append(tools, tool)
		}
		return rows.Err()
	})
	return tools, err
}

// Calls returns calls of a tool that the agent of a mailbox asked about, the newest first, from before the call with an ID; before 0
// is the end. It returns at most so many.
func (x *Index) Calls(ctx context.Context, mailbox capabilities.ID, tool string, before int64, limit int) (calls []Call, err error) {
	err = x.using(func(db *sql.DB) error {
		n, _, err := place(ctx, db, mailbox)
		if err != nil || n == 0 {
			return err
		}
		if before == 0 {
			before = 1 << 62
		}
		rows, err := db.QueryContext(ctx, `SELECT id, folder, input, asked, allowed, denied, allowed_last, denied_last FROM call
			WHERE place = ? AND tool = ? AND id < ? ORDER BY id DESC LIMIT ?`, n, tool, before, limit)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		calls = make([]Call, 0, limit)
		for rows.Next() {
			c := Call{Tool: tool}
			if err := rows.Scan(&c.ID, &c.Folder, &c.Input, &c.Asked, &c.Allowed, &c.Denied, &c.AllowedLast, &c.DeniedLast); err != nil {
				return err
			}
			calls = append(calls, c)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, x.replaced(ctx, err)
	}
	return calls, nil
}
