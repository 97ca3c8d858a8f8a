package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
	"parley/internal/disk"
	"parley/internal/regular"
	"parley/persistence"
)

// FileName is the name of the file in the state folder that holds the node's seed.
const FileName = "node.key"

// Load reads the node's key from its state folder. The error is fs.ErrNotExist if the folder has none.
func Load(folder string) (nkeys.KeyPair, error) {
	seed, err := ReadSeed(folder)
	if err != nil {
		return nil, err
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the file %s in the state folder is no node's key", FileName).
			WithHint("put back the one that belongs to this journal: without it the node is another")
	}
	if _, err := NodeOf(key); err != nil {
		return nil, err
	}
	return key, nil
}

// ReadSeed reads the text of the key from a folder. The name may be a link, to where a system keeps its secrets. The error
// is fs.ErrNotExist if the folder has none.
func ReadSeed(folder string) ([]byte, error) {
	path, err := filepath.EvalSymlinks(filepath.Join(folder, FileName))
	var seed []byte
	if err == nil {
		seed, err = regular.Read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's key: %w", err)
	}
	return seed, nil
}

// NodeOf returns the ID of the node that has a key.
func NodeOf(key nkeys.KeyPair) (capabilities.NodeID, error) {
	public, err := key.PublicKey()
	if err != nil {
		return capabilities.NodeID{}, fmt.Errorf("node's key: %w", err)
	}
	return capabilities.ParseNodeID(public)
}

// LoadOrCreate reads the node's key. It creates the folder and the key if neither is there.
func LoadOrCreate(folder string) (nkeys.KeyPair, error) {
	if err := SecureFolder(folder); err != nil {
		if parley.CodeOf(err) == parley.Internal {
			err = disk.Unwritable(folder, err)
		}
		return nil, err
	}
	key, err := Load(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := Lost(folder); err != nil {
		return nil, err
	}
	if key, err = nkeys.CreateServer(); err != nil {
		return nil, fmt.Errorf("make the node's key: %w", err)
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("make the node's key: %w", err)
	}
	return key, write(folder, seed)
}

// Lost returns the error of a state folder that has a journal and no key. It is nil for one that has neither.
func Lost(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "journal")); err != nil {
		return nil // a folder without a node, or one whose journal is on a server
	}
	return parley.Refuse(parley.CorruptLog, "the state folder has a journal but no %s", FileName).
		WithHint("put the key back, which each backup has, or restore one into a new folder: a new key would be another node")
}

// write stores the seed. The file appears whole or not at all.
func write(folder string, seed []byte) error {
	f, err := os.CreateTemp(folder, FileName+".*") // mode 0600
	if err != nil {
		return disk.Unwritable(folder, err)
	}
	defer os.Remove(f.Name()) // fails once it is renamed, as it should
	_, err = f.Write(seed)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, FileName))
	}
	if err == nil {
		err = persistence.SyncFolder(folder)
	}
	if err != nil {
		return disk.Unwritable(folder, err)
	}
	return nil
}
