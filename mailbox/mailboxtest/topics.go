package mailboxtest

import (
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// topicCommand runs a command about topics and what a reader sets. It reports whether the command is one.
func topicCommand(v *Harness, cmd, as string, arg func(string) string) (string, bool) {
	id := func(key string) capabilities.ID {
		if s := v.States[arg(key)]; s != nil {
			return s.ID
		}
		return capabilities.ID{}
	}
	every, _ := time.ParseDuration(arg("every"))
	var c mailbox.Command
	switch cmd {
	case "topic":
		c = mailbox.MakeTopic{Name: arg("name"), Team: id("team")}
	case "admit":
		c = mailbox.AdmitToTopic{Topic: id("topic"), Agent: id("agent"), Of: id("of"), Team: id("team")}
	case "expel":
		c = mailbox.ExpelFromTopic{Topic: id("topic"), Agent: id("agent")}
	case "hold-topic": // as the node has both sides hold what they were granted
		return holdTopic(v, id("agent"), id("topic")), true
	case "subscribe":
		c = mailbox.Subscribe{Agent: id("agent"), Every: every, Stream: arg("stream") == "yes", End: arg("end") == "yes"}
	case "digests":
		c = mailbox.PostDigests{Gone: func(one capabilities.ID) bool { return one == id("gone") }}
	case "subscribers":
		return showTopic(v, as), true
	case "attention":
		var set mailbox.SetAttention
		for key, at := range map[string]**string{"quiet": &set.Quiet, "zone": &set.Zone, "interruptions": &set.Interruptions} {
			if said := arg(key); said != "" {
				*at = &said
			}
		}
		if said := arg("all"); said != "" {
			set.AllSessions = new(said == "yes")
		}
		out := v.outcome(v.Decide(as, set))
		return fmt.Sprintf("%s%+v\n", out, v.States[as].Attention), true
	default:
		return "", false
	}
	return v.outcome(v.Decide(as, c)), true
}

// holdTopic has an agent and a topic hold each other by the grants of the host's.
func holdTopic(v *Harness, agent, topic capabilities.ID) string {
	host := v.States["host"]
	var out strings.Builder
	for _, pair := range [][2]capabilities.ID{{agent, topic}, {topic, agent}} {
		grant := mailbox.GrantTo(host, pair[0], pair[1])
		value, err := mailbox.TeamReference(events.TeamGrant{Grant: grant}).Reference(host)
		if err != nil {
			return err.Error() + "\n"
		}
		out.WriteString(v.outcome(v.Decide(v.NameOf[pair[0]], mailbox.HoldMember{Name: v.NameOf[pair[1]], Value: value})))
	}
	return out.String()
}

// showTopic returns the posts and the subscribers of a topic.
func showTopic(v *Harness, as string) string {
	t := v.States[as].Topic
	if t == nil {
		return "no topic\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d posts, %d kept\n", t.Name, t.Posted, len(t.Posts))
	for _, s := range t.Subscribers {
		fmt.Fprintf(&b, "%s has had %d", v.NameOf[s.Agent], s.Seen)
		if s.Due != 0 {
			fmt.Fprintf(&b, ", and more in %s", time.Duration(s.Due-v.Now)*time.Millisecond)
		}
		b.WriteString("\n")
	}
	return parley.Cut(b.String(), 4000)
}
