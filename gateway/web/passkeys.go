package web

import (
	"net/http"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
)

// PasskeysPath is the address of the page of the host's passkeys.
const PasskeysPath = "/passkeys"

// passkeysPage is the data of that page.
type passkeysPage struct {
	Keys    []view.Passkey
	Need    events.PasskeyNeed // of all agents
	Others  []view.PasskeyNeed // of some
	Choices []needChoice
}

type needChoice struct {
	Value events.PasskeyNeed
	Label string
}

// showPasskeys shows the passkeys of the node's host. Its script changes them: nothing of that goes without one.
func showPasskeys(p *page) error {
	if !p.ownsDevices() {
		return parley.Refuse(parley.NotPermitted, "only the node's host, in a signed-in browser, has passkeys").WithHint("parley open signs a browser in")
	}
	if err := p.readsOnly(); err != nil {
		return err
	}
	all, err := api.ListPasskeys.Do(p.ctx(), p, api.ListPasskeysRequest{})
	if err != nil {
		return err
	}
	d := passkeysPage{Keys: all.Passkeys, Need: events.PasskeyNever, Choices: []needChoice{
		{events.PasskeyNever, "needs no passkey"}, {events.PasskeyHigh, "of high risk needs a passkey"}, {events.PasskeyAll, "always needs a passkey"},
	}}
	for _, n := range all.Needs {
		if n.Agent.IsZero() {
			d.Need = n.Need
		} else {
			d.Others = append(d.Others, n)
		}
	}
	return p.show(http.StatusOK, "passkeys.html", layout{Title: "Passkeys", Main: d})
}
