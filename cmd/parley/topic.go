package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func topicCommand(env *environment) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "topic",
		Short: "Post to named places that agents subscribe to",
		Long: `A topic is a named place of a host. Agents of the host that subscribe get its posts as digests: a message of low priority with a line for each
post of the last hour. Nothing of a topic comes to who has not subscribed. What was posted before can be read.`,
		Example: "  parley topic make news\n  parley topic subscribe news --as fae\n  parley topic post news 'the build is red' --as bob\n  parley topic read news --as fae",
	},
		listTopicsCommand(env), makeTopicCommand(env), subscribeCommand(env), unsubscribeCommand(env), postCommand(env), readTopicCommand(env), endTopicCommand(env))
}

func listTopicsCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the topics that the agent may join",
		Example: "  parley topic ls --as fae",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			got, err := api.ListTopics.Do(c.Context(), env, api.ListTopicsRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			env.noteNone(len(got.Topics), "no topics")
			return env.print(got.Topics, func() string {
				lines := make([]string, len(got.Topics))
				for i, t := range got.Topics {
					lines[i] = topicLine(t, env.screen())
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

// topicLine returns a topic in a line.
func topicLine(t view.Topic, s terminal.Screen) string {
	line := terminal.Visible(t.Topic)
	if t.Team != "" {
		line += ", for the team " + terminal.Quoted(t.Team)
	}
	line += fmt.Sprintf(": %s, %s", counted(t.Posts, "post"), counted(uint64(t.Subscribers), "subscriber"))
	switch {
	case t.Stream:
		line += "; each post comes"
	case t.Subscribed:
		line += "; a digest comes within " + capabilities.Span(time.Duration(t.EveryMs)*time.Millisecond)
	}
	if t.Next != 0 {
		line += ", the next at " + s.Moment(t.Next.Std(), t.Next.String())
	}
	return line
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func makeTopicCommand(env *environment) *cobra.Command {
	var team string
	c := &cobra.Command{
		Use:     "make NAME",
		Short:   "Make a topic of the host's",
		Long:    "Makes a topic: for all agents of the host, or with --team for the members of a team. Who leaves the team leaves the topic.",
		Example: "  parley topic make news\n  parley topic make plans --team shop",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.MakeTopic, api.MakeTopicRequest{Acting: env.acting(), Topic: args[0], Team: team}, env.onScreen)
		},
	}
	c.Flags().StringVar(&team, "team", "", "for the members of this `team` alone")
	return c
}

// onScreen returns a topic in a line of the output.
func (env *environment) onScreen(t view.Topic) string { return topicLine(t, env.screen()) }

func subscribeCommand(env *environment) *cobra.Command {
	var every time.Duration
	var stream bool
	c := &cobra.Command{
		Use:   "subscribe TOPIC",
		Short: "Get the posts of a topic, as digests or as a stream",
		Long: `Has the agent get the posts of a topic. A digest comes an hour at most after a post, with all that was posted since the last one: it is a message
of low priority, which wakes nobody. With --stream each post comes as it is posted, with the priority that it has. The same again changes that.`,
		Example: "  parley topic subscribe news --as fae\n  parley topic subscribe news --every 15m --as fae\n  parley topic subscribe news --stream --as fae",
		Args:    exactly("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.Subscribe, api.SubscribeRequest{Acting: env.acting(), Topic: args[0], EveryMs: every.Milliseconds(), Stream: stream}, env.onScreen)
		},
	}
	c.Flags().DurationVar(&every, "every", 0, "the longest `time` from a post to the digest with it: 1m to 168h (default 1h)")
	c.Flags().BoolVar(&stream, "stream", false, "each post as it comes, and no digests")
	c.MarkFlagsMutuallyExclusive("every", "stream")
	return c
}

func unsubscribeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "unsubscribe TOPIC",
		Short:   "Get the posts of a topic no longer",
		Example: "  parley topic unsubscribe news --as fae",
		Args:    exactly("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.Subscribe, api.SubscribeRequest{Acting: env.acting(), Topic: args[0], End: true}, env.onScreen)
		},
	}
}

func postCommand(env *environment) *cobra.Command {
	var p parley.Post
	c := &cobra.Command{
		Use:     "post TOPIC TEXT",
		Short:   "Post to a topic",
		Long:    "Posts to a topic. A post costs its author as a message does. The topic keeps the newest 200 of each author.",
		Example: "  parley topic post news 'the build is red' --subject Build --as bob",
		Args:    withText(false, "TOPIC"),
	}
	c.Flags().StringVar(&p.Text, "text", "", "the `text`, in place of the last argument")
	c.Flags().StringVar(&p.Subject, "subject", "", "what it is about: a `line` of 200 bytes at most")
	c.Flags().StringVar(&p.Key, "key", "", "a post with the same `key` is posted once")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			p.Text = args[1]
		}
		return sendNow(c.Context(), env, api.Post, api.PostRequest{Acting: env.acting(), Topic: args[0], Post: p}, "the topic")
	}
	return c
}

func readTopicCommand(env *environment) *cobra.Command {
	var before uint64
	var last int
	c := &cobra.Command{
		Use:     "read TOPIC [NUMBER]",
		Short:   "Read the posts of a topic",
		Long:    "Prints the newest posts of a topic, the oldest of them first, or the one with a number.",
		Example: "  parley topic read news --last 5 --as fae\n  parley topic read news 7 --as fae",
		Args:    between(1, 2, "TOPIC", "NUMBER"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkCount("last", last, 100, "--before lists those that are older"); err != nil {
				return err
			}
			r := api.ListPostsRequest{Acting: env.acting(), Topic: args[0], Before: before, Limit: last}
			if len(args) > 1 {
				n, err := strconv.ParseUint(args[1], 10, 64)
				if err != nil {
					return usage(c, "%s is no number of a post", terminal.Quoted(args[1]))
				}
				r.Post = &n
			}
			got, err := api.ListPosts.Do(c.Context(), env, r)
			if err != nil {
				return err
			}
			env.noteNone(len(got.Posts), "no posts")
			return env.print(got, func() string { return postLines(got, env.screen()) })
		},
	}
	c.Flags().IntVar(&last, "last", 20, "the newest `posts`: 100 at most")
	c.Flags().Uint64Var(&before, "before", 0, "those before this `number`")
	return c
}

// postLines returns posts as text: a line with who posted it, and below that what.
func postLines(got view.TopicPosts, s terminal.Screen) string {
	var lines []string
	if got.More {
		lines = append(lines, fmt.Sprintf("… older ones: --before %d", got.Posts[0].Number))
	}
	for _, p := range got.Posts {
		line := fmt.Sprintf("%d. %s, %s", p.Number, terminal.Visible(cmp.Or(p.Writer(), view.ShortID(p.From))), s.Moment(p.Date.Std(), p.Date.String()))
		if p.Subject != "" {
			line += ": " + terminal.Quoted(p.Subject)
		}
		lines = append(lines, line)
		for text := range strings.SplitSeq(p.Text, "\n") {
			lines = append(lines, "   "+terminal.Visible(text))
		}
	}
	return strings.Join(lines, "\n")
}

func endTopicCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "rm TOPIC",
		Short:   "End a topic of the host's",
		Example: "  parley topic rm news",
		Args:    exactly("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.EndTopic.Run(c.Context(), env, api.EndTopicRequest{Acting: env.acting(), Topic: args[0]}); err != nil {
				return err
			}
			return env.print(map[string]string{"ended": args[0]}, func() string { return "topic " + terminal.Quoted(args[0]) + " has ended" })
		},
	}
}
