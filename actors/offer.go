package actors

import (
	"context"
	"errors"
	"slices"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// Unoffered returns messages that a reader of the agent's mail may be offered: received messages, and open forms for the
// agent, that no reader was offered, and that nobody read. For a reader with an offer of All they are those that it was not
// offered itself. The urgent come first, those of low priority last, and else the oldest first. It returns at most some of
// them, and how many there are. A reader is an agent's session, or the agent itself.
func (a *Agent) Unoffered(ctx context.Context, reader capabilities.ID, most int) ([]view.Message, int, error) {
	found, err := read(ctx, a, queryUnoffered{reader, most})
	return found.messages, found.all, err
}

type queryUnoffered struct {
	reader capabilities.ID
	most   int
}

// unofferedMail is what may be offered, and how much of it there is.
type unofferedMail struct {
	messages []view.Message
	all      int
}

func (m queryUnoffered) handle(b *mailboxActor) (unofferedMail, error) {
	numbers, known := b.state.Mail.Index.Unoffered(m.reader)
	if !known {
		for l, err := range b.old.listed(view.MessageFilter{Unread: true}, 0) {
			if err != nil {
				return unofferedMail{}, err
			}
			if l.Unoffered {
				numbers = append(numbers, l.Number)
			}
		}
	}
	found := unofferedMail{all: len(numbers)}
	if _, err := recalled(b.old, func() (none, error) { return none{}, b.state.Mail.Index.ByPriority(numbers) }); err != nil {
		return found, err
	}
	for len(found.messages) < m.most && len(numbers) > 0 {
		some := numbers[:min(m.most-len(found.messages), len(numbers), readAtOnce)]
		numbers = numbers[len(some):]
		away, err := b.old.elsewhere(some)
		if err != nil {
			return found, err
		}
		found.all -= len(away)
		shown, err := b.old.views(slices.DeleteFunc(slices.Clone(some), func(n uint64) bool { return slices.Contains(away, n) }))
		if err != nil {
			return found, err
		}
		found.messages = append(found.messages, shown...)
	}
	return found, nil
}

// elsewhere returns those of some messages whose content is in a segment of the archive that is elsewhere.
func (o *oldMail) elsewhere(numbers []uint64) (away []uint64, err error) {
	look := func(numbers []uint64) error {
		_, err := recalled(o, func() ([]*mailbox.Message, error) { return o.state.Mail.Messages(numbers) })
		return err
	}
	err = look(numbers)
	if _, is := errors.AsType[*persistence.Elsewhere](err); !is {
		return nil, err
	}
	for _, n := range numbers {
		err := look([]uint64{n})
		if _, is := errors.AsType[*persistence.Elsewhere](err); is {
			away = append(away, n)
		} else if err != nil {
			return nil, err
		}
	}
	return away, nil
}

// Offer records that a notice of messages reaches a reader. It is durable when Offer returns, and may be shown from then on.
// It returns the numbers of those that the reader has: another may have been offered some meanwhile. See
// mailbox.OfferMessages.
func (a *Agent) Offer(ctx context.Context, c mailbox.OfferMessages) ([]uint64, error) {
	evs, err := call(ctx, a, decide{c})
	if err != nil || len(evs) == 0 {
		return nil, err
	}
	return evs[0].(*events.MessagesOffered).Numbers, nil
}

// OfferToEach has each of some readers be offered all mail from now on: see mailbox.OfferToEach.
func OfferToEach(ctx context.Context, a *Agent, readers []capabilities.ID) error {
	return a.do(ctx, mailbox.OfferToEach{Readers: readers})
}

// Offers returns the offers to a reader that have no proof, oldest first.
func (a *Agent) Offers(ctx context.Context, reader capabilities.ID) ([]mailbox.Offer, error) {
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) ([]mailbox.Offer, error) {
		return s.Mail.Offers.Of(reader), nil
	})
}

// Show records that a request to a reader's model held the text of messages: see mailbox.ShowMessages.
func (a *Agent) Show(ctx context.Context, c mailbox.ShowMessages) error { return a.do(ctx, c) }

// Handle records what a reader did with messages: see mailbox.HandleMessages.
func (a *Agent) Handle(ctx context.Context, c mailbox.HandleMessages) error { return a.do(ctx, c) }

// RepeatNotice records that a notice of an agent's mail reaches a reader again, and reports whether it may: see
// mailbox.RepeatNotice.
func RepeatNotice(ctx context.Context, a *Agent, c mailbox.RepeatNotice) (bool, error) {
	evs, err := call(ctx, a, decide{c})
	return len(evs) > 0, err
}

// Fetch records that the texts of messages of an agent are returned to a reader. It is durable when Fetch returns, so they may be
// then: see mailbox.FetchMessages.
func Fetch(ctx context.Context, a *Agent, c mailbox.FetchMessages) error { return a.do(ctx, c) }

// Return ends offers to a reader that were not shown: see mailbox.ReturnOffers.
func (a *Agent) Return(ctx context.Context, c mailbox.ReturnOffers) error { return a.do(ctx, c) }
