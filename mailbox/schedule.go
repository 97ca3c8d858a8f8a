package mailbox

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Bounds of schedules.
const (
	maxSchedules = 256    // of an agent
	maxEvery     = 200    // bytes of a cron expression
	maxZone      = 100    // bytes of a time zone
	leastEvery   = 60_000 // milliseconds between two times of a series
)

// Schedule is a message that the agent sends later. Next is 0 for one that could not be sent: see Refused.
type Schedule struct {
	*events.MessageScheduled

	Next    capabilities.Time
	Last    capabilities.ID // the message that was sent last; zero if none was
	LastAt  capabilities.Time
	Refused string // why the last one was not sent; "" if it was
}

// DecodeMsgpack implements msgpack.CustomDecoder, as QueuedUse does.
func (s *Schedule) DecodeMsgpack(d *msgpack.Decoder) error {
	type plain Schedule
	s.MessageScheduled = new(events.MessageScheduled)
	return d.Decode((*plain)(s))
}

// Schedules are the schedules of an agent, in the order of their numbers.
type Schedules struct {
	all  []Schedule
	made uint64 // schedules that were ever made
}

// All returns the schedules, by number. The slice belongs to the state.
func (l *Schedules) All() []Schedule { return l.all }

// find returns the place of a schedule, and whether it is there.
func (l *Schedules) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(l.all, number, func(s Schedule, n uint64) int { return cmp.Compare(s.Schedule, n) })
}

// of returns a schedule; nil if there is none.
func (l *Schedules) of(number uint64) *Schedule {
	i, ok := l.find(number)
	if !ok {
		return nil
	}
	return &l.all[i]
}

// ScheduleMessage has a message sent later. To and Also are as in PostMessage. At is the first time; of a series, the caller computes it.
// Next returns the time after another at which a series goes on; it is nil without Every.
type ScheduleMessage struct {
	To   string
	Also []string
	parley.Post
	At    capabilities.Time
	Every string
	Zone  string
	Next  func(every, zone string, after capabilities.Time) (capabilities.Time, error)
}

// FindExisting returns the schedule that was made under the same key, or the message that was sent under it: a repeated call may come when
// the time has passed. The time of the first call stands. It refuses with INVALID_ARGUMENT a key that is used again for another message, and
// fails with PagedOut.
func (c ScheduleMessage) FindExisting(s *State) (*Schedule, *Message, error) {
	if c.Key == "" {
		return nil, nil, nil
	}
	found := s.Mail.Schedules.underKey(c.Key)
	if found == nil {
		if c.Every != "" { // what a series sends has no key
			return nil, nil, nil
		}
		sent, _, err := PostMessage{To: c.To, Also: c.Also, Post: c.Post}.FindExisting(s)
		return nil, sent, err
	}
	same, err := PostMessage{To: c.To, Also: c.Also}.namesAll(s, append([]capabilities.ID{found.To}, found.Also...))
	if err != nil {
		return nil, nil, err
	}
	var differs []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"recipient", same},
		{"text", c.Text == found.Text && c.Plain == found.Plain},
		{"series", c.Every == found.Every && c.Zone == found.Zone}, // its time is no difference: one from now, as 30m, is later in each retry
		{"priority", c.Priority.Rank() == found.Priority.Rank()},
		{"subject", c.Subject == found.Subject},
		{"files", slices.Equal(c.Files, found.Files)},
	} {
		if !part.same {
			differs = append(differs, part.name)
		}
	}
	if len(differs) > 0 {
		return nil, nil, found.keyConflict("which differs in: " + strings.Join(differs, ", "))
	}
	return found, nil, nil
}

// underKey returns the schedule that was made under a key; nil if there is none.
func (l *Schedules) underKey(key string) *Schedule {
	if key == "" {
		return nil
	}
	key = capabilities.Normal(key)
	i := slices.IndexFunc(l.all, func(s Schedule) bool { return capabilities.Normal(s.Key) == key })
	if i < 0 {
		return nil
	}
	return &l.all[i]
}

// keyConflict refuses the key of the schedule for something else.
func (s *Schedule) keyConflict(why string) error {
	return parley.Refuse(parley.InvalidArgument, "the key %s stands for schedule %d, %s", parley.Quoted(s.Key, 80), s.Schedule, why).
		WithHint("give what is new a key of its own")
}

func (c ScheduleMessage) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if found, was, err := c.FindExisting(s); found != nil || was != nil || err != nil {
		return nil, err
	}
	// What cannot be sent now is not promised for later.
	post := c.Post
	post.Key = ""
	sent := PostMessage{To: c.To, Also: c.Also, Post: post}
	if _, err := sent.decide(s, now, ids); err != nil {
		return nil, err
	}
	to, _, err := sent.recipients(s, now)
	if err != nil {
		return nil, err
	}
	escalate, err := sent.escalation(s, to, now)
	if err != nil {
		return nil, err
	}
	if err := checkText("a key", c.Key, maxKey); err != nil {
		return nil, err
	}
	switch {
	case len(s.Mail.Schedules.all) >= maxSchedules:
		return nil, parley.Refuse(parley.TooLarge, "%d messages are scheduled: an agent has no more", maxSchedules).WithHint("parley schedule ls lists them")
	case c.AckBy != 0 && (c.Every != "" || c.AckBy <= c.At):
		return nil, parley.Refuse(parley.InvalidArgument, "a message that is sent later is acknowledged after that, and one of a series is not")
	case len(c.Every) > maxEvery || len(c.Zone) > maxZone:
		return nil, parley.Refuse(parley.TooLarge, "a series has %d bytes at most, and a time zone %d", maxEvery, maxZone)
	case c.At <= now:
		return nil, parley.Refuse(parley.InvalidArgument, "the time has passed already")
	}
	if c.Every != "" {
		then, err := c.Next(c.Every, c.Zone, c.At)
		if err != nil {
			return nil, err
		}
		if then-c.At < leastEvery {
			return nil, parley.Refuse(parley.InvalidArgument, "a series has a minute at least from one time to the next")
		}
	}
	if c.Priority == events.Normal {
		c.Priority = ""
	}
	e := &events.MessageScheduled{
		Schedule: s.Mail.Schedules.made + 1, To: to[0].Target, Header: c.Header, Text: c.Text, Plain: c.Plain, At: c.At, Every: c.Every, Zone: c.Zone, Date: now, Key: c.Key,
	}
	for _, ref := range to[1:] {
		e.Also = append(e.Also, ref.Target)
	}
	if escalate != nil {
		e.Escalate = escalate.Agent
	}
	return []events.Event{e}, nil
}

// DueSchedules returns the numbers of the schedules whose time has come, the earliest first.
func (l *Mail) DueSchedules(now capabilities.Time) []uint64 { return l.passed(fires, now) }

// FireSchedule sends the message of a schedule whose time has come. After downtime a series goes on from now: what was missed is
// sent once. Next is as in ScheduleMessage.
type FireSchedule struct {
	Schedule uint64
	Next     func(every, zone string, after capabilities.Time) (capabilities.Time, error)
}

func (c FireSchedule) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	at := s.Mail.Schedules.of(c.Schedule)
	if at == nil || at.Next == 0 || at.Next > now {
		return nil, nil
	}
	fired := &events.ScheduleFired{Schedule: c.Schedule}
	post := parley.Post{Header: at.Header, Text: at.Text, Plain: at.Plain}
	if at.Every == "" {
		post.Key = at.Key
	}
	if post.AckBy != 0 { // it may have passed meanwhile
		post.AckBy = max(post.AckBy, now+1)
	}
	if !at.Escalate.IsZero() {
		post.Escalate = at.Escalate.String()
	}
	due := PostMessage{To: at.To.String(), Post: post, due: c.Schedule}
	for _, id := range at.Also {
		due.Also = append(due.Also, id.String())
	}
	evs, err := due.decide(s, now, ids)
	switch _, absent := errors.AsType[*PagedOut](err); {
	case absent:
		return nil, err
	case err != nil:
		fired.Refused = parley.Shown(parley.AsError(err).Message, maxRefused)
	case len(evs) > 0:
		fired.Message = evs[0].(*events.MessagePosted).Message
	}
	if at.Every != "" && !s.Profile.Archived {
		next, err := c.Next(at.Every, at.Zone, now)
		if err != nil {
			fired.Refused = cmp.Or(fired.Refused, parley.Shown(parley.AsError(err).Message, maxRefused))
		}
		fired.Next = next
	}
	return append(evs, fired), nil
}

// EndSchedule ends a schedule. It refuses with NO_SUCH_MESSAGE one that is not there.
type EndSchedule struct{ Schedule uint64 }

func (c EndSchedule) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Mail.Schedules.of(c.Schedule) == nil {
		return nil, parley.Refuse(parley.NoSuchMessage, "no message is scheduled under %d", c.Schedule).WithHint("parley schedule ls lists them")
	}
	return []events.Event{&events.ScheduleEnded{Schedule: c.Schedule}}, nil
}

func (f fold) messageScheduled(e *events.MessageScheduled) error {
	l := &f.Mail.Schedules
	if e.Schedule != l.made+1 {
		return missing(e.Schedule)
	}
	l.made = e.Schedule
	l.all = append(l.all, Schedule{MessageScheduled: e, Next: e.At})
	f.Mail.timers.addSchedule(e.Schedule, e.At)
	return nil
}

func (f fold) scheduleFired(e *events.ScheduleFired) error {
	l := &f.Mail.Schedules
	i, ok := l.find(e.Schedule)
	if !ok {
		return missing(e.Schedule)
	}
	at := &l.all[i]
	at.Next, at.Refused, at.LastAt = e.Next, e.Refused, f.at
	if e.Refused == "" {
		at.Last = e.Message
	}
	switch {
	case e.Next != 0:
		f.Mail.timers.addSchedule(e.Schedule, e.Next)
	case e.Refused == "": // one that could not be sent stays until its agent takes it out
		l.all = slices.Delete(l.all, i, i+1)
	}
	return nil
}

func (f fold) scheduleEnded(e *events.ScheduleEnded) error {
	l := &f.Mail.Schedules
	i, ok := l.find(e.Schedule)
	if !ok {
		return missing(e.Schedule)
	}
	l.all = slices.Delete(l.all, i, i+1)
	return nil
}
