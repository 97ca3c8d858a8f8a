package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/bridge/push"
	"parley/gateway/web"
)

// pushKind is the kind of a bridge to a browser. The settings have its keys: Key is the public one, and Token the secret.
const pushKind = "push"

// maxDeviceAddress bounds the bytes of the address of the node that a browser tells.
const maxDeviceAddress = 256

// devices keeps the browsers that are told by push, in the settings of the bridges. It implements web.Devices.
type devices struct {
	settings string // path; "" for none
	session  func(api.Principal) capabilities.ID

	mu sync.Mutex // for the making of the key
}

// key returns the key of the node, which is made when it is needed first.
func (d *devices) key() (push.Key, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settings == "" {
		return push.Key{}, parley.Refuse(parley.InvalidArgument, "this node has no bridges")
	}
	return push.EnsureKey(filepath.Join(filepath.Dir(d.settings), push.KeyFile))
}

// Key implements web.Devices.
func (d *devices) Key() (string, error) {
	k, err := d.key()
	if err != nil {
		return "", err
	}
	return k.Public(), nil
}

// receiver returns the receiver of a browser.
func (d *devices) receiver(c bridge.Config) (bridge.Receiver, error) {
	network, err := bridge.ParseNetwork(c.Network)
	if err != nil {
		return nil, err
	}
	p := &push.Push{Subscription: push.Subscription{Endpoint: c.URL, Public: c.Key, Auth: c.Token}, Address: c.Address, Client: bridge.Client(network), Now: time.Now}
	if err := p.Check(); err != nil {
		return nil, err
	}
	p.Key, err = d.key()
	return p, err
}

// List implements web.Devices.
func (d *devices) List() (all []web.Device, err error) {
	if d.settings == "" {
		return nil, nil
	}
	configs, err := bridge.ReadConfigs(d.settings)
	for _, c := range configs {
		if c.Kind != pushKind {
			continue
		}
		at, err := url.Parse(c.URL)
		if err != nil {
			return nil, err
		}
		gone, err := bridge.IsGone(BridgeFile(d.settings, c.Name))
		if err != nil {
			return nil, err
		}
		all = append(all, web.Device{Name: c.Name, Service: at.Hostname(), Mark: push.Mark(c.URL), Gone: gone, Session: c.Session})
	}
	return all, err
}

// Add implements web.Devices. A browser that is there already keeps its name. Those that have ended are removed.
func (d *devices) Add(r *http.Request, by api.Principal, s web.Subscription) error {
	c := bridge.Config{Kind: pushKind, URL: s.Endpoint, Key: s.Public, Token: s.Auth, Address: s.Address, Session: d.session(by).String()}
	if len(s.Address) > maxDeviceAddress {
		return parley.Refuse(parley.InvalidArgument, "the address of the node is longer than %d bytes", maxDeviceAddress)
	}
	if err := (push.Subscription{Endpoint: s.Endpoint, Public: s.Public, Auth: s.Auth}).Check(); err != nil {
		return err
	}
	return bridge.Change(d.settings, func(all []bridge.Config) ([]bridge.Config, error) {
		all = slices.DeleteFunc(all, func(o bridge.Config) bool {
			gone, err := bridge.IsGone(BridgeFile(d.settings, o.Name))
			return o.Kind == pushKind && o.URL != c.URL && gone && err == nil
		})
		at := slices.IndexFunc(all, func(o bridge.Config) bool { return o.Kind == pushKind && o.URL == c.URL })
		if at >= 0 {
			c.Name = all[at].Name
			all[at] = c
			return all, c.Check()
		}
		if len(all) >= bridge.MaxBridges {
			return nil, parley.Refuse(parley.TooLarge, "a node has %d bridges at most", bridge.MaxBridges).WithHint("drop one that nobody needs")
		}
		c.Name = deviceName(browserOf(r), all)
		return append(all, c), c.Check()
	})
}

// Drop implements web.Devices.
func (d *devices) Drop(name string) error {
	all, err := d.List()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(o web.Device) bool { return o.Name == name }) { // the page drops no other bridge
		return parley.Refuse(parley.UnknownName, "there is no device %s", parley.Quoted(name, 40))
	}
	return bridge.Remove(d.settings, name)
}

// errUnchanged leaves the settings as they are.
var errUnchanged = errors.New("nothing changes")

// SessionsEnd implements backend.Server. The browsers that those sessions have added are told of nothing more.
func (s *Server) SessionsEnd(ended []capabilities.ID) error {
	return s.devices.leave(func(c bridge.Config) bool {
		return slices.ContainsFunc(ended, func(id capabilities.ID) bool { return id.String() == c.Session })
	})
}

// leave removes the browsers that match.
func (d *devices) leave(matches func(bridge.Config) bool) error {
	if there, err := d.List(); err != nil || len(there) == 0 {
		return err
	}
	err := bridge.Change(d.settings, func(all []bridge.Config) ([]bridge.Config, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(c bridge.Config) bool { return c.Kind == pushKind && matches(c) })
		if len(left) == len(all) {
			return nil, errUnchanged
		}
		return left, nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// notInNames matches what the name of a bridge has none of.
var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

// deviceName returns a name for a browser that no bridge has.
func deviceName(browser string, all []bridge.Config) string {
	base := strings.Trim(notInNames().ReplaceAllString(strings.ToLower(browser), "-"), "-")
	base = strings.Trim(base[:min(len(base), 28)], "-")
	if base == "" {
		base = "browser"
	}
	for name, i := base, 2; ; name, i = base+"-"+strconv.Itoa(i), i+1 {
		if !slices.ContainsFunc(all, func(c bridge.Config) bool { return c.Name == name }) {
			return name
		}
	}
}
