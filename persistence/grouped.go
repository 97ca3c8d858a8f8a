package persistence

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"parley/capabilities"
	"parley/events"
	"parley/persistence/group"
)

// groupBytes is the size of the commits of a group: a second's work of a busy node. They are in memory until then.
const groupBytes = 8 << 20

const groupFolder = "groups"

// maxUngrouped is a multiple of groupBytes. If more collect, the oldest commits leave memory ungrouped. That happens on a
// disk that is too slow, and when a node without groups starts.
const maxUngrouped = 4

// maxGroups bounds the groups on disk. A mailbox with events in earlier commits only, and no snapshot, reads its commits.
const maxGroups = 32

// grouped has the newest commits of the log so that a mailbox's sections are found without those of others. The very
// newest are in memory, those before are in groups. Commits before the oldest group, and some between, are in neither.
type grouped struct {
	node   capabilities.NodeID
	folder string
	room   int // bytes of the commits of a group
	log    *slog.Logger

	full    chan struct{} // there is a group to be written
	writing sync.Mutex    // held while one is

	mu      sync.RWMutex
	closed  bool
	commits []*events.Commit     // the newest ones, without gap
	hashes  []events.Hash        // of the commits
	sizes   []int                // bytes of the commits in memory
	bytes   int                  // the sum of sizes
	groups  []*group.File        // by their first commits
	trusted map[*group.File]bool // those that are known to be of this log
}

func newGrouped(o *Options) *grouped {
	return &grouped{
		node: o.Node, folder: filepath.Join(o.Folder, groupFolder), room: o.groupBytes, log: o.Log, full: make(chan struct{}, 1), trusted: map[*group.File]bool{},
	}
}

// open finds the groups of an earlier process, and returns the last commit that they have. None is behind the end of the
// log. It changes nothing on disk.
func (g *grouped) open(end uint64) (last uint64) {
	g.close()
	names, err := os.ReadDir(g.folder)
	if err != nil {
		return 0 // there are none yet
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	for _, name := range names {
		if !name.Type().IsRegular() || filepath.Ext(name.Name()) != "" {
			continue
		}
		one, err := group.Open(filepath.Join(g.folder, name.Name()), g.node)
		switch {
		case err != nil:
			g.log.Warn("a group of commits is not used", "file", name.Name(), "error", err)
		case one.First <= last || one.Last.Number > end:
			_ = one.Close() // it is of another log
		default:
			g.groups, last = append(g.groups, one), one.Last.Number
		}
	}
	return last
}

// add adds the commit that follows the last one. Nobody changes it any more.
func (g *grouped) add(c *events.Commit, size int, hash events.Hash) {
	size += 256 + 160*len(c.Sections) // overhead of decoded commits
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.commits); n > 0 && g.commits[n-1].Number+1 != c.Number {
		g.drop(n)
	}
	g.commits, g.hashes, g.sizes = append(g.commits, c), append(g.hashes, hash), append(g.sizes, size)
	if g.bytes += size; g.bytes > maxUngrouped*g.room && len(g.commits) > 1 {
		g.drop((len(g.commits) + 1) / 2)
	}
	if g.bytes > g.room {
		signal(g.full)
	}
}

// newest returns the commits in memory, on their own.
func (g *grouped) newest() *grouped {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return &grouped{commits: g.commits, hashes: g.hashes, sizes: g.sizes}
}

// takeOver has the commits in memory that another one has behind a commit.
func (g *grouped) takeOver(from *grouped, after uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := sort.Search(len(from.commits), func(i int) bool { return from.commits[i].Number > after })
	g.commits, g.hashes, g.sizes, g.bytes = from.commits[n:], from.hashes[n:], from.sizes[n:], 0
	for _, size := range g.sizes {
		g.bytes += size
	}
	if g.bytes > g.room {
		signal(g.full)
	}
}

// drop removes the oldest commits from memory. Readers may still have the slice before. The lock is held.
func (g *grouped) drop(n int) {
	for _, size := range g.sizes[:n] {
		g.bytes -= size
	}
	g.commits, g.hashes, g.sizes = slices.Clone(g.commits[n:]), slices.Clone(g.hashes[n:]), slices.Clone(g.sizes[n:])
}

// grouper writes groups until ctx ends.
func (g *grouped) grouper(ctx context.Context) {
	g.sweep()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.full:
		}
		for g.write() {
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// write writes the oldest commits in memory to a group, and reports whether there were enough. If the disk does not take
// them, they leave memory ungrouped.
func (g *grouped) write() bool {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.mu.RLock()
	n, bytes := 0, 0
	for n < len(g.sizes) && bytes < g.room {
		bytes += g.sizes[n]
		n++
	}
	commits := slices.Clone(g.commits[:n])
	var hash events.Hash
	if n > 0 {
		hash = g.hashes[n-1]
	}
	g.mu.RUnlock()
	if bytes < g.room {
		return false
	}
	first, last := commits[0].Number, commits[n-1].Number
	err := MakeFolder(g.folder)
	if err == nil {
		err = group.Write(g.folder, g.node, commits, hash)
	}
	var one *group.File
	if err == nil {
		one, err = group.Open(filepath.Join(g.folder, group.Name(first, last)), g.node)
	}
	if err != nil {
		g.log.Warn("commits are not grouped; mailboxes are read more slowly", "first", first, "last", last, "error", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.commits) > 0 && g.commits[0].Number <= last {
		g.drop(int(min(last-g.commits[0].Number+1, uint64(len(g.commits)))))
	}
	if one != nil {
		g.trusted[one] = true
		g.groups = append(g.groups, one)
	}
	for len(g.groups) > maxGroups {
		g.remove(g.groups[0])
	}
	return true
}

func (g *grouped) path(one *group.File) string {
	return filepath.Join(g.folder, group.Name(one.First, one.Last.Number))
}

// remove closes and removes a group. The lock is held.
func (g *grouped) remove(one *group.File) {
	g.groups = slices.DeleteFunc(g.groups, func(other *group.File) bool { return other == one })
	delete(g.trusted, one)
	if err := errors.Join(one.Close(), os.Remove(g.path(one))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("a group of commits is not removed", "file", g.path(one), "error", err)
	}
}

// discard removes a group that turned out to be of no use.
func (g *grouped) discard(one *group.File, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || !slices.Contains(g.groups, one) {
		return
	}
	g.log.Warn("a group of commits is thrown away", "file", filepath.Base(g.path(one)), "error", why)
	g.remove(one)
}

// leave removes the groups of commits that have left the stream, which end before the first that has not.
func (g *grouped) leave(begin uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.groups) > 0 && g.groups[0].Last.Number < begin {
		g.remove(g.groups[0])
	}
}

// sweep removes the files in the folder that are no group in use.
func (g *grouped) sweep() {
	names, err := os.ReadDir(g.folder)
	if err != nil {
		return
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, name := range names {
		path := filepath.Join(g.folder, name.Name())
		if !slices.ContainsFunc(g.groups, func(one *group.File) bool { return g.path(one) == path }) {
			if err := os.Remove(path); err != nil {
				g.log.Warn("a file of groups is not removed", "file", name.Name(), "error", err)
			}
		}
	}
}

// forget removes all commits from memory.
func (g *grouped) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(len(g.commits))
}

// close forgets the commits and closes the groups.
func (g *grouped) close() {
	g.forget()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, one := range g.groups {
		_ = one.Close()
	}
	g.groups = nil
}

// commit returns a commit that is in memory.
func (g *grouped) commit(number uint64) (*events.Commit, events.Hash, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if len(g.commits) == 0 || number < g.commits[0].Number || number > g.commits[len(g.commits)-1].Number {
		return nil, events.Hash{}, false
	}
	i := number - g.commits[0].Number
	return g.commits[i], g.hashes[i], true
}

// inMemory returns the sections of a mailbox in the first of some commits. It stops at one that is not in memory, and
// returns their number.
func (g *grouped) inMemory(mailbox capabilities.ID, numbers []uint64) (found []group.Section, n int) {
	g.mu.RLock()
	commits := g.commits
	g.mu.RUnlock()
	for n < len(numbers) && len(commits) > 0 && numbers[n] >= commits[0].Number && numbers[n] <= commits[len(commits)-1].Number {
		found = appendSections(found, mailbox, commits[numbers[n]-commits[0].Number])
		n++
	}
	return found, n
}

// has reports whether a commit is in a group.
func (g *grouped) has(number uint64) bool {
	one, _ := g.find(number)
	return one != nil
}

// find returns the group with a commit, or nil. trusted says whether the group is known to be of this log.
func (g *grouped) find(number uint64) (one *group.File, trusted bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	i := sort.Search(len(g.groups), func(i int) bool { return g.groups[i].Last.Number >= number })
	if i == len(g.groups) || g.groups[i].First > number {
		return nil, false
	}
	return g.groups[i], g.trusted[g.groups[i]]
}

// trust notes that a group is of this log.
func (g *grouped) trust(one *group.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trusted[one] = true
}
