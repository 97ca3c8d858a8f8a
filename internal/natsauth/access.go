package natsauth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley"
)

// Access names the files with which a node connects to a NATS system. Each may be "".
type Access struct {
	Creds string // a user's JWT and seed, as nsc writes them
	NKey  string // a user's seed
	CA    string // certificates of the authorities that servers are checked against, in PEM
	Cert  string // the certificate that is shown to servers, in PEM
	Key   string // its key
}

// maxFile is the size of a file at most.
const maxFile = 1 << 20

// Options returns the options for a connection. It refuses with INVALID_ARGUMENT files that cannot be used. With a CA
// or a Cert it connects with TLS only, whatever the URL says.
func (a Access) Options() ([]nats.Option, error) {
	var options []nats.Option
	if a.Creds != "" && a.NKey != "" {
		return nil, parley.Refuse(parley.InvalidArgument, "a NATS system takes credentials or an nkey, not both")
	}
	if a.Creds != "" {
		if err := check(a.Creds, isCreds, "it has no JWT with its seed").wrong("credentials"); err != nil {
			return nil, err
		}
		options = append(options, nats.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		if err := check(a.NKey, isUserSeed, "it has no seed of a user, which begins with SU").wrong("the nkey"); err != nil {
			return nil, err
		}
		nkey, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "the nkey in %s: it is malformed", a.NKey)
		}
		options = append(options, nkey)
	}
	more, err := a.tls()
	return append(options, more...), err
}

func (a Access) tls() (options []nats.Option, err error) {
	if a.CA != "" {
		if err := check(a.CA, isPool, "it has no certificate in PEM").wrong("certificates of authorities"); err != nil {
			return nil, err
		}
		options = append(options, nats.RootCAs(a.CA))
	}
	switch {
	case a.Cert == "" && a.Key == "":
		return options, nil
	case a.Cert == "" || a.Key == "":
		return nil, parley.Refuse(parley.InvalidArgument, "a certificate for a NATS system needs its key, and a key its certificate")
	}
	for _, file := range []string{a.Cert, a.Key} {
		if err := check(file, func([]byte) bool { return true }, "").wrong("the certificate"); err != nil {
			return nil, err
		}
	}
	if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the certificate in %s and the key in %s do not belong together, or are not in PEM", a.Cert, a.Key)
	}
	return append(options, nats.ClientCert(a.Cert, a.Key)), nil
}

// problem is the reason why a file cannot be used, or "".
type problem struct{ file, reason string }

func (p problem) wrong(what string) error {
	if p.reason == "" {
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "%s in %s: %s", what, p.file, p.reason)
}

// check reads a file and reports what is wrong with it. otherwise is the reason if is does not hold.
func check(file string, is func([]byte) bool, otherwise string) problem {
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		return problem{file, "it is no file of at most 1 MiB"}
	}
	text, readErr := []byte(nil), err
	if err == nil {
		text, readErr = os.ReadFile(file)
	}
	if wrong, ok := errors.AsType[*fs.PathError](readErr); ok {
		return problem{file, wrong.Err.Error()}
	}
	if readErr != nil || !is(text) {
		return problem{file, otherwise}
	}
	clear(text)
	return problem{}
}

func isCreds(text []byte) bool {
	token, err := nkeys.ParseDecoratedJWT(text) // without a JWT it returns the whole text
	return err == nil && strings.HasPrefix(token, "ey") && isUserSeed(text)
}

func isUserSeed(text []byte) bool {
	key, err := nkeys.ParseDecoratedUserNKey(text)
	if err != nil {
		return false
	}
	key.Wipe()
	return true
}

func isPool(text []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(text) }
