package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley"
	"parley/actors/connlimit"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

const (
	backupName     = "backup"
	failureTrailer = "Parley-Error"
)

// serveBackup streams the journal as it is now. Whether it is whole is known only at its end, so that an
// error comes in a trailer.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	account := s.account(r.Context())
	if err := account.take(api.KindCalls, 1); err != nil {
		refuse(w, err, 0)
		return
	}
	defer account.give(api.KindCalls, 1)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", failureTrailer)
	httpd.SetUse(r, connlimit.Busy)
	err := s.node.Backup(callContext(r), pieces{w, http.NewResponseController(w)})
	if err == nil {
		return
	}
	s.log.Error("backup failed", "error", err)
	text, err := json.Marshal(parley.AsError(fmt.Errorf("backup: %w", err)))
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees a body that is cut off
	}
	w.Header().Set(failureTrailer, string(text))
}

// pieces writes a response of any length. Each piece has a deadline of its own.
type pieces struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (p pieces) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(pieceTime)) // else the bound of all responses holds
	return p.ResponseWriter.Write(b)
}

const pieceTime = 30 * time.Second // in which a client takes a piece of a backup
