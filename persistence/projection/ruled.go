package projection

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"parley/capabilities"
)

// Ruled is a call that was decided without a question: by a standing rule, a mandate, or the agent's policy. Version is that of the event
// which says so, and ByVersion of the one that made the rule or gave the mandate; 0 for the policy. Both are in the agent's mailbox.
type Ruled struct {
	ID        int64 // in the order in which the index came to know them
	Agent     capabilities.ID
	At        capabilities.Time
	Allowed   bool
	Version   uint64
	ByVersion uint64
}

// RuledQuery describes calls that were decided without a question. A zero member fits all.
type RuledQuery struct {
	Agents  []capabilities.ID // in whose mailboxes they are; none for none
	Words   string            // as in Query
	Tool    string
	Verdict string
	Since   capabilities.Time
	Before  capabilities.Time // only those before it, and those at it whose ID is below BeforeID
	BeforeID,
	Limit int64
}

// byPolicy is what decides in place of a rule.
var byPolicy = []byte{}

// policies are the verdicts of the policies that decide calls.
var policies = map[string]bool{"never": true, "deny": false}

// madeRule keeps what a rule or a mandate does with the calls that it covers. The last event with it counts.
func (a adder) madeRule(id []byte, allows, isMandate bool) error {
	_, err := a.tx.ExecContext(a.ctx, "INSERT INTO rule (place, id, allow, mandate, version) VALUES (?,?,?,?,?) ON CONFLICT (place, id) DO UPDATE SET allow = excluded.allow, version = excluded.version",
		a.place, id, allows, isMandate, int64(a.version))
	return err
}

// Mandated returns the mailboxes whose agents have or had mandates, by the bytes of their IDs: see Key.
func (x *Index) Mandated(ctx context.Context) (mailboxes map[string]bool, err error) {
	mailboxes = map[string]bool{}
	err = x.using(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT DISTINCT m.agent FROM rule r JOIN mailbox m ON m.place = r.place WHERE r.mandate")
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var agent []byte
			if err := rows.Scan(&agent); err != nil {
				return err
			}
			mailboxes[string(agent)] = true
		}
		return rows.Err()
	})
	return mailboxes, err
}

// setPolicy keeps what the policy does with calls that no rule covers.
func (a adder) setPolicy(policy string) error {
	allows, decides := policies[policy]
	if !decides {
		return nil
	}
	return a.madeRule(byPolicy, allows, false)
}

// ruled adds a call that a rule or a mandate has decided; with a zero ID, the policy. What several of them decide together is one call.
func (a adder) ruled(by capabilities.ID, at capabilities.Time, tool, input string) error {
	h := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(tool), tool, input))
	key := h[:16]
	again, err := a.tx.ExecContext(a.ctx, "UPDATE ruled SET last = ? WHERE place = ? AND last = ? AND at = ? AND key = ? AND rule <> ?", int64(a.version), a.place, int64(a.version)-1, int64(at), key, idBytes(by))
	if err != nil {
		return err
	}
	if n, err := again.RowsAffected(); n > 0 || err != nil {
		return err
	}
	allows := true // by a rule from before the index knew the mailbox
	err = a.tx.QueryRowContext(a.ctx, "SELECT allow FROM rule WHERE place = ? AND id = ?", a.place, idBytes(by)).Scan(&allows)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	verdict := Denied
	if allows {
		verdict = Allowed
	}
	made, err := a.tx.ExecContext(a.ctx, "INSERT INTO ruled (place, version, last, at, rule, tool, key, verdict) VALUES (?,?,?,?,?,?,?,?)", a.place, int64(a.version), int64(a.version), int64(at), idBytes(by), tool, key, verdict)
	if err != nil {
		return err
	}
	id, err := made.LastInsertId()
	if err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, "INSERT INTO acted (rowid, body) VALUES (?,?)", id, folded(tool+"\n"+input))
	return err
}

// Ruled returns calls that were decided without a question, the newest first, and at most as many as the query's limit.
func (x *Index) Ruled(ctx context.Context, q RuledQuery) (all []Ruled, err error) {
	words := match("", q.Words)
	if len(q.Agents) == 0 || q.Words != "" && words == "" {
		return nil, nil
	}
	conditions := []string{"m.agent IN (" + strings.TrimSuffix(strings.Repeat("?,", len(q.Agents)), ",") + ")"}
	values := ids(q.Agents...)
	cond := func(text string, some ...any) { conditions, values = append(conditions, text), append(values, some...) }
	if words != "" {
		cond("r.id IN (SELECT rowid FROM acted WHERE acted MATCH ?)", words)
	}
	if q.Tool != "" {
		cond("r.tool = ?", q.Tool)
	}
	if q.Verdict != "" {
		cond("r.verdict = ?", q.Verdict)
	}
	if q.Since != 0 {
		cond("r.at >= ?", int64(q.Since))
	}
	if q.Before != 0 {
		cond("(r.at, r.id) < (?, ?)", int64(q.Before), q.BeforeID)
	}
	byID := make(map[string]capabilities.ID, len(q.Agents))
	for _, id := range q.Agents {
		byID[Key(id)] = id
	}
	err = x.using(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT r.id, m.agent, r.at, r.verdict, r.version, coalesce(b.version, 0) FROM ruled r
			JOIN mailbox m ON m.place = r.place LEFT JOIN rule b ON b.place = r.place AND b.id = r.rule AND r.rule <> x''
			WHERE `+strings.Join(conditions, " AND ")+" ORDER BY r.at DESC, r.id DESC LIMIT ?", append(values, q.Limit)...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var one Ruled
			var agent []byte
			verdict := ""
			if err := rows.Scan(&one.ID, &agent, &one.At, &verdict, &one.Version, &one.ByVersion); err != nil {
				return err
			}
			one.Agent, one.Allowed = byID[string(agent)], verdict == Allowed
			all = append(all, one)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, x.replaced(ctx, err)
	}
	return all, nil
}
