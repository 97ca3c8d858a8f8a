package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"

	"parley"
)

const (
	backupName     = "backup"
	failureTrailer = "Parley-Error"
)

// serveBackup streams the journal as it is now. Whether it is whole is known only at its end, so that an
// error comes in a trailer.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	account := s.account(r.Context())
	if err := account.take(kindCalls, 1); err != nil {
		refuse(w, err, 0)
		return
	}
	defer account.give(kindCalls, 1)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", failureTrailer)
	err := s.node.Backup(r.Context(), w)
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
