package api

import (
	"context"
	"errors"
	"net/http"

	"parley"
)

// Failure is the JSON of a response with an error.
type Failure struct {
	Error *parley.Error `json:"error"`
}

// HTTPStatus returns the status of a response with an error. The code in the body is more specific.
func HTTPStatus(c parley.Code) int {
	switch c {
	case parley.InvalidArgument, parley.InvalidName:
		return http.StatusBadRequest
	case parley.Unauthenticated:
		return http.StatusUnauthorized
	case parley.NotPermitted, parley.PasskeyRequired, parley.PasskeyRefused:
		return http.StatusForbidden
	case parley.UnknownName, parley.UnknownRecipient, parley.NoSuchMessage, parley.NoSuchFile, parley.AgentNotFound, parley.NodeUnknown:
		return http.StatusNotFound
	case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired,
		parley.AlreadyRunning, parley.NameTaken, parley.Ambiguous, parley.AgentArchived, parley.Archived, parley.NoPendingInput,
		parley.NoPendingPermission, parley.AnswerPending, parley.Amended, parley.InvitationUsed, parley.Cancelled, parley.Declined, parley.Expired, parley.Asked, parley.Leased, parley.Claimed:
		return http.StatusConflict
	case parley.TooLarge:
		return http.StatusRequestEntityTooLarge
	case parley.InvalidForm, parley.InvalidAnswer, parley.NotAForm, parley.NotARequest:
		return http.StatusUnprocessableEntity
	case parley.RateLimited, parley.QuotaExceeded:
		return http.StatusTooManyRequests
	case parley.NodeUnreachable:
		return http.StatusBadGateway
	case parley.ReadOnly, parley.CorruptLog, parley.FileDamaged, parley.NewerLog, parley.NotRunning:
		return http.StatusServiceUnavailable
	case parley.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// IsContextEnd reports whether err is the end of a context.
func IsContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Shown returns an error as clients see it.
func Shown(err error) *parley.Error {
	if IsContextEnd(err) {
		return parley.Refuse(parley.Timeout, "the call was given up")
	}
	return parley.AsError(err)
}
