package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"parley"
)

// Failure is how an error stands in a response.
type Failure struct {
	Error *parley.Error `json:"error"`
}

// httpStatus gives the status of a response with an error. It is for those who look at HTTP alone: the
// code in the body says more.
func httpStatus(c parley.Code) int {
	switch c {
	case parley.InvalidArgument, parley.InvalidName:
		return http.StatusBadRequest
	case parley.Unauthenticated:
		return http.StatusUnauthorized
	case parley.NotPermitted:
		return http.StatusForbidden
	case parley.UnknownName, parley.UnknownRecipient, parley.NoSuchMessage, parley.AgentNotFound, parley.NodeUnknown:
		return http.StatusNotFound
	case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired,
		parley.AlreadyRunning, parley.NameTaken, parley.Ambiguous, parley.AgentArchived, parley.NoPendingInput,
		parley.NoPendingPermission, parley.AnswerPending, parley.InvitationUsed, parley.Cancelled, parley.Declined, parley.Expired:
		return http.StatusConflict
	case parley.TooLarge:
		return http.StatusRequestEntityTooLarge
	case parley.InvalidForm, parley.InvalidAnswer, parley.NotAForm, parley.NotARequest:
		return http.StatusUnprocessableEntity
	case parley.RateLimited, parley.QuotaExceeded:
		return http.StatusTooManyRequests
	case parley.NodeUnreachable:
		return http.StatusBadGateway
	case parley.ReadOnly, parley.CorruptLog, parley.NotRunning:
		return http.StatusServiceUnavailable
	case parley.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

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
		status = httpStatus(e.Code)
	}
	body, err := json.Marshal(Failure{Error: e})
	if err != nil {
		body = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who has gone away does not miss it
}
