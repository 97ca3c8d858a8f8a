package hook

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley"
	"parley/internal/regular"
)

// AddedFolder is a folder below the node's state with a file for each folder that was added to a session of Claude Code (/add-dir), named after
// its process. No request of a hook says which there are, and their files define subagents. The hook on DirectoryAdded notes them, with or
// without a node.
const AddedFolder = "coders-added"

// noteAdded notes that a folder was added to the session.
func (a Agent) noteAdded(folder string, o Options) error {
	of, ok := o.added(a)
	if !ok || !filepath.IsAbs(folder) {
		return parley.Refuse(parley.InvalidArgument, "what was added, or the process to which it was, is not named: subagents that it defines may start without a question")
	}
	err := os.MkdirAll(o.Added, 0o700)
	if err == nil {
		err = makeRoom(o.Added)
	}
	if err == nil {
		err = writeNew(filepath.Join(o.Added, of+digest(folder)), []byte(folder))
	}
	if err != nil {
		return parley.Refuse(parley.Internal, "the folder that was added cannot be noted: %v", err).
			WithHint("subagents that it defines may start without a question: end the session, and give the folder with --add-dir")
	}
	return nil
}

// added returns how the names of the files begin that note the folders added to the agent's process, and whether it is known.
func (o Options) added(a Agent) (of string, ok bool) {
	pid, _ := a.Process(o.Env)
	return strconv.Itoa(pid) + "-", o.Added != "" && pid > 0
}

// addedTo returns the folders that were added to the agent's process.
func (o Options) addedTo(a Agent) (folders []string, err error) {
	err = o.eachAdded(a, func(path string) error {
		text, err := regular.Read(path)
		folders = append(folders, string(text))
		return err
	})
	return folders, err
}

// forgetAdded forgets what was added to a process that had the same ID before.
func (o Options) forgetAdded(a Agent) error { return o.eachAdded(a, os.Remove) }

func (o Options) eachAdded(a Agent, do func(path string) error) error {
	of, ok := o.added(a)
	if !ok {
		return nil
	}
	all, err := os.ReadDir(o.Added)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range all {
		if strings.HasPrefix(f.Name(), of) {
			err = errors.Join(err, do(filepath.Join(o.Added, f.Name())))
		}
	}
	return err
}
