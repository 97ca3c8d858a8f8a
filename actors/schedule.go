package actors

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// Schedules are the messages that an agent sends later.
type Schedules struct{ agent *Agent }

// Schedules returns the messages that the agent sends later.
func (m Mail) Schedules() Schedules { return Schedules(m) }

// nextTime returns the first time of a series after another. It refuses with INVALID_ARGUMENT.
func nextTime(every, zone string, after capabilities.Time) (capabilities.Time, error) {
	if strings.Contains(every, "=") { // it would be read as a time zone
		return 0, badSeries(every)
	}
	at, err := cron.ParseStandard(withSunday(every))
	if err != nil {
		return 0, badSeries(every)
	}
	where, err := zoneOf(zone)
	if err != nil {
		return 0, err
	}
	next := nextOnClock(at, after.Std().In(where))
	if next.IsZero() {
		return 0, parley.Refuse(parley.InvalidArgument, "the series %s has no time that comes", parley.Quoted(every, 80))
	}
	return capabilities.At(next), nil
}

// withSunday returns a cron expression in which Sunday is 0: it may be 7, which the library does not know.
func withSunday(every string) string {
	fields := strings.Fields(every)
	if len(fields) != 5 || !strings.Contains(fields[4], "7") {
		return every
	}
	var days []string
	for part := range strings.SplitSeq(fields[4], ",") {
		span, step, stepped := strings.Cut(part, "/")
		from, to, isRange := strings.Cut(span, "-")
		first, err := strconv.Atoi(from)
		if i := slices.Index(weekdays, strings.ToLower(from)); i >= 0 {
			first, err = i, nil
		}
		width, failed := 1, error(nil)
		if stepped {
			width, failed = strconv.Atoi(step)
		}
		switch {
		case span == "7" && !stepped:
			days = append(days, "0")
		case isRange && to == "7" && err == nil && failed == nil && 0 <= first && first <= 7 && 0 < width && width <= 7:
			for day := first; day <= 7; day += width {
				days = append(days, strconv.Itoa(day%7))
			}
		default:
			days = append(days, part)
		}
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// everyHour are the hours of a cron expression that leaves out none.
const everyHour = 1<<24 - 1

// nextOnClock returns the first time of a series after another, in that one's time zone. A series of each hour follows the time that passes. One
// at certain hours follows the clock on the wall: when that is put back, an hour that comes twice counts once, the first time; when it is put
// forward, what falls into the hour that is left out comes as much later. Cron itself would send twice, and not at all.
func nextOnClock(series cron.Schedule, after time.Time) time.Time {
	spec, ok := series.(*cron.SpecSchedule)
	if !ok || spec.Hour&everyHour == everyHour {
		return series.Next(after)
	}
	_, offset := after.Zone()
	for wall := after.UTC().Add(time.Duration(offset) * time.Second); ; {
		if wall = series.Next(wall); wall.IsZero() {
			return wall
		}
		if at := onClock(wall, after.Location()); at.After(after) {
			return at
		}
	}
}

// onClock returns when a clock in a time zone shows what a time in UTC does: the first time, or as much later as the clock leaves out.
func onClock(wall time.Time, zone *time.Location) time.Time {
	shownBy := func(day time.Time) time.Time {
		_, offset := day.In(zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second).In(zone)
	}
	before := shownBy(wall.Add(-24 * time.Hour))
	if after := shownBy(wall.Add(24 * time.Hour)); before.Format(time.DateTime) != wall.Format(time.DateTime) && after.Format(time.DateTime) == wall.Format(time.DateTime) {
		return after
	}
	return before
}

func badSeries(every string) error {
	return parley.Refuse(parley.InvalidArgument, "%s is no series", parley.Quoted(every, 80)).WithHint(`as in "0 9 * * 1-5" (minute, hour, day, month, weekday) or @daily`)
}

// Add has a message sent later: at a time, or with Every at the times of a series, of which At is none. It returns the schedule.
func (s Schedules) Add(ctx context.Context, c mailbox.ScheduleMessage) (view.Schedule, error) {
	c.Next = nextTime
	if (c.At == 0) == (c.Every == "") {
		return view.Schedule{}, parley.Refuse(parley.InvalidArgument, "when? give a time or a series, and not both")
	}
	if c.Every != "" {
		var err error
		if c.At, err = nextTime(c.Every, c.Zone, s.agent.node.clock()); err != nil {
			return view.Schedule{}, err
		}
	}
	return call(ctx, s.agent, scheduleMessage{c})
}

type scheduleMessage struct{ command mailbox.ScheduleMessage }

func (m scheduleMessage) handle(b *mailboxActor) (view.Schedule, error) {
	known, sent, err := m.existing(b)
	if err != nil {
		return view.Schedule{}, err
	}
	if sent != nil {
		return b.viewer().sentSchedule(sent, m.command.Text)
	}
	if known == nil {
		if _, err := b.decide(m.command); err != nil {
			return view.Schedule{}, err
		}
		all := b.state.Mail.Schedules.All()
		known = &all[len(all)-1]
	}
	return b.viewer().schedule(known)
}

// existing returns what there is under the key of the message, as mailbox.ScheduleMessage.FindExisting.
func (m scheduleMessage) existing(b *mailboxActor) (known *mailbox.Schedule, sent *mailbox.Message, err error) {
	_, err = recalled(b.old, func() (_ struct{}, err error) {
		known, sent, err = m.command.FindExisting(b.state)
		return
	})
	return known, sent, err
}

// sentSchedule returns a schedule that has ended with its message. It has no number any more.
func (v *viewer) sentSchedule(m *mailbox.Message, text string) (view.Schedule, error) {
	all := m.Recipients()
	shown := view.Schedule{To: all[0], ToName: v.nameOf(all[0]), Header: m.Posted.Header, Text: text, Last: m.ID(), LastAt: m.Date()}
	for _, id := range all[1:] {
		shown.Also = append(shown.Also, view.Party{ID: id, Name: v.nameOf(id)})
	}
	return shown, v.absent
}

// schedule returns a schedule as it is shown.
func (v *viewer) schedule(s *mailbox.Schedule) (view.Schedule, error) {
	shown := view.Schedule{
		Number: s.Schedule, To: s.To, ToName: v.nameOf(s.To), Header: s.Header, Text: s.Text, Next: s.Next, Every: s.Every, Zone: s.Zone,
		Last: s.Last, LastAt: s.LastAt, Refused: s.Refused,
	}
	for _, id := range s.Also {
		shown.Also = append(shown.Also, view.Party{ID: id, Name: v.nameOf(id)})
	}
	return shown, v.absent
}

// List returns all schedules, by their numbers.
func (s Schedules) List(ctx context.Context) (view.Schedules, error) {
	return read(ctx, s.agent, querySchedules{})
}

type querySchedules struct{}

func (querySchedules) handle(b *mailboxActor) (view.Schedules, error) {
	list := view.Schedules{Schedules: []view.Schedule{}}
	v := b.viewer()
	for i := range b.state.Mail.Schedules.All() {
		one, err := v.schedule(&b.state.Mail.Schedules.All()[i])
		if err != nil {
			return list, err
		}
		list.Schedules = append(list.Schedules, one)
	}
	return list, nil
}

// End ends a schedule.
func (s Schedules) End(ctx context.Context, number uint64) error {
	return s.agent.do(ctx, mailbox.EndSchedule{Schedule: number})
}
