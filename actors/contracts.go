package actors

import (
	linked "container/list"
	"sync"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// contractsMemory bounds the compiled patterns that a node keeps, in bytes.
const contractsMemory = 32 << 20

// contracts keeps the compiled patterns of the forms that were used last. It is worth the time to compile them again
// and nothing else. Forms without patterns compile in no time and are not in it.
type contracts struct {
	mu    sync.Mutex
	size  int
	free  int
	slots map[formKey]*linked.Element
	used  *linked.List // of *contractSlot, the latest first
}

type contractSlot struct {
	key      formKey
	contract *form.Schema
	memory   int
}

func newContracts(size int) *contracts {
	return &contracts{size: size, free: size, slots: map[formKey]*linked.Element{}, used: linked.New()}
}

// get returns the contract of a form, or nil.
func (c *contracts) get(key formKey) *form.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.slots[key]
	if !ok {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*contractSlot).contract
}

// put keeps a contract in place of those that were not used for the longest.
func (c *contracts) put(key formKey, contract *form.Schema) {
	memory := contract.Memory()
	if memory == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.slots[key]; ok || memory > c.size {
		return
	}
	c.slots[key] = c.used.PushFront(&contractSlot{key, contract, memory})
	for c.free -= memory; c.free < 0; {
		c.remove(c.used.Back())
	}
}

// drop forgets the contract of a form that has ended.
func (c *contracts) drop(key formKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[key]; ok {
		c.remove(e)
	}
}

// remove takes a slot out. The caller has the lock.
func (c *contracts) remove(e *linked.Element) {
	s := c.used.Remove(e).(*contractSlot)
	delete(c.slots, s.key)
	c.free += s.memory
}

// contractKey returns the key of a form in contracts. A form of this node is the same in every mailbox. Of one of
// another node every mailbox has a copy for itself, because that node may send different ones.
func (b *mailboxActor) contractKey(form capabilities.ID) formKey {
	if form.Node == b.node.id {
		return formKey{form: form}
	}
	return formKey{mailbox: b.reg.id, form: form}
}

// contract returns the compiled contract of a form, or nil if it has no patterns, for an answer of an agent's. That one
// makes the effort: nobody else can have the node make it.
func (b *mailboxActor) contract(answerer capabilities.ID, f *mailbox.Form, values map[string]capabilities.Value, texts []form.Text) (*form.Schema, error) {
	if !form.HasPatterns(f.Fields) {
		return nil, nil
	}
	accounts := b.node.accounts
	if err := accounts.affords(answerer); err != nil {
		return nil, err
	}
	key := b.contractKey(f.ID)
	c := b.node.contracts.get(key)
	if c == nil {
		var err error
		if c, err = f.Schema(); err != nil {
			return nil, err
		}
		accounts.spend(answerer, c.CompileEffort())
		b.node.contracts.put(key, c)
	}
	accounts.spend(answerer, c.CheckEffort(values, texts))
	return c, nil
}

// compile compiles the fields of a form that an agent sends, which makes the effort. It returns nil if they have no
// patterns, or are refused: then the mailbox says why when it decides.
func (n *Node) compile(sender capabilities.ID, fields []events.Field) (*form.Schema, error) {
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

// Compile checks the fields of a form that the agent may send. It refuses what Ask would refuse of them.
func (a *Agent) Compile(fields []events.Field) (*form.Schema, error) {
	c, err := a.node.compile(a.id, fields)
	if err != nil || c != nil {
		return c, err
	}
	return form.Compile(fields)
}
