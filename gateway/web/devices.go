package web

import (
	"cmp"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/qr"
)

const (
	// DevicesPath is the address of the page of the browsers that are told of forms by push.
	DevicesPath = "/devices"

	// pushWorker is the script that shows what push services deliver.
	pushWorker = "push-worker.js"
	// pushScope is the address below which that script runs. No page is there: it sees none, and keeps none.
	pushScope = "push/"
)

// Device is a browser that is told of forms by push.
type Device struct {
	Name    string
	Service string // host name of the browser's push service
	Mark    string // by which the browser knows itself
	Gone    bool   // it wants no more
	Session string // by which it was added; "" for none

	Seen capabilities.Time // when that session was used last, to within an hour; 0 if it has ended
}

// Subscription is what a browser gives to be told by push.
type Subscription struct {
	Endpoint string
	Public   string
	Auth     string
	Address  string // at which the browser reaches this node
}

// Devices keeps the browsers that are told by push.
type Devices interface {
	// Key returns the public key with which a browser subscribes.
	Key() (string, error)
	// List returns the browsers.
	List() ([]Device, error)
	// Add adds the browser of a request. It refuses with INVALID_ARGUMENT what no browser gives, and with TOO_LARGE too many.
	Add(r *http.Request, by api.Principal, s Subscription) error
	// Drop removes a browser. It refuses with UNKNOWN_NAME.
	Drop(name string) error
	// Pair returns a link that signs another device in. It is for the address of the page that shows it, as that device
	// can use it. It refuses with INVALID_ARGUMENT if no other device reaches the node.
	Pair(link, address string) (string, error)
}

// devicesPage is the data of the page of the devices.
type devicesPage struct {
	Key     string // with which a browser subscribes
	Devices []Device
	Link    string       // that signs another device in; "" for none
	Code    template.URL // QR code of the link
	Until   capabilities.Time
}

// ownsDevices reports whether a reader may see and change which devices are told: the node's host, in a browser.
func (p *page) ownsDevices() bool {
	return p.site.Devices != nil && p.principal.IsHost() && p.principal.SessionKey() != "" && p.principal.May(pageOperation(api.ScopeAdmin)) == nil
}

// deviceSettings is a request for the page of the devices.
type deviceSettings struct{ *page }

// serve shows the devices that are told, or adds or drops one.
func (p deviceSettings) serve() error {
	if !p.ownsDevices() {
		return parley.Refuse(parley.NotPermitted, "only the node's host, in a signed-in browser, has devices").WithHint("parley open signs a browser in")
	}
	if p.r.Method == http.MethodPost {
		if err := p.r.ParseForm(); err != nil {
			return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
		}
		if p.r.PostForm.Has("pair") {
			return p.pair()
		}
		if err := p.change(); err != nil {
			return err
		}
		p.w.Header().Set("Location", DevicesPath[1:]) // relative: a proxy may serve the node under a path
		p.w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	if err := p.readsOnly(); err != nil {
		return err
	}
	return p.showAll(devicesPage{})
}

// devicesSeen returns the devices with the times at which their sessions were used last. A session records that once an hour, so that
// looking costs no writing.
func devicesSeen(p *page, tokens []view.Token) ([]Device, error) {
	all, err := p.site.Devices.List()
	for i, d := range all {
		at := slices.IndexFunc(tokens, func(t view.Token) bool { return t.Session && t.ID.String() == d.Session })
		if at >= 0 {
			all[i].Seen = tokens[at].Used
		}
	}
	return all, err
}

func (p deviceSettings) showAll(d devicesPage) (err error) {
	if d.Key, err = p.site.Devices.Key(); err != nil {
		return err
	}
	tokens, err := api.ListTokens.Do(p.ctx(), p.page, api.ListTokensRequest{})
	if err != nil {
		return err
	}
	if d.Devices, err = devicesSeen(p.page, tokens.Tokens); err != nil {
		return err
	}
	return p.show(http.StatusOK, "devices.html", layout{Title: "Devices", Main: d})
}

// pair shows a link that signs another device in, and its QR code.
func (p deviceSettings) pair() error {
	address, err := p.address(cmp.Or(p.r.PostForm.Get("address"), p.r.Header.Get("Origin")))
	if err != nil {
		return err
	}
	made, err := api.OpenLink.Do(p.ctx(), p, api.OpenLinkRequest{})
	if err != nil {
		return err
	}
	d := devicesPage{Until: made.Until}
	if d.Link, err = p.site.Devices.Pair(made.URL, address); err != nil {
		return err
	}
	image, err := qr.PNG(d.Link)
	if err != nil {
		return err
	}
	d.Code = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(image)) //nolint:gosec // of our own making
	return p.showAll(d)
}

func (p deviceSettings) change() error {
	sent := p.r.PostForm
	switch {
	case sent.Has("drop"):
		return p.site.Devices.Drop(sent.Get("drop"))
	case sent.Has("endpoint"):
		address, err := p.address(sent.Get("address"))
		if err != nil {
			return err
		}
		return p.site.Devices.Add(p.r, p.principal, Subscription{
			Endpoint: sent.Get("endpoint"), Public: sent.Get("p256dh"), Auth: sent.Get("auth"), Address: address,
		})
	}
	return parley.Refuse(parley.InvalidArgument, "a device is added or dropped")
}

// address returns the address at which the browser of a request reaches the node: what its page tells, which has to be of
// the page's own origin.
func (p deviceSettings) address(told string) (string, error) {
	origin := p.r.Header.Get("Origin")
	u, err := url.Parse(told)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || origin == "" || u.Scheme+"://"+u.Host != origin {
		return "", parley.Refuse(parley.InvalidArgument, "the address is not that of the page")
	}
	return strings.TrimSuffix(told, "/"), nil
}

// allowPushScope has a browser run the script of push at its scope. That scope is not below the address of the script.
// That is relative: a proxy may serve the node under a path.
func (p *page) allowPushScope() {
	up := strings.Count(p.base+p.r.URL.Path, "/") - 1
	p.w.Header().Set("Service-Worker-Allowed", strings.Repeat("../", up)+pushScope)
}
