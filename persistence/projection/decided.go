package projection

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"parley/capabilities"
)

// Decided is how many calls of a mailbox's agent were decided since a time, as far as the index has the mailbox.
type Decided struct {
	Version         uint64 // of the last event that is in the index
	Allowed, Denied int
}

// Decided counts the decisions since a time about calls of the agents of several mailboxes: of those whom they asked, and of rules, mandates
// and policies without a question. Mailboxes that the index does not have are left out. It waits for nobody who adds events.
func (x *Index) Decided(ctx context.Context, since capabilities.Time, agents []capabilities.ID) (all map[capabilities.ID]Decided, err error) {
	if len(agents) == 0 {
		return nil, nil
	}
	byKey := make(map[string]capabilities.ID, len(agents))
	for _, id := range agents {
		byKey[Key(id)] = id
	}
	all = make(map[capabilities.ID]Decided, len(agents))
	err = x.using(func(db *sql.DB) error {
		// Both tables are read from the time on, each by its index: what is from before costs nothing. A + keeps the affinity of a column from
		// a comparison that an index of an expression answers, and the order of another index from the groups.
		rows, err := db.QueryContext(ctx, `WITH of AS MATERIALIZED (SELECT place, agent, version FROM mailbox WHERE agent IN (`+strings.Join(slices.Repeat([]string{"?"}, len(agents)), ",")+`)),
			made (place, verdict, n) AS (
				SELECT o.place, d.verdict, count(*) FROM of o CROSS JOIN message d ON (d.row >> 32) = +o.place WHERE d.outcome <> '' AND d.decided >= ? AND d.call > 0 GROUP BY 1, 2
				UNION ALL SELECT place, verdict, count(*) FROM ruled WHERE at >= ? GROUP BY +place, verdict)
			SELECT o.agent, o.version, coalesce(sum(m.n) FILTER (WHERE m.verdict = 'allowed'), 0), coalesce(sum(m.n) FILTER (WHERE m.verdict = 'denied'), 0)
			FROM of o LEFT JOIN made m ON m.place = o.place GROUP BY o.place`, append(ids(agents...), int64(since), int64(since))...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var agent []byte
			var d Decided
			if err := rows.Scan(&agent, &d.Version, &d.Allowed, &d.Denied); err != nil {
				return err
			}
			all[byKey[string(agent)]] = d
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("count decisions: %w", x.replaced(ctx, err))
	}
	return all, nil
}

// replaced returns the error of a query. If the file has turned out to be damaged, it is replaced, and the error is ErrOrder.
func (x *Index) replaced(ctx context.Context, err error) error {
	if !isCorrupt(err) { // a query is never the reason
		return err
	}
	if again := x.Remake(ctx); again != nil {
		return again
	}
	return fmt.Errorf("%w: %w", ErrOrder, err)
}
