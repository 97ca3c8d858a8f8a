package mailbox

import (
	"errors"
	"fmt"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
)

// ErrNonsense reports an event that does not follow from those before it. Decide never makes one.
var ErrNonsense = errors.New("event does not follow from those before it")

// Apply folds one event into the state. It fails with ErrNonsense for an event that cannot follow. The state is unfit
// for use then, and the mailbox has to be quarantined. It fails with PagedOut, and changes nothing, if it needs a message
// that is not in memory.
func (s *State) Apply(r events.Recorded) error {
	if err := s.needs(r.Event); err != nil {
		return err
	}
	if s.Version == index.MaxVersion {
		return fmt.Errorf("%w: a mailbox has %d events at most", ErrNonsense, uint64(index.MaxVersion))
	}
	s.Version++
	countUse(s, r)
	f := fold{State: s, at: r.At}
	switch e := r.Event.(type) {
	case *events.FormRequested:
		return f.formRequested(e)
	case *events.FormAnswered:
		return f.formAnswered(e)
	case *events.FormCancelled:
		return f.formCancelled(e)
	case *events.FormForwarded:
		return f.formForwarded(e)
	case *events.FormReminded:
		return f.formReminded(e)
	case *events.FormRouted:
		return f.formRouted(e)
	case *events.FormAmended:
		return f.formAmended(e)
	case *events.FormClaimed:
		return formClaimed(f, e)
	case *events.ClaimQueued:
		return claimQueued(f, e)
	case *events.VoteCast:
		return f.voteCast(e)
	case *events.VoteWithdrawn:
		return f.voteWithdrawn(e)
	case *events.MessagePosted:
		return f.messagePosted(e)
	case *events.MessageDismissed:
		return f.messageDismissed(e)
	case *events.MessageRestored:
		return f.messageRestored(e)
	case *events.MailQueued:
		s.Mail.queue.next = e
	case *events.QueuedSent:
		return queuedSent(f, e)
	case *events.QueuedEnded:
		return queuedEnded(f, e)
	case *events.UseQueued:
		return useQueued(f, e)
	case *events.QueuedUseEnded:
		return queuedUseEnded(f, e)
	case *events.MessageScheduled:
		return f.messageScheduled(e)
	case *events.ScheduleFired:
		return f.scheduleFired(e)
	case *events.ScheduleEnded:
		return f.scheduleEnded(e)
	case *events.MessageSnoozed:
		return f.messageSnoozed(e)
	case *events.MessagesRead:
		return f.messagesRead(e)
	case *events.MessagesOffered:
		return messagesOffered(f, e)
	case *events.MessagesShown:
		return messagesShown(f, e)
	case *events.MessagesHandled:
		return messagesHandled(f, e)
	case *events.OffersReturned:
		return offersReturned(f, e)
	case *events.NoticeRepeated:
		return noticeRepeated(f, e)
	case *events.MessagesFetched:
		return messagesFetched(f, e)
	case *events.ReceiptReported:
		return receiptReported(f, e)
	case *events.MessagesOverdue:
		return noteOverdue(f, e)
	case *events.MessageUnreached:
		return messageUnreached(f, e)
	case *events.MemberReported:
		return memberReported(f, e)
	case *events.MembersCounted:
		return membersCounted(f, e)
	case *events.MessageRepeated:
		return messageRepeated(f, e)
	case *events.DraftSaved:
		return f.draftSaved(e)
	case *events.MessageDrafted:
		s.Mail.Texts.save(e)
	case *events.MessageDelivered:
		return f.delivered(e)
	case *events.NameBound:
		s.Names.bind(e.Name, e.Value)
	case *events.NameUnbound:
		s.Names.unbind(e.Name)
	case *events.CapabilityGranted:
		f.granted(e.Grant)
	case *events.CapabilityRevoked:
		f.revoked(e.Grant, e.Date)
	case *events.AnswerGranted:
		s.Grants.Answers.Set(e)
	case *events.RuleAdded:
		s.Rules.add(e, r.At)
	case *events.RuleUsed:
		s.Runs.decidedCall()
		s.Rules.countUse(e, r.At)
	case *events.RulePaused:
		s.Rules.pause(e)
	case *events.RuleRemoved:
		s.Rules.remove(e.Rule)
	case *events.MandateGiven:
		return mandateGiven(f, e)
	case *events.MandateCharged:
		return mandateCharged(f, e)
	case *events.MandateEnded:
		return mandateEnded(f, e)
	case *events.CallerNamed:
		return callerNamed(f, e)
	case *events.PasskeyAdded:
		return passkeyAdded(f, e)
	case *events.PasskeyRemoved:
		return passkeyRemoved(f, e)
	case *events.PasskeyRequired:
		return passkeyRequired(f, e)
	case *events.PasskeyUsed:
		return passkeyUsed(f, e)
	case *events.DecisionSigned:
		return decisionSigned(f, e)
	case *events.TokenMade:
		s.Tokens.add(e, r.At)
	case *events.TokenRenewed:
		s.Tokens.renew(e, r.At)
	case *events.TokenRevoked:
		s.Tokens.remove(e.Token)
	case *events.CapabilityMinted:
		s.Grants.addMinted(e.Grant)
	case *events.AnswerQueued:
		return f.answerQueued(e)
	case *events.ForwardQueued:
		return f.forwardQueued(e)
	case *events.InvitationMade:
		s.Peers.addInvitation(e)
	case *events.InvitationEnded:
		s.Peers.endInvitation(e)
	case *events.NodeMet:
		s.Peers.addPeer(e)
	case *events.QuotaSet:
		s.Peers.setQuota(e)
	case *events.NodeDropped:
		s.Peers.drop(e)
	case *events.JournalArchived: // the record is for readers of the log
	case *events.AgentCreated:
		return f.agentCreated(e)
	case *events.AgentUpdated:
		f.profileChanged()
		s.Profile.update(e)
	case *events.AgentArchived:
		f.profileChanged()
		s.Profile.archive()
		s.Rules.endAllMandates(r.At)
		for _, m := range s.Runs.clear() {
			f.retire(m)
		}
	case *events.ProgramSet:
		f.profileChanged()
		s.Runs.program = *e
	case *events.AwaySet:
		f.shownChanged()
		s.StandIns.setAway(e)
	case *events.TopicMade:
		return topicMade(f, e)
	case *events.TopicSubscribed:
		return topicSubscribed(f, e)
	case *events.DigestPosted:
		return digestPosted(f, e)
	case *events.AttentionSet:
		attentionSet(f, e)
	case *events.MemberSet:
		s.StandIns.setMember(e)
	case *events.SessionStarted:
		s.Sessions.start(e, r.At)
	case *events.SessionMoved:
		if was, _ := s.Sessions.Of(e.Agent); was.Session != e.Session { // its conversation begins anew
			s.Rules.endMandates(e.Agent, r.At)
		}
		if !s.Sessions.move(e, r.At) {
			return fmt.Errorf("%w: no session %s", ErrNonsense, e.Agent)
		}
	case *events.SessionEnded:
		s.Rules.endMandates(e.Agent, r.At)
		if !s.Sessions.end(e, r.At) {
			return fmt.Errorf("%w: no session %s", ErrNonsense, e.Agent)
		}
	case *events.FileStored:
		noteFiles(f)
		s.Files.store(e)
	case *events.FilesDropped:
		s.Files.drop(e)
	case *events.LeaseAsked:
		return leaseAsked(f, e)
	case *events.LeaseGranted:
		return leaseHeld(f, e.Lease, e.Until, false)
	case *events.LeaseRenewed:
		return leaseHeld(f, e.Lease, e.Until, true)
	case *events.LeaseEnded:
		return leaseEnded(f, e)
	case *events.TeamMade:
		teamMade(f, e)
	case *events.TeamMemberSet:
		return teamMemberSet(f, e)
	case *events.TeamEnded:
		return teamEnded(f, e)
	case *events.ResourceMade:
		return resourceMade(f, e)
	case *events.ResourceRenewed:
		return resourceRenewed(f, e)
	case *events.UseBegun:
		return useBegun(f, e)
	case *events.UseAllowed:
		return useAllowed(f, e)
	case *events.UseEnded:
		return useEnded(f, e)
	case *events.PolicySet:
		f.profileChanged()
		s.Rules.policy, s.Rules.reviewer = e.Policy, nil
	case *events.ReviewerSet:
		f.profileChanged()
		s.Rules.setReviewer(e)
	case *events.ReviewAsked:
		return reviewAsked(f, e)
	case *events.ReviewEnded:
		return reviewEnded(f, e)
	case *events.RunsHeld:
		f.profileChanged()
		if s.Runs.held = e.Held; e.Held {
			s.Rules.endAllMandates(r.At)
		}
	case *events.RunStarted:
		f.profileChanged()
		f.runStarted(e)
	case *events.RunEnded:
		if !e.By.IsZero() { // somebody stopped it
			s.Rules.endMandates(capabilities.ID{}, r.At)
		}
		f.profileChanged()
		f.runEnded(e)
	default:
		return fmt.Errorf("%w: %T", ErrNonsense, r.Event)
	}
	return nil
}

// fold applies one event, recorded at a time, to a state. Its methods are for events that change several parts.
type fold struct {
	*State
	at capabilities.Time
}

// profileChanged notes that the event changed the profile.
func (f fold) profileChanged() {
	f.Profile.Updated = f.at
	f.shownChanged()
}

// shownChanged notes that the event changed how the agent is shown.
func (f fold) shownChanged() { f.profileVersion = f.Version }

func (f fold) agentCreated(e *events.AgentCreated) error {
	if f.Version != 1 || e.Agent != f.ID {
		return fmt.Errorf("%w: agent made twice", ErrNonsense)
	}
	f.Profile = Profile{Kind: e.Kind, Host: e.Host, By: e.By, Of: e.Of, Name: e.Name, Title: e.Title, Labels: e.Labels, Status: Idle, Created: f.at}
	f.profileChanged()
	return nil
}

func (f fold) formRequested(e *events.FormRequested) error {
	m := &Message{Number: e.Number, Form: newForm(e), Behind: f.Mail.queue.take(e.ID)}
	if e.From == f.ID && m.Behind == nil {
		m.Form.Holders = []capabilities.ID{e.To}
	}
	if err := f.Mail.add(m, f.Version, f.at); err != nil {
		return err
	}
	f.Grants.countUse(e.Via)
	if e.From != f.ID {
		return nil
	}
	addKey(&f.Mail.Keys.asked, m.Form.Key, m.Number)
	f.Mail.questioned.drop(e.ReplyTo)
	f.Mail.indexOpen(m)
	if e.Kind == events.Approval {
		f.shownChanged()
	}
	if m.Behind != nil {
		return f.enterQueued(m)
	}
	f.Grants.addReply(e.To, e.ID, e.Date)
	f.Outbox.enqueue(events.OutboxCopy, e.ID, e.To)
	return nil
}

func (f fold) formAnswered(e *events.FormAnswered) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	noteAnswer(m.Form, e)
	f.Grants.recordRoots(e.Values)
	f.Mail.refs.addAnswer(e)
	referAnswer(f, m)
	f.settled(m, e.Date)
	return nil
}

func (f fold) formCancelled(e *events.FormCancelled) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	m.Form.Ended = e
	f.settled(m, e.Date)
	return nil
}

// settled applies the end of a form. At its home, the outcome is enqueued for every holder.
func (f fold) settled(m *Message, at capabilities.Time) {
	f.Mail.settle(m, f.Version)
	dropClaims(m.Form)
	f.unqueue(m)
	f.Grants.Answers.End(m.Form.ID)
	defer f.retire(m)
	if m.Form.From != f.ID {
		f.dropQueued(m.Form, at)
		return
	}
	if m.Form.Kind == events.Approval {
		f.Mail.questioned.note(m, f.Rules.callers[m.Form.ID], at)
		delete(f.Rules.callers, m.Form.ID)
		f.shownChanged()
	}
	m.Form.questions = rare[[]uint64]{} // nobody waits for a reply any more
	for _, h := range m.Form.Holders {
		f.Outbox.enqueue(events.OutboxOutcome, m.Form.ID, h)
	}
}

// dropQueued drops the answer and the forwards that are queued for a form's home when the form ends. It revokes their
// grants, but for those of the answer that became the outcome.
func (f fold) dropQueued(form *Form, at capabilities.Time) {
	queued := form.Queued()
	form.queued = rare[Queued]{} // the outcome replaces it, and what the home refused
	if queued.Answer == nil && queued.Claim == nil && len(queued.Forwards) == 0 {
		return
	}
	f.Outbox.dropQueued(form.ID, queued)
	if queued.Answer != nil && !form.EndedBy(queued.Answer.Answer) {
		f.revokeUnused(queued.Answer.Grants, at)
	}
	for _, w := range queued.Forwards {
		if g, ok := f.Grants.given.Get(w.Via); ok {
			f.revokeUnused([]capabilities.Grant{g}, at)
		}
	}
}

func (f fold) formForwarded(e *events.FormForwarded) error {
	m, err := f.Mail.form(e.Form)
	if err != nil {
		return err
	}
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	m.Form.addForward(e, f.ID)
	if m.Form.Queued().forward(e.Via) >= 0 {
		m.Form.queued.edit().dropForward(e.Via)
	}
	if m.Form.From == f.ID {
		f.Grants.addReply(e.To, e.Form, e.Date)
		if m.Form.IsOpen() {
			f.Mail.asks.addForwards(m, *e)
		}
		f.enqueueCopy(m.Form, e.To)
		f.Outbox.enqueue(events.OutboxForwarded, e.Form, e.By)
	}
	f.retire(m)
	return nil
}

func (f fold) answerQueued(e *events.AnswerQueued) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	f.Mail.touch(m, f.Version)
	m.Form.queued.edit().say(e)
	referAnswer(f, m)
	kind := events.OutboxAnswer
	if e.Reason == events.Withdrawn {
		kind = events.OutboxWithdrawal
	}
	f.Outbox.enqueue(kind, e.Form, m.Form.From)
	return nil
}

func (f fold) forwardQueued(e *events.ForwardQueued) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	f.Mail.touch(m, f.Version)
	queued := m.Form.queued.edit()
	queued.Forwards = append(queued.Forwards, *e)
	f.Outbox.enqueue(events.OutboxForward, e.Via, m.Form.From)
	return nil
}

func (f fold) messagePosted(e *events.MessagePosted) error {
	m := &Message{Number: e.Number, Posted: e, Behind: f.Mail.queue.take(e.Message)}
	if err := f.Mail.add(m, f.Version, f.at); err != nil {
		return err
	}
	f.Grants.countUse(e.Via)
	refer(f, m.Number, e.Files)
	for i := 1; i < len(e.Recipients); i++ {
		f.Grants.countUse(e.Recipients[i].Via) // in a copy there is none
	}
	noteReply(f, e)
	notePost(f, e)
	askedBack(f, e)
	if e.AckBy != 0 && e.From != e.To {
		wantAck(&f.Mail, m.Number, wantedAck{By: e.AckBy})
	}
	defer f.retire(m)
	if e.To == f.ID && f.Runs.HasProgram() && !f.Profile.Archived {
		f.Runs.enqueue(m)
		f.shownChanged()
	}
	if e.From == f.ID {
		addKey(&f.Mail.Keys.posted, m.Posted.Key, m.Number)
		f.Mail.Texts.sent(e)
		if m.Behind != nil {
			return f.enterQueued(m)
		}
		for _, to := range m.Recipients() {
			f.Grants.addReply(to, e.Message, e.Date)
			f.Outbox.enqueue(events.OutboxCopy, e.Message, to)
		}
		return nil
	}
	for _, sp := range e.Text {
		f.Grants.recordRoots(sp.Value)
	}
	return nil
}

// ownReceipt returns the receipt of something that the agent itself did.
func ownReceipt(f fold, state events.MessageState, how events.Handling) Receipt {
	return Receipt{Reader: f.ID, State: state, At: f.at, How: string(how)}
}

// askedBack notes a message in the thread of an open form that the agent asked: a question of one who may answer, or the
// agent's reply, which ends the questions.
func askedBack(f fold, e *events.MessagePosted) {
	if e.Thread.IsZero() || e.From == e.To {
		return
	}
	if e.From == f.ID {
		f.Mail.questioned.reply(e.Thread)
	}
	m := f.Mail.OpenIn(e.Thread)
	if m == nil {
		return
	}
	asked := m.Form.Questions()
	switch {
	case e.From == f.ID && len(asked) > 0:
		*m.Form.questions.edit() = nil
	case e.From != f.ID && m.Form.mayAnswer(e.From):
		asked = append(slices.Clone(asked), e.Number)
		*m.Form.questions.edit() = asked[max(0, len(asked)-maxQuestions):]
	default:
		return
	}
	f.Mail.touch(m, f.Version)
}

// missing returns the error of an event about a message that is not there.
func missing(n uint64) error { return fmt.Errorf("%w: no message %d", ErrNonsense, n) }

func (f fold) messageDismissed(e *events.MessageDismissed) error {
	if e.Number >= f.Mail.Index.Len() {
		return missing(e.Number)
	}
	f.Mail.dismiss(e.Number, f.Version)
	f.Files.dismiss(e.Number, f.at)
	f.Topic.dropPost(e.Number)
	if at := f.Mail.Index.entries.At(e.Number); at.Is(index.Received) && at.Stage() < events.Handled.Rank() {
		f.advance(e.Number, ownReceipt(f, events.Handled, events.WasDismissed))
	}
	if f.Mail.Index.entries.At(e.Number).Is(index.Received) {
		delete(f.Mail.acks, e.Number)
	}
	if m := f.Mail.live[e.Number]; m != nil {
		if f.Runs.drop(m) {
			f.shownChanged()
		}
		f.retire(m)
	}
	return nil
}

func (f fold) runStarted(e *events.RunStarted) {
	f.Profile.Status, f.Profile.Error = Running, ""
	if prompt := f.Runs.start(e, f.Mail.Index.Len()); prompt != nil {
		f.Mail.touch(prompt, f.Version)
		f.advance(prompt.Number, ownReceipt(f, events.Shown, events.ProgramStarted))
	}
}

func (f fold) runEnded(e *events.RunEnded) {
	prompt := f.Runs.prompt
	f.Runs.run, f.Runs.prompt, f.Runs.ended = nil, nil, f.Version
	f.Profile.Status, f.Profile.Error = Idle, e.Error
	switch {
	case e.Again && prompt != nil:
		f.Profile.Error = ""
		f.Runs.requeue(prompt)
		f.Mail.touch(prompt, f.Version)
	case e.Error == "":
		if f.Runs.succeeded(); prompt != nil {
			f.advance(prompt.Number, ownReceipt(f, events.Handled, events.ProgramEnded))
		}
	default:
		f.Profile.Status = Failed
		f.Runs.retries = 0
		if prompt != nil && e.Error == Interrupted && !prompt.Dismissed {
			for _, m := range f.Runs.noteInterrupted(prompt) {
				f.retire(m)
			}
			f.Mail.touch(prompt, f.Version)
		}
	}
	if prompt != nil {
		f.retire(prompt)
	}
}
