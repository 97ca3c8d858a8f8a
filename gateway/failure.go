package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"parley"
	"parley/gateway/api"
)

// isContextEnd reports whether err says only that a context has ended.
func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// shown gives an error as the world sees it.
func shown(err error) *parley.Error {
	if isContextEnd(err) {
		return parley.Refuse(parley.Timeout, "the call was given up")
	}
	return parley.AsError(err)
}

// refuse writes an error as the response. Nothing of a response may have been written before.
func refuse(w http.ResponseWriter, err error, status int) {
	e := shown(err)
	if status == 0 {
		status = api.HTTPStatus(e.Code)
	}
	body, err := json.Marshal(api.Failure{Error: e})
	if err != nil {
		body = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who has gone away does not miss it
}
