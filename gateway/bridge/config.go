package bridge

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"parley"
	"parley/capabilities"
	"parley/internal/regular"
)

// Config is a bridge of a node, as its file of settings has it.
type Config struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	As      string   `json:"as,omitempty"`    // the host's name of the agent whose forms are told; "" for the host's own
	Agent   string   `json:"agent,omitempty"` // its ID, which counts if the name leads to another since
	URL     string   `json:"url"`
	Network string   `json:"network,omitempty"` // the nearest in which the receiver may be; default public
	Address string   `json:"address,omitempty"` // of the node, for its receivers
	Key     string   `json:"key,omitempty"`     // by which a webhook is signed, or the rights in buttons are sealed
	Token   string   `json:"token,omitempty"`   // of the receiver's server, or a password; of a webhook, the secret that is shared with the receiver
	From    string   `json:"from,omitempty"`    // of mail: the sender's address
	To      string   `json:"to,omitempty"`      // of mail: the recipient's address
	Login   string   `json:"login,omitempty"`   // of mail: the name at the server
	Users   []string `json:"users,omitempty"`   // of Slack: the users who may answer; none for all in the channel
	Session string   `json:"session,omitempty"` // ID of the session that added a browser
}

// Receiver returns what differs if two bridges tell different receivers.
func (c Config) Receiver() string {
	return strings.TrimRight(strings.Join([]string{c.Kind, c.URL, c.To, c.Agent}, " "), " ")
}

// Of returns the agent whose forms are told; the zero ID for the host. It refuses with INVALID_ARGUMENT.
func (c Config) Of() (id capabilities.ID, err error) {
	if c.Agent != "" {
		id, err = capabilities.ParseID(c.Agent)
	}
	return id, err
}

// schemes are those of the addresses of receivers that are no web servers, by kinds.
var schemes = map[string][]string{"mail": {"smtp", "smtps"}}

// name is how a bridge may be named. The name is part of a file's.
var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`) })

// MaxBridges bounds the bridges of a node.
const MaxBridges = 32

// Check refuses with INVALID_ARGUMENT settings that no bridge can have.
func (c Config) Check() error {
	if !name().MatchString(c.Name) {
		return parley.Refuse(parley.InvalidArgument, "%s is no name of a bridge", parley.Quoted(c.Name, 40)).WithHint("names are of a to z, 0 to 9 and -")
	}
	network, err := ParseNetwork(c.Network)
	if err != nil {
		return err
	}
	if _, err := c.Of(); err != nil {
		return err
	}
	if c.Address != "" {
		if _, err := parseURL(c.Address, "https", "http"); err != nil {
			return err
		}
	}
	if c.Kind != "mail" && c.From+c.To+c.Login != "" {
		return parley.Refuse(parley.InvalidArgument, "only a bridge of kind mail has --from, --to and --login")
	}
	if c.Kind != "slack" && len(c.Users) > 0 {
		return parley.Refuse(parley.InvalidArgument, "only a bridge of kind slack has --user")
	}
	if s, ok := schemes[c.Kind]; ok {
		_, err := parseURL(c.URL, s...)
		return err
	}
	return CheckReceiver(c.URL, network)
}

// CheckReceiver refuses with INVALID_ARGUMENT an address that no web server in a network may have.
func CheckReceiver(address string, nearest Network) error {
	u, err := parseURL(address, "https", "http")
	if err == nil && u.Scheme == "http" && nearest == Public {
		err = parley.Refuse(parley.InvalidArgument, "a receiver in the public network needs https").WithHint("--network private or machine is for one that is nearer")
	}
	return err
}

// parseURL parses the address of a server with one of some schemes.
func parseURL(address string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || !slices.Contains(schemes, u.Scheme) {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no address of a server", parley.Quoted(address, 80)).WithHint("it begins with %s://", strings.Join(schemes, ":// or "))
	}
	return u, nil
}

// ReadConfigs reads a file of settings. There are none without the file. It refuses with INVALID_ARGUMENT one that it cannot
// read.
func ReadConfigs(path string) (all []Config, err error) {
	b, err := regular.ReadLinked(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the settings of the bridges cannot be read: %v", err).WithHint("nothing is told through bridges until %s is mended or moved away", path)
	}
	if len(all) > MaxBridges {
		err = parley.Refuse(parley.TooLarge, "a node has %d bridges at most", MaxBridges)
	}
	for _, c := range all {
		err = errors.Join(err, c.Check())
	}
	return all, err
}

// Change replaces the settings in a file by what change makes of them. Two changes at the same time are made one after the
// other, also by two processes.
func Change(path string, change func([]Config) ([]Config, error)) (err error) {
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	all, err := ReadConfigs(path)
	if err == nil {
		all, err = change(all)
	}
	if err != nil {
		return err
	}
	return WriteConfigs(path, all)
}

// Add adds a bridge to those of a file. It refuses with NAME_TAKEN a name of another, and with TOO_LARGE too many.
func Add(path string, c Config) error {
	return Change(path, func(all []Config) ([]Config, error) {
		if slices.ContainsFunc(all, func(o Config) bool { return o.Name == c.Name }) {
			return nil, parley.Refuse(parley.NameTaken, "there is a bridge %s already", c.Name).WithHint("--name gives another name; parley bridge drop %s removes it", c.Name)
		}
		if len(all) >= MaxBridges {
			return nil, parley.Refuse(parley.TooLarge, "a node has %d bridges at most", MaxBridges)
		}
		return append(all, c), nil
	})
}

// Remove removes a bridge from those of a file. It refuses with UNKNOWN_NAME.
func Remove(path, name string) error {
	return Change(path, func(all []Config) ([]Config, error) {
		i := slices.IndexFunc(all, func(c Config) bool { return c.Name == name })
		if i < 0 {
			return nil, parley.Refuse(parley.UnknownName, "there is no bridge %s", parley.Quoted(name, 40)).WithHint("parley bridge list shows them")
		}
		return slices.Delete(all, i, i+1), nil
	})
}

// WriteConfigs replaces a file of settings.
func WriteConfigs(path string, all []Config) error {
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, b)
}
