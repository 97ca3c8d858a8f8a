package actors

import (
	"container/heap"
	linked "container/list"
	"hash/maphash"
	"sync"
	"time"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// schemaCacheSize bounds the fields and compiled schemas that a node shares between forms, in bytes.
const schemaCacheSize = 32 << 20

// schemaCache shares fields and their compiled schemas between all forms with equal fields, in whichever mailbox they
// are. A slot counts for the account that added it. When there is no room, the account with the most bytes loses a
// slot. It is the one that it has not used for the longest. So no account can take the room of another that has less.
//
// The cache saves memory and time, and nothing depends on it. An open form keeps its fields when their slot goes.
type schemaCache struct {
	seed maphash.Seed

	mu      sync.Mutex
	size    int
	free    int
	slots   map[uint64]*schemaSlot // by the digest of their fields
	used    *linked.List           // of *schemaSlot, the latest first
	sharers map[capabilities.ID]*sharer
	largest sharerHeap
}

// schemaSlot is the fields of some forms.
type schemaSlot struct {
	digest uint64
	fields []events.Field
	schema *form.Schema // nil until it is needed
	asked  bool         // the schema is within the bounds of a new form
	memory int
	used   time.Time

	sharer  *sharer
	all, of *linked.Element // in the list of the cache, and in that of the sharer
}

// sharer is an account that has added slots.
type sharer struct {
	id     capabilities.ID
	memory int
	slots  *linked.List // of *schemaSlot, the latest first
	at     int          // in the heap
}

func newSchemaCache(size int) *schemaCache {
	return &schemaCache{
		seed: maphash.MakeSeed(), size: size, free: size,
		slots: map[uint64]*schemaSlot{}, used: linked.New(), sharers: map[capabilities.ID]*sharer{},
	}
}

// digest returns the digest of fields. Nobody outside can find others with the same one.
func (c *schemaCache) digest(fields []events.Field) uint64 {
	var room [1 << 10]byte
	return maphash.Bytes(c.seed, form.AppendKey(room[:0], fields))
}

// find returns the schema of fields, or nil. A schema that was compiled for the log may be beyond the bounds of a new
// form; with asked, it is not returned.
func (c *schemaCache) find(fields []events.Field, asked bool) *form.Schema {
	digest := c.digest(fields)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[digest]
	if s == nil || s.schema == nil || asked && !s.asked || !form.SameFields(fields, s.fields) {
		return nil
	}
	c.touch(s)
	return s.schema
}

// add adds a schema on behalf of an account, and returns it. If other fields have the digest, it replaces them.
func (c *schemaCache) add(by capabilities.ID, schema *form.Schema, asked bool) *form.Schema {
	digest := c.digest(schema.Fields())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(by, &schemaSlot{digest: digest, fields: schema.Fields(), schema: schema, asked: asked, memory: schema.Memory()})
	return schema
}

// share returns fields from the log as other forms have them. If no form has them, it adds them on behalf of an account.
func (c *schemaCache) share(by capabilities.ID, fields []events.Field) []events.Field {
	digest := c.digest(fields)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[digest]; s != nil && form.SameFields(fields, s.fields) {
		c.touch(s)
		return s.fields
	}
	c.put(by, &schemaSlot{digest: digest, fields: fields, memory: form.FieldsMemory(fields)})
	return fields
}

// put adds a slot in the place of the one with its digest. It then removes slots until all fit. The caller has the lock.
func (c *schemaCache) put(by capabilities.ID, s *schemaSlot) {
	if s.memory > c.size {
		return
	}
	if was := c.slots[s.digest]; was != nil {
		c.remove(was)
	}
	s.sharer = c.sharers[by]
	if s.sharer == nil {
		s.sharer = &sharer{id: by, slots: linked.New()}
		c.sharers[by] = s.sharer
		heap.Push(&c.largest, s.sharer)
	}
	c.slots[s.digest], s.used = s, time.Now()
	s.all, s.of = c.used.PushFront(s), s.sharer.slots.PushFront(s)
	for c.grow(s, s.memory); c.free < 0; {
		c.remove(c.largest[0].slots.Back().Value.(*schemaSlot))
	}
}

// touch notes that a slot is used. The caller has the lock.
func (c *schemaCache) touch(s *schemaSlot) {
	s.used = time.Now()
	c.used.MoveToFront(s.all)
	s.sharer.slots.MoveToFront(s.of)
}

// grow counts memory for a slot. The caller has the lock.
func (c *schemaCache) grow(s *schemaSlot, memory int) {
	c.free -= memory
	s.sharer.memory += memory
	heap.Fix(&c.largest, s.sharer.at)
}

// remove takes a slot out. The caller has the lock.
func (c *schemaCache) remove(s *schemaSlot) {
	c.grow(s, -s.memory)
	c.used.Remove(s.all)
	s.sharer.slots.Remove(s.of)
	delete(c.slots, s.digest)
	if s.sharer.slots.Len() == 0 {
		heap.Remove(&c.largest, s.sharer.at)
		delete(c.sharers, s.sharer.id)
	}
}

// expire removes the slots that were not used since a time.
func (c *schemaCache) expire(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.used.Back(); e != nil && e.Value.(*schemaSlot).used.Before(before); e = c.used.Back() {
		c.remove(e.Value.(*schemaSlot))
	}
}

// sharerHeap has the account with the most bytes on top.
type sharerHeap []*sharer

func (h sharerHeap) Len() int           { return len(h) }
func (h sharerHeap) Less(i, j int) bool { return h[i].memory > h[j].memory }
func (h sharerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *sharerHeap) Push(x any) {
	s := x.(*sharer)
	s.at = len(*h)
	*h = append(*h, s)
}
func (h *sharerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// schema returns the compiled schema of a form. The answerer pays for the effort of patterns, so that nobody else can
// cause it.
func (b *mailboxActor) schema(answerer capabilities.ID, f *mailbox.Form, values map[string]capabilities.Value, texts []events.FieldText) (*form.Schema, error) {
	accounts, patterns := b.node.accounts, form.HasPatterns(f.Fields)
	if patterns {
		if err := accounts.affords(answerer); err != nil {
			return nil, err
		}
	}
	c := b.node.schemas.find(f.Fields, false)
	if c == nil {
		var err error
		if c, err = f.Schema(); err != nil {
			return nil, err
		}
		accounts.spend(answerer, c.CompileEffort())
		b.node.schemas.add(accounts.account(answerer), c, false)
	}
	accounts.spend(answerer, c.CheckEffort(values, texts))
	return c, nil
}

// compileFields compiles the fields of a form. The sender pays for the effort of patterns. It returns nil for fields
// that the mailbox refuses later.
func compileFields(n *Node, sender capabilities.ID, fields []events.Field) (*form.Schema, error) {
	if c := n.schemas.find(fields, true); c != nil {
		return c, nil
	}
	if form.HasPatterns(fields) {
		if err := n.accounts.affords(sender); err != nil {
			return nil, err
		}
	}
	c, err := form.Compile(fields)
	if err != nil {
		n.accounts.spend(sender, 2*form.RefusedEffort(fields)) // the mailbox compiles them once more
		return nil, nil
	}
	n.accounts.spend(sender, c.CompileEffort())
	return n.schemas.add(n.accounts.account(sender), c, true), nil
}

// shareFields has the open forms of a mailbox that was read from the log share their fields with equal forms.
func shareFields(n *Node, s *mailbox.State) {
	for m := range s.Mail.Held() {
		if m.Form != nil && m.Form.IsOpen() {
			m.Form.Fields = n.schemas.share(n.accounts.account(m.Form.From), m.Form.Fields)
		}
	}
}

// Compile checks the fields of a form that the agent may send. It refuses fields that Ask would refuse.
func (a *Agent) Compile(fields []events.Field) (*form.Schema, error) {
	c, err := compileFields(a.node, a.id, fields)
	if err != nil || c != nil {
		return c, err
	}
	return form.Compile(fields)
}
