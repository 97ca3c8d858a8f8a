package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Code names a kind of failure for programs. A code never changes its meaning.
type Code string

// The codes of errors, in the command line and all interfaces.
const (
	NotRunning          Code = "NOT_RUNNING"
	AlreadyRunning      Code = "ALREADY_RUNNING"
	UnknownName         Code = "UNKNOWN_NAME"
	UnknownRecipient    Code = "UNKNOWN_RECIPIENT"
	NameTaken           Code = "NAME_TAKEN"
	InvalidName         Code = "INVALID_NAME"
	NoSuchMessage       Code = "NO_SUCH_MESSAGE"
	NotAForm            Code = "NOT_A_FORM"
	NotARequest         Code = "NOT_A_REQUEST"
	InvalidForm         Code = "INVALID_FORM"
	InvalidAnswer       Code = "INVALID_ANSWER"
	InvalidArgument     Code = "INVALID_ARGUMENT"
	AlreadyAnswered     Code = "ALREADY_ANSWERED"
	AlreadyCancelled    Code = "ALREADY_CANCELLED"
	AlreadyDeclined     Code = "ALREADY_DECLINED"
	AlreadyExpired      Code = "ALREADY_EXPIRED"
	NotPermitted        Code = "NOT_PERMITTED"
	Unauthenticated     Code = "UNAUTHENTICATED"
	AgentNotFound       Code = "AGENT_NOT_FOUND"
	Ambiguous           Code = "AMBIGUOUS"
	AgentArchived       Code = "AGENT_ARCHIVED"
	Archived            Code = "ARCHIVED" // what was asked for is in a segment of the journal that is elsewhere
	AnswerPending       Code = "ANSWER_PENDING"
	Amended             Code = "AMENDED" // the question is another than the one that was shown
	NoPendingInput      Code = "NO_PENDING_INPUT"
	NoPendingPermission Code = "NO_PENDING_PERMISSION"
	NodeUnreachable     Code = "NODE_UNREACHABLE"
	NodeUnknown         Code = "NODE_UNKNOWN"
	InvitationUsed      Code = "INVITATION_USED"
	TooLarge            Code = "TOO_LARGE"
	RateLimited         Code = "RATE_LIMITED"
	QuotaExceeded       Code = "QUOTA_EXCEEDED"
	ReadOnly            Code = "READ_ONLY"
	CorruptLog          Code = "CORRUPT_LOG"
	NewerLog            Code = "NEWER_LOG" // a newer version of the program has written the log, the archive or the backup
	NoSuchFile          Code = "NO_SUCH_FILE"
	FileDamaged         Code = "FILE_DAMAGED"
	Timeout             Code = "TIMEOUT"
	Cancelled           Code = "CANCELLED"
	Declined            Code = "DECLINED"
	Expired             Code = "EXPIRED"
	Asked               Code = "ASKED"            // who may answer the form has asked back; the form is open
	Claimed             Code = "CLAIMED"          // another who may answer the form is on it
	Leased              Code = "LEASED"           // another agent has a lease on it
	PasskeyRequired     Code = "PASSKEY_REQUIRED" // a decision has to be signed with a passkey
	PasskeyRefused      Code = "PASSKEY_REFUSED"  // what was signed with one is not accepted
	Internal            Code = "INTERNAL"
)

// Error is a refusal or a failure that its reader can act on.
//
// Code is for programs. Message is for people and names the thing it is about. Hint, if any, says what
// to do about it. Fields has, for INVALID_ANSWER and INVALID_FORM, what is wrong with each field by name.
// An Error is a value: it must not be changed after it was returned.
type Error struct {
	Code    Code              `json:"code"`
	Message string            `json:"message"`
	Hint    string            `json:"hint,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
}

// Error returns the code and the message.
func (e *Error) Error() string {
	return string(e.Code) + ": " + e.Message
}

// Is reports whether target is an *Error of the same code, so that errors.Is(err, Refuse(code, ""))
// asks for the code alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Refuse makes an Error with a formatted message.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that says what to do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// CodeOf returns the code of the first Error that err wraps, INTERNAL for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Passes reports whether what was refused, or has failed, may be accepted later as it is.
func Passes(err error) bool {
	switch CodeOf(err) {
	case NodeUnreachable, NotRunning, RateLimited, ReadOnly, Timeout:
		return true
	}
	return false
}

// MayBeDone reports whether what has failed may be done nevertheless: a disk can take a write and fail to flush it, and a node can go away
// before it answers. Any other error says that it is not.
func MayBeDone(err error) bool {
	switch CodeOf(err) {
	case ReadOnly, Timeout, NotRunning, Internal:
		return true
	}
	return false
}

// AsError returns the Error that err wraps, its message prefixed with what was being done. Any other
// error becomes an INTERNAL one that shows nothing of its inside: the whole of it belongs in the log.
func AsError(err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return Refuse(Internal, "internal error").WithHint("the node's log has the details")
	}
	doing, wrapped := strings.CutSuffix(err.Error(), e.Error())
	if !wrapped || doing == "" {
		return e
	}
	c := *e
	c.Message = doing + e.Message
	return &c
}
