package events

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/capabilities"
	"parley/internal/pack"
)

// The corpus in testdata/golden has each kind of event as it is encoded. From the first release on its files are kept for
// ever and never made again: each release decodes what all before it wrote. The flag -update adds missing .hex files and
// changes none. The .json file of each has the decoded event.
var update = flag.Bool("update", false, "write the golden files that are missing")

const goldenAt capabilities.Time = 1_700_000_000_123

const goldenDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func goldenRef(n byte) capabilities.Value { return capabilities.Reference(goldenGrant(n).Ref()) }

func goldenGrant(n byte) capabilities.Grant {
	return capabilities.Grant{
		ID: testID(n), Parent: testID(n + 1), Target: testID(n + 2), Kind: capabilities.KindAgent,
		Facet: capabilities.Facet{Mode: capabilities.AskOnly, Until: goldenAt + 5000, Uses: 7},
		Name:  "wörker", To: testID(n + 3), By: testID(n + 4), Message: testID(n + 5), At: goldenAt, Revoked: goldenAt + 9,
	}
}

// goldenLimits returns a facet with each limit that a resource may have.
func goldenLimits() capabilities.Facet {
	return capabilities.Facet{
		Mode: capabilities.ReadOnly, Until: goldenAt + 5000, Uses: 7, Rate: capabilities.Rate{Uses: 2, Seconds: 60}, Below: "v1/notes",
		Only: "api.example", Methods: "GET HEAD", Ask: true,
	}
}

func goldenValue() capabilities.Value {
	return capabilities.Record(map[string]capabilities.Value{
		"null": capabilities.Null(), "bool": capabilities.Bool(true), "int": capabilities.Int(-1 << 63), "float": capabilities.Float(0.1),
		"text": capabilities.String("Grüße\n\u202e"), "bytes": capabilities.Bytes([]byte{0, 255}), "ref": goldenRef(90),
		"list": capabilities.List(capabilities.Int(300), capabilities.Strings("a", "")), "sealed": capabilities.Sealed([]byte{1, 2, 3}),
	})
}

func goldenForm() *FormRequested {
	return &FormRequested{
		Number: 70_000, ID: testID(1), Promise: testID(2), Resolver: testID(3), From: testID(4), To: testID(5), Via: testID(6),
		Facet: Narrowed(goldenGrant(1).Facet), Kind: Request, Title: "Title", Description: "What is it?", Deadline: goldenAt + 60_000, NoForward: true, ReplyTo: testID(7),
		Date: goldenAt, Key: "key", Result: "answer", Forwarder: testID(8), Chain: []capabilities.ID{testID(5), testID(8)},
		Fields: []Field{{
			Name: "port", Label: "Port", Type: Select, Required: true, Default: capabilities.Int(80), Placeholder: "80", Help: "a port",
			Options: []Option{{Value: "80", Label: "eighty", Description: "the web"}, {Value: "81"}},
			Example: capabilities.List(capabilities.String("e")), Pattern: json.RawMessage(`{"type":"integer"}`),
		}, {Name: "plain"}},
	}
}

func goldenAmendment() *FormAmended {
	e := &FormAmended{
		Form: testID(1), Revision: 2, Title: "Title", Description: "Which port is it?", Fields: goldenForm().Fields, Note: "the port, not the name", Date: goldenAt,
	}
	e.Digest = e.QuestionDigest()
	return e
}

func goldenFormOfDialect() *FormRequested {
	f := goldenForm()
	f.Origin = &Origin{Dialect: "question", ID: "q1", Session: "s1", Submit: "Send", Run: "r1", Agent: "planner", Turn: 3, Bare: true}
	return f
}

func goldenRoutedForm() *FormRequested {
	f := goldenFormOfDialect()
	f.Route = &Route{
		Need: 2, NoVeto: true, NoSelf: true, Remind: []Delay{3_600_000, 7_200_000},
		Escalate: []Escalation{{After: 14_400_000, To: testID(8), Via: testID(20), Facet: goldenGrant(1).Facet}},
	}
	return f
}

func goldenSignedForm() *FormRequested {
	f := goldenRoutedForm()
	f.Route.Passkey = true
	return f
}

func goldenCopy() *FormRequested {
	f := goldenRoutedForm()
	f.Steps = &CopySteps{
		{By: testID(4), Cause: Escalated, Date: goldenAt, After: 14_400_000}, {By: testID(5), Date: goldenAt + 1}, {By: testID(8), Cause: Absent, Date: goldenAt + 2, Until: goldenAt + 9},
	}
	return f
}

func goldenCall() *FormRequested {
	f := goldenCopy()
	f.Kind, f.Call = Approval, &Call{
		Folder: "/srv/shop", Decider: testID(9), Reason: "to ship it", Part: "reviewer", Session: "Claude Code · shop · 2",
		Offers: []Offer{{ID: "commands", Rule: *goldenCoverage(), Words: "git log"}, {ID: "call", Rule: Coverage{Kind: CoversCall}, Words: "exactly this call"}},
	}
	f.Asker = "Claude Code · shop"
	return f
}

// samples returns the corpus in memory by the names of its files. A type has several samples if one cannot have all fields.
func samples() map[string]Event {
	title := "New title"
	return map[string]Event{
		"FormRequested.v1": goldenCall(),
		"MessagePosted.author": &MessagePosted{
			Number: 3, Message: testID(21), From: testID(4), To: testID(5), Text: []Span{{Words: "the build is red"}}, Date: goldenAt, Author: testID(9),
			Original: testID(22), Passed: []capabilities.ID{testID(4)}, Sender: "ops", AuthorSaid: "Claude Code · shop",
		},
		"VoteCast.v1": &VoteCast{
			Form: testID(1), By: testID(5), Principal: testID(8), Revision: 2, Outcome: VoteDeclined, Digest: Hash{1, 31: 2}, Note: "not today", Date: goldenAt, Answer: testID(30),
			Person: testID(4),
		},
		"VoteWithdrawn.v1":   &VoteWithdrawn{Form: testID(1), By: testID(5), Date: goldenAt, Answer: testID(30)},
		"AwaySet.v1":         &AwaySet{From: goldenAt, Until: goldenAt + 9, Delegate: testID(8), Date: goldenAt},
		"TopicMade.v1":       &TopicMade{Name: "news", Team: testID(9)},
		"TopicSubscribed.v1": &TopicSubscribed{Agent: testID(8), In: true, Every: 3_600_000},
		"DigestPosted.v1":    &DigestPosted{Agent: testID(8), Through: 7, Message: testID(20)},
		"AttentionSet.v1":    &AttentionSet{Attention{AllSessions: true, Quiet: "22:00-07:00", Zone: "Europe/Berlin", Interruptions: "normal"}},
		"MemberSet.v1":       &MemberSet{Agent: testID(8), In: true, Date: goldenAt},
		"SessionStarted.v1":  &SessionStarted{Agent: testID(8), Session: "5b1c", Process: SessionProcess{PID: 4711, Start: "boot/12"}},
		"SessionMoved.v1":    &SessionMoved{Agent: testID(8), Session: "77aa", Process: SessionProcess{PID: 4712, Start: "boot/13"}},
		"SessionEnded.v1":    &SessionEnded{Agent: testID(8), Forgotten: true},
		"NoticeRepeated.v1":  &NoticeRepeated{Reader: testID(8), Token: "995ecc3a", Moment: "stop"},
		"MessagesFetched.v1": &MessagesFetched{Reader: testID(8), Numbers: []uint64{0, 300}},
		"AnswerGranted.v1":   &AnswerGranted{Grant: goldenGrant(20), Outcomes: []string{"deny", "once"}, Revision: 2, Digest: []byte{1, 2, 3}, Used: 1, Last: "deny", By: TokenRef{Agent: testID(4), Token: testID(15)}},
		"FormReminded.v1":    &FormReminded{Form: testID(1), N: 2, Date: goldenAt},
		"FormRouted.v1":      &FormRouted{Form: testID(1), To: testID(8), Via: testID(20), Cause: Escalated, Step: 1, Date: goldenAt},
		"FormAnswered.v1": &FormAnswered{
			Form: testID(1), By: testID(5), Values: goldenValue(), Date: goldenAt, Grants: []capabilities.Grant{goldenGrant(20), goldenGrant(40)}, Withheld: true, Answer: testID(30),
		},
		"FormCancelled.v1":    &FormCancelled{Form: testID(1), Reason: Declined, By: testID(5), Note: "not today", Date: goldenAt, Answer: testID(30)},
		"FormForwarded.v1":    &FormForwarded{Form: testID(1), By: testID(5), To: testID(8), Date: goldenAt, Via: testID(20), Because: ForwardCause{Cause: Member}},
		"FormForwarding.v1":   &ForwardQueued{Form: testID(1), To: testID(8), Via: testID(20), Date: goldenAt, Because: ForwardCause{Cause: Absent, Until: goldenAt + 9}},
		"FormAnswering.v1":    &AnswerQueued{Form: testID(1), Reason: Declined, Note: "no", Values: goldenValue(), Grants: []capabilities.Grant{goldenGrant(20)}, Date: goldenAt, Answer: testID(30), Revision: 2},
		"FormAmended.v1":      goldenAmendment(),
		"CapabilityMinted.v1": &CapabilityMinted{Grant: goldenGrant(20)},
		"RuleUsed.v1":         &RuleUsed{Rule: testID(11), Tool: "shell", Input: `{"command":"ls"}`},
		"TokenMade.v1":        &TokenMade{Token: testID(14), Digest: []byte{1, 2, 3}, Scopes: []string{"ask", "read"}, Until: goldenAt, Note: "for the page", Session: true, Page: []byte{4, 5}, By: TokenRef{Agent: testID(4), Token: testID(15)}},
		"TokenRenewed.v1":     &TokenRenewed{Token: testID(14), Digest: []byte{6, 7}, Former: []byte{8, 9}},
		"TokenRevoked.v1":     &TokenRevoked{Token: testID(14)},
		"InvitationMade.v1":   &InvitationMade{Invitation: testID(12), Name: "bob", Digest: []byte{1, 2, 3}, Until: goldenAt + 1, Grant: testID(13), Token: testID(15)},
		"InvitationEnded.v1":  &InvitationEnded{Invitation: testID(12), Node: testID(0).Node},
		"NodeMet.v1":          &NodeMet{Node: testID(0).Node, Host: testID(4), By: testID(1).Node, Hints: []string{"nats://127.0.0.1:4222"}, Stamp: goldenAt, Network: PrivateNetwork},
		"QuotaSet.v1":         &QuotaSet{Agent: testID(4), Node: testID(0).Node, Quotas: []QuotaLimit{{Name: "forms", Limit: -1}, {Name: "inbox", Limit: 1 << 40}}},
		"NodeDropped.v1":      &NodeDropped{Node: testID(0).Node, Date: goldenAt},
		"JournalArchived.v1": &JournalArchived{
			After: Mark{Number: 70_000, Hash: Hash{1, 31: 2}}, Last: Mark{Number: 1 << 40, Hash: Hash{3, 31: 4}}, Checkpoint: Hash{5, 31: 6},
			Segments: []ArchivedSegment{
				{Last: Mark{Number: 80_000, Hash: Hash{7}}, From: goldenAt - 9, To: goldenAt - 1, Bytes: 64 << 20, Digest: Hash{8}},
				{Last: Mark{Number: 1 << 40, Hash: Hash{3, 31: 4}}, From: goldenAt, To: goldenAt, Bytes: 1 << 33, Digest: Hash{9}},
			},
		},
		"MessagePosted.v1": &MessagePosted{
			Number: 300, Message: testID(9), From: testID(4), To: testID(5), Via: testID(6), Facet: goldenGrant(1).Facet, Text: []Span{{Words: "this is "}, {Edge: "w", Value: goldenRef(60)}}, ReplyTo: testID(1), Thread: testID(2), Author: testID(3), Date: goldenAt, Key: "key", Header: Header{AckBy: goldenAt + 60_000, Priority: Urgent, Subject: "On\u00a0it", Files: []File{{Digest: goldenDigest, Name: "pläne.pdf", Size: 12_000_000, Type: "application/pdf"}}},
			Recipients: []Recipient{
				{Agent: testID(5), Name: "bob", Via: testID(6), Facet: goldenGrant(1).Facet}, {Agent: testID(7), Name: "ops", Values: []capabilities.Value{goldenRef(80)}},
			},
			Original: testID(10), Passed: []capabilities.ID{testID(11), testID(4)},
			Escalate: &Recipient{Agent: testID(12), Name: "lead", Via: testID(13)}, Late: []Recipient{{Agent: testID(14), Name: "eve"}}, Sender: "Claude Code · shop",
		},
		"MembersCounted.v1":   &MembersCounted{Message: testID(9), By: testID(4), Counts: MemberCounts{Passed: 300, Missed: 1, Offered: 200, Shown: 150, Handled: 100, Acknowledged: 2}},
		"MessageRepeated.v1":  &MessageRepeated{Message: testID(9), By: testID(4)},
		"MemberReported.v1":   &MemberReported{Message: testID(9), By: testID(4), Member: testID(5), Name: "bob", State: Shown, How: "the transcript of s1", Date: goldenAt, All: Offered},
		"MessageUnreached.v1": &MessageUnreached{Message: testID(9), By: testID(4), Agent: testID(5), Name: "bob", Why: "AGENT_ARCHIVED: the agent is archived", Date: goldenAt},
		"MessageDismissed.v1": &MessageDismissed{Number: 1 << 40},
		"MessageRestored.v1":  &MessageRestored{Number: 1 << 40},
		"FileStored.v1":       &FileStored{Digest: goldenDigest, Size: 12_000_000, Date: goldenAt},
		"FilesDropped.v1":     &FilesDropped{Digests: []string{goldenDigest}},
		"MessageScheduled.v1": &MessageScheduled{Schedule: 7, To: testID(2), Header: Header{Priority: Low, Subject: "Standup"}, Text: "what is open?", Plain: true, At: goldenAt, Every: "0 9 * * 1-5", Zone: "Europe/Berlin", Date: goldenAt, Key: "standup", Also: []capabilities.ID{testID(5)}, Escalate: testID(6)},
		"ScheduleFired.v1":    &ScheduleFired{Schedule: 7, Message: testID(3), Refused: "no", Next: goldenAt + 9},
		"ScheduleEnded.v1":    &ScheduleEnded{Schedule: 7},
		"LeaseAsked.v1": &LeaseAsked{Lease: 7, Holder: testID(2), Of: testID(4), Team: testID(3), Patterns: []string{"/srv/shop/src/**", "port:3000"}, Fold: true, Shared: true, For: "rounding",
			Length: 1_800_000, Waits: true, Until: goldenAt + 9},
		"ResourceMade.v1": &ResourceMade{
			Kind: capabilities.KindSecret, Facet: goldenLimits(), Folder: "/srv/shop", File: &File{Digest: goldenDigest, Name: "pläne.pdf", Size: 12, Type: "application/pdf"}, Header: "Authorization: Bearer {}",
			Authority: []byte("-----BEGIN"), Command: []string{"notes-server", "-v"}, Address: "https://tools.example/mcp", Tools: []ResourceTool{{Name: "search", Digest: goldenDigest}},
		},
		"ResourceRenewed.v1":   &ResourceRenewed{Tools: []ResourceTool{{Name: "search", Digest: goldenDigest}}},
		"UseBegun.v1":          &UseBegun{Use: testID(1), By: testID(2), Grant: testID(3), Words: "read docs/a.md", Digest: []byte{1, 2, 3}, Key: "key", Ask: testID(4), Date: goldenAt},
		"UseAllowed.v1":        &UseAllowed{Use: testID(1), Form: testID(5)},
		"UseEnded.v1":          &UseEnded{Use: testID(1), How: UseFailed, Code: "NO_SUCH_FILE", Text: "there is none", Result: goldenRef(7), Date: goldenAt},
		"LeaseGranted.v1":      &LeaseGranted{Lease: 7, Until: goldenAt + 9},
		"LeaseRenewed.v1":      &LeaseRenewed{Lease: 7, Until: goldenAt + 9},
		"LeaseEnded.v1":        &LeaseEnded{Lease: 7, Why: LeaseBroken, By: testID(2)},
		"TeamMade.v1":          &TeamMade{Team: testID(2), Name: "shop"},
		"TeamMemberSet.v1":     &TeamMemberSet{Team: testID(2), Agent: testID(3), In: true, Grants: []TeamGrant{{Grant: testID(4), To: testID(3), Target: testID(2)}}},
		"TeamEnded.v1":         &TeamEnded{Team: testID(2)},
		"MessageSnoozed.v1":    &MessageSnoozed{Number: 1 << 40, Until: goldenAt},
		"MessagesRead.v1":      &MessagesRead{Numbers: []uint64{0, 300, 1 << 40}, Unread: true},
		"MessagesOffered.v1":   &MessagesOffered{Reader: testID(5), Token: "995ecc3a", Numbers: []uint64{0, 300, 1 << 40}, Moment: "PostToolBatch", Each: true},
		"MessagesShown.v1":     &MessagesShown{Reader: testID(5), Token: "995ecc3a", Numbers: []uint64{0, 300}, Proof: "an assistant entry follows"},
		"MessagesHandled.v1":   &MessagesHandled{Reader: testID(5), Numbers: []uint64{0, 300}, How: WasReplied},
		"MessagesOverdue.v1":   &MessagesOverdue{Numbers: []uint64{0, 300}},
		"OffersReturned.v1":    &OffersReturned{Reader: testID(5), Tokens: []string{"995ecc3a"}},
		"ReceiptReported.v1":   &ReceiptReported{Message: testID(9), By: testID(5), Reader: testID(8), State: Handled, How: "replied", Date: goldenAt},
		"DraftSaved.v1":        &DraftSaved{Form: testID(1), Revision: 3, Values: goldenValue(), Date: goldenAt},
		"MessageDrafted.v1":    &MessageDrafted{To: testID(5), ReplyTo: testID(9), Text: "half a\nmessage", Date: goldenAt},
		"MessageDelivered.v1":  &MessageDelivered{Items: []uint64{4, 400, 1 << 40}, Refused: "AGENT_ARCHIVED: the agent is archived"},
		"NameBound.v1":         &NameBound{Name: "config", Value: goldenValue()},
		"NameUnbound.v1":       &NameUnbound{Name: "config"},
		"CapabilityGranted.v1": &CapabilityGranted{Grant: goldenGrant(20)},
		"CapabilityRevoked.v1": &CapabilityRevoked{Grant: testID(20), By: testID(24), Date: goldenAt},
		"AgentCreated.v1": &AgentCreated{
			Agent: testID(4), Kind: Guest, Host: testID(5), By: testID(5), Name: "fae", Title: "Fae", Labels: map[string]string{"a": "1", "b": "", "c": "3"},
			Of: testID(6),
		},
		"AgentUpdated.v1":  &AgentUpdated{Title: &title, Labels: map[string]string{"a": "2"}, Status: "error", Error: "out of luck"},
		"AgentArchived.v1": &AgentArchived{By: testID(5)},
		"ProgramSet.v1": &ProgramSet{
			Runtime: "exec", Command: []string{"python3", "agent.py"}, Folder: "/srv/agent", Environment: []string{"MODE=fast"}, Keep: true, Seconds: 600, Access: []string{"terminal"},
			Inherit: []string{"MODEL_KEY"}, User: "nobody", Wrap: []string{"bwrap", "--ro-bind", "/", "/"},
		},
		"PolicySet.v1":  &PolicySet{Policy: "on-miss"},
		"RunsHeld.v1":   &RunsHeld{By: testID(4), Held: true},
		"RunStarted.v1": &RunStarted{Run: testID(10), Prompt: testID(9)},
		"RunEnded.v1":   &RunEnded{Run: testID(10), Error: "exit 1", Output: "bye\n", Again: true, By: testID(4)},
		"RuleAdded.v1": &RuleAdded{
			Rule: testID(11), Agent: testID(4), Tool: "shell", Allow: true, Until: goldenAt + 1, Form: testID(1), Covers: *goldenCoverage(),
		},
		"RuleRemoved.v1": &RuleRemoved{Rule: testID(11)},
		"RulePaused.v1":  &RulePaused{Rule: testID(11), Paused: true, Form: testID(1)},
		"MandateGiven.v1": &MandateGiven{
			Mandate: testID(1), Form: testID(2), By: testID(3), Session: testID(4), Until: goldenAt + 1, Calls: 20,
			Rules: []MandateRule{{Tool: "pay", Covers: *goldenCoverage()}}, Sums: []MandateSum{{Tool: "pay", Member: "amount", Most: 100_000_000}},
		},
		"MandateCharged.v1": &MandateCharged{Mandate: testID(1), Key: "key", Tool: "pay", Input: `{"amount":12.5}`, Folder: "/srv/shop", Amounts: []int64{12_500_000}},
		"MandateEnded.v1":   &MandateEnded{Mandate: testID(1), By: testID(3)},
		"CallerNamed.v1":    &CallerNamed{Form: testID(1), Session: testID(4)},
		"ReviewerSet.v1": &ReviewerSet{
			Reviewer: testID(6), Sample: 10, Cautious: true, Wait: 60_000, Rules: []MandateRule{{Tool: "shell", Covers: *goldenCoverage()}},
		},
		"ReviewAsked.v1":     &ReviewAsked{Form: testID(1), Reviewer: testID(6), MayAllow: true, Sample: 10, Until: goldenAt + 1},
		"FormClaimed.v1":     &FormClaimed{Form: testID(1), By: testID(5), Until: goldenAt + 1_800_000, Was: testID(6), Date: goldenAt},
		"ClaimQueued.v1":     &ClaimQueued{Form: testID(1), Until: goldenAt + 1_800_000, TakeOver: true, Date: goldenAt},
		"MailQueued.v1":      &MailQueued{Message: testID(1), Request: testID(2), Promise: testID(3), Path: "helper", Date: goldenAt},
		"QueuedSent.v1":      &QueuedSent{Message: testID(1), To: testID(4), Via: testID(5), Facet: goldenGrant(1).Facet, Text: []Span{{Edge: "me", Value: capabilities.Reference(goldenGrant(2).Ref())}}, Date: goldenAt},
		"QueuedEnded.v1":     &QueuedEnded{Message: testID(1), Why: "not sent: form 3 was declined", Date: goldenAt},
		"UseQueued.v1":       &UseQueued{Use: testID(1), Request: testID(2), Promise: testID(3), Path: "notes", Verb: "read", Input: capabilities.Record(map[string]capabilities.Value{"path": capabilities.String("a.md")}), Key: "key", Date: goldenAt},
		"QueuedUseEnded.v1":  &QueuedUseEnded{Use: testID(1), How: UseDenied, Code: "NOT_PERMITTED", Text: "it was revoked", Date: goldenAt},
		"PasskeyAdded.v1":    &PasskeyAdded{Passkey: testID(1), Name: "phone", Credential: []byte{1, 2}, Key: []byte{3, 4}, Origin: "http://localhost:7420", Count: 7, Date: goldenAt},
		"PasskeyRemoved.v1":  &PasskeyRemoved{Passkey: testID(1)},
		"PasskeyRequired.v1": &PasskeyRequired{Agent: testID(2), Need: PasskeyHigh},
		"PasskeyUsed.v1":     &PasskeyUsed{Passkey: testID(1), Form: testID(3), Count: 8, Date: goldenAt},
		"DecisionSigned.v1": &DecisionSigned{
			Form: testID(3), By: testID(4), Passkey: testID(1), Key: []byte{3, 4}, Origin: "http://localhost:7420",
			Statement: "parley passkey 1 {}", ClientData: []byte("{}"), Authenticator: []byte{5}, Signature: []byte{6},
		},
		"ReviewEnded.v1": &ReviewEnded{Form: testID(1), Reviewer: testID(6), How: ReviewSampled, Note: "it tests", Date: goldenAt},
	}
}

func goldenCoverage() *Coverage {
	return &Coverage{
		Kind: CoversCommands, Folder: "/srv/agent", Input: "{}", File: "a.go", Glob: "**/*.go",
		Commands: []CommandPattern{{Words: []string{"git", "log"}, Options: []string{"--oneline", "-n N"}, Operands: "revisions"}},
	}
}

func goldenFrame(t testing.TB) *Commit {
	t.Helper()
	all := samples()
	body := func(names ...string) Section {
		s := Section{Mailbox: testID(4), First: 7, Count: uint32(len(names)), Summary: Summary{Open: 1, Waiting: 2, Outbox: 300, Deadline: goldenAt + 60_000}}
		for _, n := range names {
			var err error
			if s.Body, err = Append(s.Body, Recorded{At: goldenAt, Event: all[n]}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	c := &Commit{Number: 70_000, Prev: Hash{0: 1, 31: 255}, At: goldenAt, Node: testID(0).Node, Blind: Blind{3, 15: 4}}
	c.Sections = []Section{body("FormRequested.v1", "NameBound.v1"), body("MessageDismissed.v1")}
	c.Sections[1].Mailbox, c.Sections[1].First, c.Sections[1].Note = testID(5), 1, "a note"
	return c
}

// goldenJournal returns the frames of a small log with an event of each kind: a commit with three mailboxes, and one
// commit each for two more.
func goldenJournal(t testing.TB) (frames [][]byte) {
	t.Helper()
	all, last := samples(), Hash{}
	names := slices.Sorted(maps.Keys(all))
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".v1") }) // the file is older than the others
	var c Commit
	for part := range slices.Chunk(names, len(names)/5+1) {
		s := Section{Mailbox: testID(byte(100 + len(c.Sections) + len(frames)*10)), First: 1, Count: uint32(len(part)), Summary: Summary{Open: 1, Deadline: goldenAt + 60_000}, Note: "a note"}
		for _, name := range part {
			var err error
			if s.Body, err = Append(s.Body, Recorded{At: goldenAt, Event: all[name]}); err != nil {
				t.Fatal(err)
			}
		}
		c.Sections = append(c.Sections, s)
		if len(frames) == 0 && len(c.Sections) < 3 {
			continue
		}
		c.Number, c.Prev, c.At, c.Node, c.Blind = uint64(len(frames)+1), last, goldenAt, testID(0).Node, Blind{byte(len(frames))}
		frame, hash, err := c.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		frames, last, c.Sections = append(frames, frame), hash, nil
	}
	return frames
}

// TestGoldenJournalIsRead reads a log with an event of each kind. From the first release on its file is kept for ever and
// never written again: each release opens the logs of all before it. A later format gets a file of its own.
func TestGoldenJournalIsRead(t *testing.T) {
	const name = "journal.v1.txt"
	if *update {
		var text strings.Builder
		for _, frame := range goldenJournal(t) {
			text.WriteString(hexText(frame) + "\n")
		}
		addGolden(t, name, text.String())
	}
	text, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	var last Mark
	most, kinds := 0, map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		frame, err := hex.DecodeString(strings.ReplaceAll(part, "\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		c, hash, err := DecodeCommit(frame)
		if err != nil || c.Number != last.Number+1 || c.Prev != last.Hash {
			t.Fatalf("commit %d: %v", last.Number+1, err)
		}
		last, most = Mark{Number: c.Number, Hash: hash}, max(most, len(c.Sections))
		for _, s := range c.Sections {
			evs, err := s.Events()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range evs {
				kinds[Name(r.Event)] = true
			}
		}
	}
	if last.String() != "3:"+goldenEnd || most != 3 || len(kinds) < 46 {
		t.Errorf("the log ends with %s, and has %d kinds of events, and at most %d mailboxes in a commit", last, len(kinds), most)
	}
}

// goldenEnd is the hash of the last commit of the golden log.
const goldenEnd = "4fa7d47d14c251741b9c947c2fe37a711e099db15714961e3d25541f81e35a5f"

// goldenJSON returns the content of a golden .json file.
func goldenJSON(t testing.TB, x any) string {
	t.Helper()
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func recordedJSON(t testing.TB, r Recorded) string {
	t.Helper()
	return goldenJSON(t, struct {
		Kind  string            `json:"kind"`
		At    capabilities.Time `json:"at"`
		Event Event             `json:"event"`
	}{Name(r.Event), r.At, r.Event})
}

func commitJSON(t testing.TB, c *Commit, h Hash) string {
	t.Helper()
	type section struct {
		Mailbox capabilities.ID   `json:"mailbox"`
		First   uint64            `json:"first"`
		Summary Summary           `json:"summary"`
		Events  []json.RawMessage `json:"events"`
	}
	var sections []section
	for _, s := range c.Sections {
		evs, err := s.Events()
		if err != nil {
			t.Fatal(err)
		}
		out := section{Mailbox: s.Mailbox, First: s.First, Summary: s.Summary}
		for _, r := range evs {
			out.Events = append(out.Events, json.RawMessage(recordedJSON(t, r)))
		}
		sections = append(sections, out)
	}
	return goldenJSON(t, map[string]any{
		"number": c.Number, "prev": c.Prev.String(), "hash": h.String(), "at": c.At, "node": c.Node, "sections": sections,
	})
}

func goldenPath(name string) string { return filepath.Join("testdata", "golden", name) }

// addGolden writes a golden file if there is none. It never changes one.
func addGolden(t testing.TB, name, content string) {
	t.Helper()
	old, err := os.ReadFile(goldenPath(name))
	switch {
	case err == nil && string(old) == content:
		return
	case err == nil:
		t.Errorf("%s would change: raise the event's version, or add a sample of another name", name)
		return
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	if err := os.MkdirAll(goldenPath(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenPath(name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readGolden(t testing.TB, name string) (encoded []byte, beside string) {
	t.Helper()
	text, err := os.ReadFile(goldenPath(name + ".hex"))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err = hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(goldenPath(name + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	return encoded, string(doc)
}

// hexText returns hexadecimal text in lines.
func hexText(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := min(len(b), 60)
		fmt.Fprintf(&out, "%x\n", b[:n])
		b = b[n:]
	}
	return out.String()
}

func updateGolden(t *testing.T) {
	t.Helper()
	for name, e := range samples() {
		r := Recorded{At: goldenAt, Event: e}
		b, err := Append(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		addGolden(t, name+".hex", hexText(b))
		addGolden(t, name+".json", recordedJSON(t, r))
	}
	c := goldenFrame(t)
	frame, hash, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	addGolden(t, "frame.v1.hex", hexText(frame))
	addGolden(t, "frame.v1.json", commitJSON(t, c, hash))
}

func TestGoldenFilesDecode(t *testing.T) {
	if *update {
		updateGolden(t)
	}
	files, err := filepath.Glob(goldenPath("*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".hex")
		t.Run(name, func(t *testing.T) {
			encoded, want := readGolden(t, name)
			if strings.HasPrefix(name, "frame.") {
				c, hash, err := DecodeCommit(encoded)
				if err != nil {
					t.Fatal(err)
				}
				if got := commitJSON(t, c, hash); got != want {
					t.Fatalf("got %s", got)
				}
				return
			}
			evs, err := Decode(encoded, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := recordedJSON(t, evs[0]); got != want {
				t.Fatalf("got %s", got)
			}
			if e, known := samples()[name]; known && !reflect.DeepEqual(e, evs[0].Event) {
				t.Fatalf("got %+v, want %+v", evs[0].Event, e)
			}
		})
	}
}

func TestEveryEventHasASample(t *testing.T) {
	for kind, s := range schemas {
		name := fmt.Sprintf("%s.v%d", s.name, s.version)
		encoded, _ := readGolden(t, name)
		begin := pack.AppendUint(pack.AppendUint(nil, uint64(kind)), uint64(s.version))
		if !bytes.HasPrefix(encoded, begin) {
			t.Errorf("%s has another kind or version than its name", name)
		}
	}
}

// TestSamplesShowEveryField checks that every field is set in a sample, so that the loss of a field is noticed.
func TestSamplesShowEveryField(t *testing.T) {
	shown := map[string]bool{}
	for _, e := range samples() {
		v := reflect.ValueOf(e).Elem()
		for i := range v.NumField() {
			field := v.Type().Name() + "." + v.Type().Field(i).Name
			shown[field] = shown[field] || !v.Field(i).IsZero() || v.Type().Field(i).Name == "_msgpack"
		}
	}
	for _, x := range []any{goldenGrant(1), goldenLimits(), goldenForm().Fields[0], goldenForm().Fields[0].Options[0]} {
		v := reflect.ValueOf(x)
		for i := range v.NumField() {
			shown[v.Type().Name()+"."+v.Type().Field(i).Name] = !v.Field(i).IsZero() || v.Type().Field(i).Name == "_msgpack"
		}
	}
	for field, ok := range shown {
		if !ok {
			t.Errorf("no sample shows %s", field)
		}
	}
}
