package demo

import (
	"context"
	"errors"
	"os"

	"parley"
)

// RunTeam runs the demonstration of three agents on one repository, who are played by itself.
func RunTeam(ctx context.Context, o Options) error {
	folder, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return err
	}
	d := &demo{Options: o, folder: folder}
	err = d.team(ctx)
	return errors.Join(err, d.kill(), os.RemoveAll(folder))
}

// do runs commands one after another, each after the words that explain it.
func (d *demo) do(ctx context.Context, steps ...[]string) error {
	for _, step := range steps {
		if step[0] != "" {
			d.tell(step[0])
		}
		if _, err := d.command(ctx, step[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) team(ctx context.Context) error {
	const files, file = "/shop/src/checkout/**", `{"file_path":"/shop/src/checkout/round.go","old_string":"a","new_string":"b"}`
	d.tell("A node starts. Three agents work on one repository, /shop: planner, builder and reviewer.")
	if err := d.serve(ctx); err != nil {
		return err
	}
	err := d.do(ctx,
		[]string{"", "mkguest", "planner"}, []string{"", "mkguest", "builder"}, []string{"", "mkguest", "reviewer"},
		[]string{"As a team they may write to each other, and to all of them at once.", "team", "shop", "add", "planner", "builder", "reviewer"},
		[]string{"The planner leases what it works on.", "lease", files, "--for", "rounding", "--ttl", "10m", "--as", "planner"},
		[]string{"It tells the others.", "send", "shop", "I take the rounding in src/checkout", "--as", "planner"},
	)
	if err != nil {
		return err
	}
	d.tell("The builder is about to edit one of these files. Its hook asks Parley, and the call is refused: nothing is overwritten.")
	if _, err := d.command(ctx, "approve", "Edit", file, "--as", "builder"); parley.CodeOf(err) != parley.Leased {
		return errors.Join(errors.New("an edit of a leased file was not refused"), err)
	}
	err = d.do(ctx, []string{"So it asks the planner.", "send", "planner", "Are you done with round.go?", "--subject", "rounding", "--as", "builder"})
	if err != nil {
		return err
	}
	d.tell("The planner reads that, releases the files and replies.")
	if err := d.do(ctx,
		[]string{"", "inbox", "--as", "planner"},
		[]string{"", "lease", "release", "1", "--as", "planner"},
		[]string{"", "reply", "1", "Done, it is yours.", "--as", "planner"},
		[]string{"The builder's message is handled: its sender knows.", "await", "1", "--until", "handled", "--as", "builder"},
		[]string{"The builder has the files now, under a greater number.", "lease", files, "--for", "tests of the rounding", "--wait", "--as", "builder"},
		[]string{"Everybody sees who is there, and what each has.", "team", "shop", "show", "--as", "reviewer"},
		[]string{"", "lease", "ls"},
	); err != nil {
		return err
	}
	d.tell("That was it. With Claude Code and Codex the same happens by their hooks: parley setup claude-code --team shop.")
	return nil
}
