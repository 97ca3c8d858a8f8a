package bridge

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"parley/capabilities"
	"parley/internal/regular"
)

// deliveries is what a worker has told, in a file.
type deliveries struct {
	path  string
	For   string             `json:"for"`            // the address of the receiver
	Agent capabilities.ID    `json:"agent,omitzero"` // whose forms are told, and whose rights are in the buttons; zero for the host
	Gone  bool               `json:"gone,omitempty"` // the receiver wants no more
	Forms map[string]*record `json:"forms"`
}

// record is what was told of a form.
type record struct {
	Revision uint64          `json:"revision"`
	Grant    capabilities.ID `json:"grant,omitzero"`    // of the right in the buttons
	Told     bool            `json:"told"`              // the receiver took it
	Mark     string          `json:"mark,omitempty"`    // by which the receiver finds what it has taken of the form
	Ending   bool            `json:"ending,omitempty"`  // the form has ended, and that is to be told
	Resting  bool            `json:"resting,omitempty"` // the form is open and waits for others than the host, and that is to be told
	Turn     uint64          `json:"turn,omitempty"`    // how often it has waited for others, and may wait for the host again
	Schedule

	right []Button // with the secret, which is in no file
}

// key returns the part of a notice's key that says which one of a revision it is.
func (r *record) key() string {
	turn := ""
	if r.Turn > 0 {
		turn = "." + strconv.FormatUint(r.Turn, 10)
	}
	switch {
	case r.Ending:
		return "ended"
	case r.Resting:
		return "waits" + turn
	}
	return "open" + turn
}

func readDeliveries(path string) (*deliveries, error) {
	t := &deliveries{path: path, Forms: map[string]*record{}}
	b, err := regular.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(b, t)
	}
	if t.Forms == nil {
		t.Forms = map[string]*record{}
	}
	return t, err
}

// write replaces the file. It returns when that is on disk.
func (t *deliveries) write() error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return WriteFile(t.path, b)
}

// WriteFile replaces a file that only its owner reads, and returns when that is on disk.
func WriteFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
