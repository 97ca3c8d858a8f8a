package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"

	"parley"
)

const (
	webSocketPath = "/ws"

	// plainProtocol is a WebSocket subprotocol that says nothing. A client that offers it beside that with its
	// token is not told its token again.
	plainProtocol = "parley"
)

// serveWebSocket turns a request into a wsSession, and returns when that has ended.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if err := checkOrigin(r); err != nil {
		refuse(w, err, http.StatusForbidden)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, parley.Refuse(parley.InvalidArgument, "at %s there is a WebSocket", webSocketPath), http.StatusUpgradeRequired)
		return
	}
	account := s.account(r.Context())
	if err := account.take(kindWebSockets, 1); err != nil {
		refuse(w, err, 0)
		return
	}
	defer account.give(kindWebSockets, 1)
	s.wsSessions.Add(1)
	defer s.wsSessions.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols(r),
		InsecureSkipVerify: true, // the origin was checked
	})
	if err != nil {
		return // and was told why
	}
	newWSSession(s, conn, caller(r.Context())).run()
}

// checkOrigin refuses with NOT_PERMITTED what another site's page sends. Browsers say whose page it is, and other
// programs say nothing. That an upgrade is a GET, which is let through elsewhere, makes it no safer: it changes
// nothing, but what comes after it does.
func checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return errOtherSite
	}
	return nil
}

// subprotocols gives the one subprotocol to choose of those that a client offers, if any: a browser that offered
// some wants one.
func subprotocols(r *http.Request) []string {
	var chosen []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offered := range strings.SplitSeq(line, ",") {
			offered = strings.TrimSpace(offered)
			if offered == plainProtocol {
				return []string{plainProtocol}
			}
			if strings.HasPrefix(offered, BearerProtocol) && chosen == nil {
				chosen = []string{offered}
			}
		}
	}
	return chosen
}
