package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/persistence"
)

// Describe implements backend.Server.
func (s *Server) Describe(r *api.StatusResponse) {
	r.Listen, r.Version, r.External = s.Address(), s.version, s.external
	r.TLSCert, r.TLSKey, r.PlainHTTP = s.tls.Cert, s.tls.Key, s.tls.Plain
	r.A2ANetwork = string(s.a2a.Network())
	if s.service != nil {
		r.Service = s.service.Address()
	}
}

// Connections implements backend.Server.
func (s *Server) Connections() []api.LimitState {
	var all []api.LimitState
	add := func(name string, l *connlimit.Limiter) {
		now, each, most, refused := l.State()
		all = append(all, api.LimitState{Name: api.LimitConnections, For: name, Now: int64(now), Limit: int64(most), Each: int64(each), Refused: refused})
	}
	if s.public != nil {
		add("listen", s.public.Limiter)
	}
	add("socket", s.socket.Limiter)
	return all
}

// Stop implements backend.Server.
func (s *Server) Stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// TreePath is the address, on the node's socket, of the tree of the node's actors: a JSON array of view.ActorState. It is
// for diagnosis, and no operation of the API.
const TreePath = "/debug/actors"

// serveTree writes the tree of the node's actors.
func (s *Server) serveTree(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.node.Tree()) // the error is that of a client that has gone away
}

const (
	backupName     = "backup"
	failureTrailer = "Parley-Error"
	afterParameter = "after"
)

// serveBackup streams the journal as it is now or, with the parameter "after", the part of it behind a mark. An error may
// come up at any point of the stream, so a trailer has it.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	account := s.account(r.Context())
	if err := account.Take(api.KindCalls, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	defer account.Give(api.KindCalls, 1)
	write, err := s.backup(r)
	if err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", failureTrailer)
	httpd.SetUse(r, connlimit.Busy)
	if err = write(httpd.CallContext(r), pieces{w, http.NewResponseController(w)}); err == nil {
		return
	}
	s.log.Error("backup failed", "error", err)
	text, err := json.Marshal(parley.AsError(fmt.Errorf("backup: %w", err)))
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees that the body is cut off
	}
	w.Header().Set(failureTrailer, string(text))
}

// backup returns the function that writes the backup of a request.
func (s *Server) backup(r *http.Request) (func(context.Context, io.Writer) error, error) {
	query := r.URL.Query()
	if !query.Has(afterParameter) {
		return s.node.Backup, nil
	}
	after, err := persistence.ParseMark(query.Get(afterParameter))
	return func(ctx context.Context, w io.Writer) error { return s.node.BackupAfter(ctx, after, w) }, err
}

// pieces writes a response of any length. Each piece has a deadline of its own.
type pieces struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (p pieces) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(pieceTime)) // instead of the deadline of the whole response
	return p.ResponseWriter.Write(b)
}

const pieceTime = 30 * time.Second // for a client to take a piece of a backup
