package parley

import "parley/internal/fault"

// Error is a refusal or a failure that its reader can act on: see fault.Error.
type Error = fault.Error

// Code names a kind of failure for programs.
type Code = fault.Code

// The codes of errors, as package fault explains them.
const (
	NotRunning          = fault.NotRunning
	AlreadyRunning      = fault.AlreadyRunning
	UnknownName         = fault.UnknownName
	UnknownRecipient    = fault.UnknownRecipient
	NameTaken           = fault.NameTaken
	InvalidName         = fault.InvalidName
	NoSuchMessage       = fault.NoSuchMessage
	NotAForm            = fault.NotAForm
	NotARequest         = fault.NotARequest
	InvalidForm         = fault.InvalidForm
	InvalidAnswer       = fault.InvalidAnswer
	InvalidArgument     = fault.InvalidArgument
	AlreadyAnswered     = fault.AlreadyAnswered
	AlreadyCancelled    = fault.AlreadyCancelled
	AlreadyDeclined     = fault.AlreadyDeclined
	AlreadyExpired      = fault.AlreadyExpired
	NotPermitted        = fault.NotPermitted
	Unauthenticated     = fault.Unauthenticated
	AgentNotFound       = fault.AgentNotFound
	Ambiguous           = fault.Ambiguous
	AgentArchived       = fault.AgentArchived
	Archived            = fault.Archived
	AnswerPending       = fault.AnswerPending
	Amended             = fault.Amended
	NoPendingInput      = fault.NoPendingInput
	NoPendingPermission = fault.NoPendingPermission
	NodeUnreachable     = fault.NodeUnreachable
	NodeUnknown         = fault.NodeUnknown
	InvitationUsed      = fault.InvitationUsed
	TooLarge            = fault.TooLarge
	RateLimited         = fault.RateLimited
	QuotaExceeded       = fault.QuotaExceeded
	ReadOnly            = fault.ReadOnly
	CorruptLog          = fault.CorruptLog
	NewerLog            = fault.NewerLog
	Timeout             = fault.Timeout
	Cancelled           = fault.Cancelled
	Declined            = fault.Declined
	Expired             = fault.Expired
	Asked               = fault.Asked
	NoSuchFile          = fault.NoSuchFile
	FileDamaged         = fault.FileDamaged
	Claimed             = fault.Claimed
	Leased              = fault.Leased
	PasskeyRequired     = fault.PasskeyRequired
	PasskeyRefused      = fault.PasskeyRefused
	Internal            = fault.Internal
)

// Refuse makes an Error with a formatted message.
func Refuse(code Code, format string, args ...any) *Error { return fault.Refuse(code, format, args...) }

// CodeOf returns the code of the first Error that err wraps, INTERNAL for any other error, and "" for nil.
func CodeOf(err error) Code { return fault.CodeOf(err) }

// Passes reports whether what was refused, or has failed, may be accepted later as it is.
func Passes(err error) bool { return fault.Passes(err) }

// MayBeDone reports whether what has failed may be done nevertheless. Any other error says that it is not.
func MayBeDone(err error) bool { return fault.MayBeDone(err) }

// AsError returns the Error that err wraps, its message prefixed with what was being done. Any other error becomes an
// INTERNAL one that shows nothing of its inside: the whole of it belongs in the log.
func AsError(err error) *Error { return fault.AsError(err) }
