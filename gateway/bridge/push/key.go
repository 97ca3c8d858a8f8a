package push

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"parley"
	"parley/gateway/bridge"
	"parley/internal/regular"
)

// KeyFile is the name of the file with the node's key, in its state folder.
const KeyFile = "push.key"

// Key is the key by which a node signs what it has push services deliver. Browsers subscribe for its public half, so a
// push service delivers nothing of others.
type Key struct{ private *ecdh.PrivateKey }

var encoding = base64.RawURLEncoding

// ReadKey reads the key of a file. It returns an error that is os.ErrNotExist if there is none. It refuses with
// NOT_PERMITTED a file that others can read.
func ReadKey(path string) (Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Key{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Key{}, parley.Refuse(parley.NotPermitted, "others can read %s", path).WithHint("chmod 600 %s", path)
	}
	text, err := regular.ReadLinked(path)
	if err != nil {
		return Key{}, err
	}
	b, err := encoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return Key{}, fmt.Errorf("the key in %s cannot be read: %w", path, err)
	}
	k, err := ecdh.P256().NewPrivateKey(b)
	if err != nil {
		return Key{}, fmt.Errorf("the key in %s cannot be read: %w", path, err)
	}
	return Key{k}, nil
}

// EnsureKey reads the key of a file, and makes the file if there is none. The caller holds the state folder.
func EnsureKey(path string) (Key, error) {
	k, err := ReadKey(path)
	if !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	made, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	return Key{made}, bridge.WriteFile(path, []byte(encoding.EncodeToString(made.Bytes())+"\n"))
}

// Public returns the public half, as a browser takes it to subscribe.
func (k Key) Public() string { return encoding.EncodeToString(k.private.PublicKey().Bytes()) }

func (k Key) secret() string { return encoding.EncodeToString(k.private.Bytes()) }
