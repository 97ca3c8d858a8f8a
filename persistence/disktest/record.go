//go:build unix

package disktest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/hanwen/go-fuse/v2/fs"
)

// sector is the size of the pieces of a write that a disk stores as a whole.
const sector = 512

// Record holds what was done to a disk since it was mounted, in order.
type Record struct {
	root *fs.Inode
	ops  []op
}

// op is one operation. Without a kind it is a flush.
type op struct {
	kind   kind
	of     *fs.Inode // the file, or the folder that has the name
	name   string
	change change
	child  *fs.Inode // the file or folder that gets the name
	to     *fs.Inode // the folder to which a rename moves it
	toName string
}

type kind int

const (
	flushed kind = iota
	changed
	linked
	unlinked
	renamed
)

// Record begins to record what is done to the disk. The disk must be empty.
func (d *Disk) Record() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = &Record{root: &d.root.Inode}
}

// Position returns the number of operations recorded so far.
func (d *Disk) Position() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.record.ops)
}

// Recorded ends the recording and returns it.
func (d *Disk) Recorded() *Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.record
	d.record = nil
	return r
}

// note records an operation. The lock is held.
func (d *Disk) note(o op) {
	if d.record != nil {
		d.record.ops = append(d.record.ops, o)
	}
}

// Len returns the number of operations.
func (r *Record) Len() int { return len(r.ops) }

// Cut writes to a folder what may be on the disk after a power failure behind the first n operations. That is all that
// was flushed, and by random a part of the rest: none, all, the beginning, some, or pieces of writes. It returns a
// description of the choice.
func (r *Record) Cut(n int, random *rand.Rand, into string) (string, error) {
	last := map[*fs.Inode]int{} // the last flush
	for i, o := range r.ops[:n] {
		if o.kind == flushed {
			last[o.of] = i
		}
	}
	isDurable := func(i int) bool {
		o := &r.ops[i]
		return last[o.of] > i && (o.to == nil || last[o.to] > i)
	}
	how, keep := chosen(r.ops[:n], random)
	at := image{files: map[*fs.Inode][]byte{}, folders: map[*fs.Inode]map[string]*fs.Inode{}}
	for i, o := range r.ops[:n] {
		switch {
		case isDurable(i):
			at.apply(o, nil)
		case keep(i, o):
			var torn *rand.Rand
			if how == "torn" {
				torn = random
			}
			at.apply(o, torn)
		}
	}
	return fmt.Sprintf("%s of what was not flushed, behind operation %d of %d", how, n, len(r.ops)), at.write(r.root, into)
}

// Kill writes to a folder what is on the disk after the first n operations. A process that follows a killed one finds
// it so.
func (r *Record) Kill(n int, into string) error {
	at := image{files: map[*fs.Inode][]byte{}, folders: map[*fs.Inode]map[string]*fs.Inode{}}
	for _, o := range r.ops[:n] {
		at.apply(o, nil)
	}
	return at.write(r.root, into)
}

// chosen returns how a cut treats operations that were not flushed, and the function that says which it keeps.
func chosen(ops []op, random *rand.Rand) (how string, keep func(i int, o op) bool) {
	share := random.Float64()
	some := func(int, op) bool { return random.Float64() < share }
	switch random.IntN(7) {
	case 0:
		return "none", func(int, op) bool { return false }
	case 1:
		return "all", func(int, op) bool { return true }
	case 2:
		end := len(ops) - random.IntN(min(len(ops), 64)+1)
		return "the beginning", func(i int, _ op) bool { return i < end }
	case 3:
		return "the names", func(_ int, o op) bool { return o.kind != changed }
	case 4:
		return "the contents", func(_ int, o op) bool { return o.kind == changed }
	case 5:
		return "some", some
	default:
		return "torn", some
	}
}

// image is the contents of a disk.
type image struct {
	files   map[*fs.Inode][]byte
	folders map[*fs.Inode]map[string]*fs.Inode
}

// apply applies an operation. With torn it applies some sectors of a write.
func (m *image) apply(o op, torn *rand.Rand) {
	switch o.kind {
	case changed:
		m.change(o, torn)
	case linked:
		m.names(o.of)[o.name] = o.child
	case unlinked:
		delete(m.names(o.of), o.name)
	case renamed:
		if m.names(o.of)[o.name] == o.child {
			delete(m.names(o.of), o.name)
		}
		m.names(o.to)[o.toName] = o.child
	}
}

func (m *image) names(folder *fs.Inode) map[string]*fs.Inode {
	all := m.folders[folder]
	if all == nil {
		all = map[string]*fs.Inode{}
		m.folders[folder] = all
	}
	return all
}

func (m *image) change(o op, torn *rand.Rand) {
	c := o.change
	if torn == nil || c.data == nil {
		m.files[o.of] = c.apply(m.files[o.of])
		return
	}
	for data, at := c.data, c.at; len(data) > 0; {
		n := min(int64(len(data)), sector-at%sector)
		if torn.IntN(2) == 0 {
			m.files[o.of] = change{at: at, data: data[:n]}.apply(m.files[o.of])
		}
		data, at = data[n:], at+n
	}
}

// write writes the names below a folder, and their contents.
func (m *image) write(above *fs.Inode, path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for name, n := range m.folders[above] {
		var err error
		switch f := n.Operations().(type) {
		case *folder:
			err = m.write(n, filepath.Join(path, name))
		case *file:
			err = os.WriteFile(filepath.Join(path, name), m.files[n], os.FileMode(f.mode))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
