package mailbox

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/mailbox/index"
	"parley/mailbox/table"
)

// Index lists the messages of a mailbox, whether they are in memory or not. It counts them, and knows which changed last.
// Methods fail with PagedOut where a page is not in memory.
type Index struct {
	entries index.Index
	recent  index.Changes
	tally   *tally // nil if it is not known

	unoffered *unoffered // nil if it is not kept
}

func newIndex(self capabilities.ID) Index {
	return Index{entries: index.New(self.Node, pageLength), tally: &tally{}}
}

// pageLength is the number of messages in a page of the index.
const pageLength = 1 << 10

// Len returns the number of messages. Their numbers begin at 0.
func (x *Index) Len() uint64 { return x.entries.Len() }

// Has reports whether a message or form is here. It fails with PagedOut.
func (x *Index) Has(id capabilities.ID) (bool, error) {
	_, ok, err := x.NumberOf(id)
	return ok, err
}

// NumberOf returns the number of the message or form with an ID. It fails with PagedOut.
func (x *Index) NumberOf(id capabilities.ID) (n uint64, ok bool, err error) {
	n, ok, pages := x.entries.Find(id)
	if !ok && len(pages) > 0 {
		return 0, false, x.absent(pages...)
	}
	return n, ok, nil
}

// absent returns the error for pages of the index.
func (x *Index) absent(pages ...int) error {
	a := &PagedOut{}
	for _, i := range pages {
		a.Pages = append(a.Pages, x.entries.PageAt(i))
	}
	return a
}

// entry returns the entry of a message. It fails with PagedOut.
func (x *Index) entry(n uint64) (*index.Entry, error) {
	if !x.entries.Has(n) {
		return nil, x.absent(x.entries.PageOf(n))
	}
	return x.entries.At(n), nil
}

// PagedOutPages returns the pages that are not in memory.
func (x *Index) PagedOutPages() []Page { return x.entries.PagedOut() }

// IsAbsent reports whether a page is not in memory.
func (x *Index) IsAbsent(p Page) bool { return !x.entries.Has(x.entries.FirstOf(p.Number)) }

// PagesOf returns the pages of messages that are not in memory.
func (x *Index) PagesOf(numbers []uint64) []Page {
	pages := map[int]Page{}
	for _, n := range numbers {
		if n < x.Len() && !x.entries.Has(n) {
			pages[x.entries.PageOf(n)] = x.entries.PageAt(x.entries.PageOf(n))
		}
	}
	return slices.Collect(maps.Values(pages))
}

// PageIn brings a page of the index into memory. It fails for bytes that are not those of the page.
func (x *Index) PageIn(p Page, encoded []byte) error { return x.entries.PageIn(p.Number, encoded) }

// Remake brings all pages of the index into memory that are not there. It takes them from the mail of a state that has
// the same messages, and all pages in memory.
func (x *Index) Remake(whole *Index) {
	for _, p := range x.entries.PagedOut() {
		x.entries.Remake(p.Number, &whole.entries)
	}
}

// Stored notes that pages are stored. PageOut may let them go out of memory.
func (x *Index) Stored(pages ...Page) {
	for _, p := range pages {
		x.entries.Stored(p)
	}
}

// PageOut lets stored pages go out of memory until at most some are left.
func (x *Index) PageOut(most int) { x.entries.PageOut(most) }

// Versions returns the versions of the events that a message is made of, oldest first. The message's page has to be in
// memory.
func (x *Index) Versions(number uint64) []uint64 { return x.entries.Versions(number) }

// VersionsOf is Versions for any message. It fails with PagedOut.
func (x *Index) VersionsOf(number uint64) ([]uint64, error) {
	if err := x.needPages(number); err != nil {
		return nil, err
	}
	return x.Versions(number), nil
}

// needPages fails with PagedOut if pages of messages are not in memory.
func (x *Index) needPages(numbers ...uint64) error {
	if pages := x.PagesOf(numbers); len(pages) > 0 {
		return &PagedOut{Pages: pages}
	}
	return nil
}

// otherSnapshots returns the versions of further events of messages. If open, it leaves out those in sealed pages.
func (x *Index) otherSnapshots(open bool) (all []otherSnapshot) {
	for n, versions := range x.entries.Noted(open) {
		all = append(all, otherSnapshot{Number: n, Versions: versions})
	}
	return all
}

func isDone(e *index.Entry) bool {
	return e.Is(index.Received) && (e.Is(index.Dismissed) || e.Is(index.Form) && e.Settled != 0)
}

// canBeUnread reports whether a message is unread as long as it is not marked as read: one from another, or a note of the agent to
// itself, which reminds it.
func canBeUnread(e *index.Entry) bool {
	return e.Is(index.Received) && (!e.Is(index.Sent) || !e.Is(index.Form)) && !isDone(e)
}

func isUnread(e *index.Entry) bool { return canBeUnread(e) && !e.Is(index.Read) }

// tally counts the messages of an index that are done and unread.
type tally struct{ Done, Unread int }

func (t *tally) add(e *index.Entry, n int) {
	if t == nil {
		return
	}
	if isDone(e) {
		t.Done += n
	}
	if isUnread(e) {
		t.Unread += n
	}
}

// Counted reports whether Counts is known without Recount.
func (x *Index) Counted() bool { return x.tally != nil }

// Picked returns the number of messages that are done, or of those that are unread. The counts have to be known.
func (x *Index) Picked(done bool) int {
	if done {
		return x.tally.Done
	}
	return x.tally.Unread
}

// Recount sets the counts from all messages of the mailbox. It fails with the error that comes with them.
func (x *Index) Recount(all iter.Seq2[Listed, error]) error {
	t := &tally{}
	for m, err := range all {
		if err != nil {
			return err
		}
		if m.Done {
			t.Done++
		}
		if m.Unread {
			t.Unread++
		}
	}
	x.tally = t
	return nil
}

// countAll counts the messages if all pages of the index are in memory.
func (x *Index) countAll() {
	if x.tally != nil || len(x.entries.PagedOut()) > 0 {
		return
	}
	x.tally = &tally{}
	for n := range x.Len() {
		x.tally.add(x.entries.At(n), 1)
	}
}

// IsUnread reports whether a message is unread. It fails with PagedOut.
func (x *Index) IsUnread(n uint64) (bool, error) {
	e, err := x.entry(n)
	return err == nil && isUnread(e), err
}

// change changes the entry of a message, and counts it anew.
func (x *Index) change(n uint64, do func(*index.Entry)) {
	e := x.entries.Change(n)
	x.tally.add(e, -1)
	do(e)
	x.tally.add(e, 1)
	x.unoffered.note(n, e)
}

// touch notes a change of a message at a version of the mailbox.
func (x *Index) touch(n, version uint64) {
	x.entries.Change(n).Changed = uint32(version)
	x.recent.Add(version, n)
}

func (x *Index) setRead(n uint64, read bool) {
	x.change(n, func(e *index.Entry) {
		if e.Flags |= index.Read; !read {
			e.Flags &^= index.Read
		}
	})
}

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
	Unoffered bool // it may be offered to a reader, if no reader was offered it
}

func listed(n uint64, e *index.Entry) Listed {
	return Listed{
		Number: n, Changed: uint64(e.Changed),
		Sent: e.Is(index.Sent), Received: e.Is(index.Received), Dismissed: e.Is(index.Dismissed),
		Form: e.Is(index.Form), Open: e.IsOpen(),
		Snoozed: e.Is(index.Snoozed), Done: isDone(e), Unread: isUnread(e), Unoffered: isOfferable(e),
	}
}

// Listed returns how a message is listed. The number has to be that of a message. It fails with PagedOut.
func (x *Index) Listed(n uint64) (Listed, error) {
	e, err := x.entry(n)
	if err != nil {
		return Listed{}, err
	}
	return listed(n, e), nil
}

// List returns the messages of a page of the index, from a number on; none if there are no more. It fails with PagedOut.
func (x *Index) List(first uint64) ([]Listed, error) {
	if first >= x.Len() {
		return nil, nil
	}
	if _, err := x.entry(first); err != nil {
		return nil, err
	}
	var all []Listed
	for n, e := range x.entries.Page(x.entries.PageOf(first), first) {
		all = append(all, listed(n, e))
	}
	return all, nil
}

// ListBack returns the messages of a page of the index before a number, the newest first; none if there are no more. It
// fails with PagedOut.
func (x *Index) ListBack(before uint64) ([]Listed, error) {
	if before = min(before, x.Len()); before == 0 {
		return nil, nil
	}
	if _, err := x.entry(before - 1); err != nil {
		return nil, err
	}
	var all []Listed
	for n := before; n > 0 && x.entries.PageOf(n-1) == x.entries.PageOf(before-1); n-- {
		all = append(all, listed(n-1, x.entries.At(n-1)))
	}
	return all, nil
}

// Touched returns the numbers of the messages that changed after a version, each once. It reports false if too much has changed since
// then to be known.
func (x *Index) Touched(version uint64) ([]uint64, bool) {
	if !x.recent.Knows(version) {
		return nil, false
	}
	var numbers []uint64
	for _, c := range x.recent.After(version) {
		if !slices.Contains(numbers, c.Number) {
			numbers = append(numbers, c.Number)
		}
	}
	return numbers, true
}

// changedLately calls fn for the messages that changed after a version. It fails with PagedOut.
func (x *Index) changedLately(version uint64, fn func(uint64, *index.Entry)) error {
	lately := x.recent.After(version)
	var numbers []uint64
	for _, c := range lately {
		if !x.entries.Has(c.Number) {
			numbers = append(numbers, c.Number)
		}
	}
	if len(numbers) > 0 {
		return &PagedOut{Pages: x.PagesOf(numbers)}
	}
	for _, c := range lately {
		if e := x.entries.At(c.Number); uint64(e.Changed) == c.Version {
			fn(c.Number, e)
		}
	}
	return nil
}

// Keys has the numbers of what the agent sent under idempotency keys. Methods fail with PagedOut where a page of them is not
// in memory.
type Keys struct {
	asked  table.Digests // forms that the agent asked
	posted table.Digests // messages that the agent sent
}

// HasAsked reports whether the agent has asked a form under a key.
func (k *Keys) HasAsked(key string) (bool, error) {
	_, ok, err := byKey(&k.asked, key)
	return ok, err
}

// HasPosted reports whether the agent has sent a message under a key.
func (k *Keys) HasPosted(key string) (bool, error) {
	_, ok, err := byKey(&k.posted, key)
	return ok, err
}

// byKey returns the number of the message with an idempotency key, and whether there is one. The key "" is none.
func byKey(keys *table.Digests, key string) (n uint64, ok bool, err error) {
	if key == "" {
		return 0, false, nil
	}
	n, ok, err = keys.Get(index.DigestKey(key))
	return n, ok, absentTable(err)
}

// addKey enters a message under its key, if it has one.
func addKey(keys *table.Digests, key string, number uint64) {
	if key != "" {
		keys.Put(index.DigestKey(key), number)
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
// there was one. It fails with PagedOut, and takes the same page when it is called again.
func (c *ChangedMessages) Step(l *Mail) (bool, error) {
	switch {
	case c.begun:
	case c.open:
		for n := range l.waiting.From(0) {
			c.take(n, l.Index.entries.At(n))
		}
	case l.Index.recent.Knows(c.version):
		err := l.Index.changedLately(c.version, func(n uint64, e *index.Entry) { c.take(n, e) })
		if err != nil {
			return false, err
		}
	default:
		for page, least := range l.Index.entries.ChangedAfter(c.version) {
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
		if _, err := l.Index.entry(l.Index.entries.FirstOf(page.number)); err != nil {
			return false, err
		}
		for n, e := range l.Index.entries.Page(page.number, 0) {
			c.take(n, e)
		}
		c.pages = c.pages[1:]
		return true, nil
	}
	return false, nil
}

// take adds a message if it changed and fits.
func (c *ChangedMessages) take(n uint64, e *index.Entry) {
	switch {
	case uint64(e.Changed) <= c.version:
	case e.Changed > c.until:
		c.more = true
	default:
		if listed := listed(n, e); c.fits(listed) {
			c.add(listed)
		}
	}
}

// First returns the messages in the order of their changes, after the last step, and whether there may be more.
func (c *ChangedMessages) First() ([]Listed, bool) {
	c.cut()
	return c.all, c.more
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
