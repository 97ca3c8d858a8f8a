package actors

import (
	linked "container/list"
	"sync"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// schemaCacheSize bounds the compiled patterns that a node keeps, in bytes.
const schemaCacheSize = 32 << 20

// schemaCache keeps the compiled schemas of the forms that were used last, to save the time to compile them. Forms
// without patterns are not in it.
type schemaCache struct {
	mu    sync.Mutex
	size  int
	free  int
	slots map[formKey]*linked.Element
	used  *linked.List // of *schemaSlot, the latest first
}

type schemaSlot struct {
	key    formKey
	schema *form.Schema
	memory int
}

func newSchemaCache(size int) *schemaCache {
	return &schemaCache{size: size, free: size, slots: map[formKey]*linked.Element{}, used: linked.New()}
}

// get returns the schema of a form, or nil.
func (c *schemaCache) get(key formKey) *form.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.slots[key]
	if !ok {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*schemaSlot).schema
}

// put adds a schema. It removes those that were not used for the longest.
func (c *schemaCache) put(key formKey, schema *form.Schema) {
	memory := schema.Memory()
	if memory == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.slots[key]; ok || memory > c.size {
		return
	}
	c.slots[key] = c.used.PushFront(&schemaSlot{key, schema, memory})
	for c.free -= memory; c.free < 0; {
		c.remove(c.used.Back())
	}
}

// drop removes the schema of a form that has ended.
func (c *schemaCache) drop(key formKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[key]; ok {
		c.remove(e)
	}
}

// remove takes a slot out. The caller has the lock.
func (c *schemaCache) remove(e *linked.Element) {
	s := c.used.Remove(e).(*schemaSlot)
	delete(c.slots, s.key)
	c.free += s.memory
}

// schemaKey returns the key of a form in schemas. A form of this node is the same in every mailbox. Each mailbox has
// its own copy of another node's form, because that node may send different ones.
func (b *mailboxActor) schemaKey(form capabilities.ID) formKey {
	if form.Node == b.node.id {
		return formKey{form: form}
	}
	return formKey{mailbox: b.reg.id, form: form}
}

// schema returns the compiled schema of a form, or nil if it has no patterns. The answerer pays for the effort, so that
// nobody else can cause it.
func (b *mailboxActor) schema(answerer capabilities.ID, f *mailbox.Form, values map[string]capabilities.Value, texts []events.FieldText) (*form.Schema, error) {
	if !form.HasPatterns(f.Fields) {
		return nil, nil
	}
	accounts := b.node.accounts
	if err := accounts.affords(answerer); err != nil {
		return nil, err
	}
	key := b.schemaKey(f.ID)
	c := b.node.schemas.get(key)
	if c == nil {
		var err error
		if c, err = f.Schema(); err != nil {
			return nil, err
		}
		accounts.spend(answerer, c.CompileEffort())
		b.node.schemas.put(key, c)
	}
	accounts.spend(answerer, c.CheckEffort(values, texts))
	return c, nil
}

// compileFields compiles the fields of a form. The sender pays for the effort. It returns nil for fields without
// patterns, and for fields that the mailbox refuses later.
func compileFields(n *Node, sender capabilities.ID, fields []events.Field) (*form.Schema, error) {
	if !form.HasPatterns(fields) {
		return nil, nil
	}
	if err := n.accounts.affords(sender); err != nil {
		return nil, err
	}
	c, err := form.Compile(fields)
	if err != nil {
		n.accounts.spend(sender, 2*form.RefusedEffort(fields)) // the mailbox compiles them once more
		return nil, nil
	}
	n.accounts.spend(sender, c.CompileEffort())
	return c, nil
}

// Compile checks the fields of a form that the agent may send. It refuses fields that Ask would refuse.
func (a *Agent) Compile(fields []events.Field) (*form.Schema, error) {
	c, err := compileFields(a.node, a.id, fields)
	if err != nil || c != nil {
		return c, err
	}
	return form.Compile(fields)
}
