package api

import (
	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// SendRequest sends a message to a recipient, to several, or to both: to all of them or to nobody. With a key, a repeated call sends
// nothing more.
type SendRequest struct {
	Acting
	Recipient  string   `json:"recipient,omitempty"`
	Recipients []string `json:"recipients,omitempty"` // 32 at most
	parley.Post
}

// ReplyRequest answers a message with another. With All it goes to the other recipients too whom the agent can reach: the response
// says whom not. With a key, a repeated call sends nothing more.
type ReplyRequest struct {
	Acting
	FormRef
	All bool `json:"all,omitempty"`
	parley.Post
}

// ScheduleRequest has a message sent later: at a time, or with Every at the times of a series, at the node's time or that of a
// zone. What is missed while the node is down is sent once when it runs again. With a key, a repeated call schedules nothing more.
type ScheduleRequest struct {
	Acting
	Recipient  string   `json:"recipient,omitempty"`
	Recipients []string `json:"recipients,omitempty"` // 32 at most
	parley.Post
	At    capabilities.Time `json:"at,omitzero"`
	Every string            `json:"every,omitempty"` // a cron expression of five fields, or as @daily; a minute apart at least
	Zone  string            `json:"zone,omitempty"`  // as Europe/Berlin; default: the node's
}

// ListSchedulesRequest lists the agent's scheduled messages.
type ListSchedulesRequest struct{ Acting }

// EndScheduleRequest ends a schedule.
type EndScheduleRequest struct {
	Acting
	Schedule uint64 `json:"schedule"`
}

// AdoptRequest stores the value that a message carries under Edge as Name, or under the edge's own name.
type AdoptRequest struct {
	Acting
	FormRef
	Edge string `json:"edge"`
	Name string `json:"name,omitempty"`
}

// SnoozeRequest takes a message out of the list of those that wait, until a time. A time that has passed, or none, brings it
// back now.
type SnoozeRequest struct {
	Acting
	FormRef
	Until capabilities.Time `json:"until,omitzero"`
}

// MaxMoved bounds the messages of one move_messages.
const MaxMoved = 256

// MoveMessagesRequest does one thing with several messages, in one commit: it dismisses, restores or snoozes them. A repeated
// call changes nothing.
type MoveMessagesRequest struct {
	Acting
	Messages []FormRef         `json:"messages"` // at most 256
	Do       string            `json:"do"`       // dismiss, restore or snooze
	Until    capabilities.Time `json:"until,omitzero"`
}

// MoveMessagesResponse has the number of messages that are where they were to be, and why the others are not.
type MoveMessagesResponse struct {
	Moved   int       `json:"moved"`
	Refused []Unmoved `json:"refused,omitempty"`
}

// Unmoved is a message as it was named, and why it was not moved.
type Unmoved struct {
	FormRef
	Error *parley.Error `json:"error"`
}

// MarkReadRequest marks messages as read, or with Unread as not read: at most 1,000, or without Numbers the newest 1,000
// unread ones as read. The node may hold it for half a second, to write it together with others.
type MarkReadRequest struct {
	Acting
	Numbers []uint64 `json:"numbers,omitempty"`
	Unread  bool     `json:"unread,omitempty"`
}

// MarkReadResponse has the number of unread messages that are left.
type MarkReadResponse struct {
	Unread int `json:"unread"`
}

// CountMessagesRequest counts the messages in the lists of the inbox.
type CountMessagesRequest struct{ Acting }

// MessageRequest names one message.
type MessageRequest struct {
	Acting
	FormRef
}

// ClaimFormRequest has the agent be on a form that it may answer, so that the others who may leave it to that: for ForMs, by default 30
// minutes, from a minute to 24 hours. With Release it is not on it any more. What another is on is refused with CLAIMED; TakeOver takes it
// over.
type ClaimFormRequest struct {
	Acting
	FormRef
	ForMs    *int64 `json:"forMs,omitempty"`
	Release  bool   `json:"release,omitempty"`
	TakeOver bool   `json:"takeOver,omitempty"`
}

// Withdrawn is the response of a withdrawal. A queued one is stored, and on its way to a home that cannot be reached.
type Withdrawn struct {
	Queued bool `json:"queued,omitempty"`
}

// ListMessagesRequest lists the messages that the filter picks, by number. If there are more than the limit, the response
// has as "next" the "first" of the next page.
type ListMessagesRequest struct {
	Acting
	view.MessageFilter
	First uint64 `json:"first,omitempty"`
	Limit int    `json:"limit,omitempty"` // default 1,000, which is the most

	// Last, if not 0, is the number of messages to list that came last, instead of those from First on. The list has
	// fewer if they do not fit into a page. It is at most 1,000. Before, if not 0, leaves out that number and all after it.
	Last   int    `json:"last,omitempty"`
	Before uint64 `json:"before,omitempty"`
}

// SearchRequest looks for messages by what is in them, of those that the filter picks; an empty filter picks all. A party is a
// name, a title or an ID. The node's index has them once they are some seconds old, and reads the others of the mailbox first.
type SearchRequest struct {
	Acting
	view.Search
	view.MessageFilter
	From      string  `json:"from,omitempty"`
	To        string  `json:"to,omitempty"`
	DecidedBy string  `json:"decidedBy,omitempty"`
	Thread    FormRef `json:"thread,omitzero"`  // a message of the thread, by its number or id
	Before    uint64  `json:"before,omitempty"` // only messages with a lower number; 0 for all
	Skip      int     `json:"skip,omitempty"`   // of those found, how many to leave out; at most 1,000
	Limit     int     `json:"limit,omitempty"`  // default 100, which is the most
}

// DiscussionOf returns the search for what was asked back about a form of an agent's mailbox, and replied: see view.Found.Discussion.
func DiscussionOf(as Acting, form capabilities.ID) SearchRequest {
	return SearchRequest{Acting: as, Search: view.Search{Types: []string{"message"}, Order: "oldest"}, Thread: RefTo(form.String())}
}

// FollowMessagesRequest waits for messages within the view that changed after the cursor. What has changed already is in the
// response however short the wait is. When WaitMs has passed without any, there are none, and the cursor is that to call again with.
type FollowMessagesRequest struct {
	Acting
	view.MessageFilter
	Cursor uint64 `json:"cursor"`
	WaitMs *int64 `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

// ReadLogRequest reads the agent's log: the events after a version, oldest first. With WaitMs it waits for so long if there
// are none.
type ReadLogRequest struct {
	Acting
	After   uint64 `json:"after,omitempty"`
	Limit   int    `json:"limit,omitempty"`   // default 500, at most 5,000
	Journal bool   `json:"journal,omitempty"` // without the events that are in the archive
	WaitMs  int64  `json:"waitMs,omitempty"`  // at most 50,000
}

// ReadLogResponse has the events. If there are More, the version of the last is the "after" of the next page.
type ReadLogResponse struct {
	Entries  []view.Entry         `json:"entries"`
	More     bool                 `json:"more"`
	Missing  []view.MissingEvents `json:"missing,omitempty"`  // events before or among the entries that are in segments elsewhere
	Archived uint64               `json:"archived,omitempty"` // version after the last event that is in the archive
}
