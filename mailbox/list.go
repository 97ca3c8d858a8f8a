package mailbox

import (
	"cmp"
	"iter"
	"slices"

	"parley/mailbox/index"
)

// Listed is how a message is listed, without the message.
type Listed struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Sent      bool
	Received  bool
	Dismissed bool
	Form      bool // a form, request or approval
	Open      bool // a form that has not ended
	Snoozed   bool
	Done      bool // received, and dismissed or settled
	Unread    bool
}

func (l *Mail) listed(n uint64, e *index.Entry) Listed {
	return Listed{
		Number: n, Changed: uint64(e.Changed),
		Sent: e.Is(index.Sent), Received: e.Is(index.Received), Dismissed: e.Is(index.Dismissed),
		Form: e.Is(index.Form), Open: e.IsOpen(),
		Snoozed: e.Is(index.Snoozed), Done: isDone(e), Unread: isUnread(e),
	}
}

// Listed returns how a message is listed. The number has to be that of a message. It fails with Absent.
func (l *Mail) Listed(n uint64) (Listed, error) {
	e, err := l.entry(n)
	if err != nil {
		return Listed{}, err
	}
	return l.listed(n, e), nil
}

// List returns the messages of a page of the index, from a number on; none if there are no more. It fails with Absent.
func (l *Mail) List(first uint64) ([]Listed, error) {
	if first >= l.Len() {
		return nil, nil
	}
	if _, err := l.entry(first); err != nil {
		return nil, err
	}
	var all []Listed
	for n, e := range l.index.Page(l.index.PageOf(first), first) {
		all = append(all, l.listed(n, e))
	}
	return all, nil
}

// ListBack returns the messages of a page of the index before a number, the newest first; none if there are no more. It
// fails with Absent.
func (l *Mail) ListBack(before uint64) ([]Listed, error) {
	if before = min(before, l.Len()); before == 0 {
		return nil, nil
	}
	if _, err := l.entry(before - 1); err != nil {
		return nil, err
	}
	var all []Listed
	for n := before; n > 0 && l.index.PageOf(n-1) == l.index.PageOf(before-1); n-- {
		all = append(all, l.listed(n-1, l.index.At(n-1)))
	}
	return all, nil
}

// ListOpen yields the open forms that the agent received, from a number on.
func (l *Mail) ListOpen(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n := range l.waiting.From(first) {
			if !yield(l.listed(n, l.index.At(n))) {
				return
			}
		}
	}
}

// ChangedMessages gathers the messages that changed first after a version, and that fit. It takes the messages of one
// page of the index at each step. So few pages are in memory at once.
type ChangedMessages struct {
	version uint64
	open    bool
	fits    func(Listed) bool
	changes

	begun bool
	pages []changedPage // still to be looked at
}

type changedPage struct {
	number int
	least  uint32 // the version of its first change
}

// NewChangedMessages returns a ChangedMessages for the first limit messages. All that changed at the same version as
// the last one are included. If open, only open forms that the agent received fit.
func NewChangedMessages(version uint64, limit int, open bool, fits func(Listed) bool) *ChangedMessages {
	return &ChangedMessages{version: version, open: open, fits: fits, changes: changes{limit: limit, until: index.MaxVersion, room: 4 * limit}}
}

// Step takes the messages of another page of the mail, which has not changed since the first step. It reports whether
// there was one. It fails with Absent, and takes the same page when it is called again.
func (c *ChangedMessages) Step(l *Mail) (bool, error) {
	switch {
	case c.begun:
	case c.open:
		for n := range l.waiting.From(0) {
			c.take(l, n, l.index.At(n))
		}
	case l.recent.Knows(c.version):
		err := l.changedLately(c.version, func(n uint64, e *index.Entry) { c.take(l, n, e) })
		if err != nil {
			return false, err
		}
	default:
		for page, least := range l.index.ChangedAfter(c.version) {
			c.pages = append(c.pages, changedPage{page, least})
		}
	}
	c.begun = true
	for ; len(c.pages) > 0; c.pages = c.pages[1:] {
		page := c.pages[0]
		if page.least > c.until {
			c.more = true
			continue
		}
		if _, err := l.entry(l.index.FirstOf(page.number)); err != nil {
			return false, err
		}
		for n, e := range l.index.Page(page.number, 0) {
			c.take(l, n, e)
		}
		c.pages = c.pages[1:]
		return true, nil
	}
	return false, nil
}

// take adds a message if it changed and fits.
func (c *ChangedMessages) take(l *Mail, n uint64, e *index.Entry) {
	switch {
	case uint64(e.Changed) <= c.version:
	case e.Changed > c.until:
		c.more = true
	default:
		if listed := l.listed(n, e); c.fits(listed) {
			c.add(listed)
		}
	}
}

// First returns the messages in the order of their changes, after the last step, and whether there may be more.
func (c *ChangedMessages) First() ([]Listed, bool) {
	c.cut()
	return c.all, c.more
}

// changedLately calls fn for the messages that changed after a version. It fails with Absent.
func (l *Mail) changedLately(version uint64, fn func(uint64, *index.Entry)) error {
	lately := l.recent.After(version)
	var numbers []uint64
	for _, c := range lately {
		if !l.index.Has(c.Number) {
			numbers = append(numbers, c.Number)
		}
	}
	if len(numbers) > 0 {
		return &Absent{Pages: l.PagesOf(numbers)}
	}
	for _, c := range lately {
		if e := l.index.At(c.Number); uint64(e.Changed) == c.Version {
			fn(c.Number, e)
		}
	}
	return nil
}

// changes are the messages that changed first.
type changes struct {
	limit, room int
	all         []Listed
	until       uint32 // messages that changed later are left out
	more        bool   // some were left out
}

func (c *changes) add(l Listed) {
	if c.all = append(c.all, l); len(c.all) > c.room {
		c.cut()
		c.room = max(4*c.limit, 2*len(c.all))
	}
}

// cut sorts the messages, and leaves out those that changed after the last one within the limit.
func (c *changes) cut() {
	slices.SortFunc(c.all, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.Changed, b.Changed), cmp.Compare(a.Number, b.Number))
	})
	if len(c.all) <= c.limit {
		return
	}
	end := c.limit
	for end < len(c.all) && c.all[end].Changed == c.all[c.limit-1].Changed {
		end++
	}
	c.more = c.more || end < len(c.all)
	c.all, c.until = c.all[:end], uint32(c.all[c.limit-1].Changed)
}

func byNumber(a, b *Message) int { return cmp.Compare(a.Number, b.Number) }
