package backend

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/gateway/api"
)

// The names in INTERFACE's sections on mail and agents, and the others that the command line needs.
const promised = `make_agent form request await respond_form decline_form cancel_form amend_form forward_form withdraw_vote claim_form grant_answer answer_with set_away set_member list_stand_ins set_attention get_attention resolve reject send reply schedule list_schedules end_schedule
lease await_lease renew_lease release_lease list_leases set_team end_team list_teams make_topic end_topic list_topics subscribe post list_posts
proof try_rules propose_rules
acknowledge adopt dismiss snooze restore_message move_messages mark_read count_messages save_draft fetch_draft store_file fetch_file list_messages search follow_messages read_mail get_message list_names lookup locate store_name rename_name remove_name copy_name
make_resource end_resource invoke list_grants revoke read_log invite uninvite list_invitations accept list_nodes status verify stop complete
create_token list_tokens revoke_token open_link approve decide_many list_rules make_rule remove_rule limit_rule pause_rule list_mandates get_mandate end_mandate
list_passkeys begin_passkey add_passkey remove_passkey require_passkey ask_passkey
fetch_agents fetch_agent send_agent_message wait_for_finish stop_agent hold_agent archive_agent set_status describe_agent set_policy run_agent read_output
get_quota set_quota limit_peer drop_peer start_programs
archive_journal list_archive move_segments fetch_segments`

func TestEveryOperationHasOneHandler(t *testing.T) {
	var names, handled []string
	for _, h := range handlers() {
		handled = append(handled, h.operation)
	}
	for _, o := range api.Operations() {
		names = append(names, o.Name)
		if !slices.Contains([]api.Scope{api.ScopeRead, api.ScopeAsk, api.ScopeAnswer, api.ScopeAdmin}, o.Scope) {
			t.Errorf("%s has scope %q", o.Name, o.Scope)
		}
	}
	want := strings.Fields(promised)
	slices.Sort(names)
	slices.Sort(handled)
	if !slices.Equal(handled, names) {
		t.Errorf("there are handlers of\n%v\nwant one of each of\n%v", handled, names)
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("operations are\n%v\nwant\n%v", names, want)
	}
}

func TestEveryRequestNamesItsActor(t *testing.T) {
	for _, o := range api.Operations() {
		if f, ok := o.Request.FieldByName("As"); !ok || f.Tag.Get("json") != "as,omitempty" {
			t.Errorf("%s has no \"as\"", o.Name)
		}
	}
}

// Two embedded structs with the same JSON name would make encoding/json drop both.
func TestRequestFieldsHideNoOther(t *testing.T) {
	for _, o := range api.Operations() {
		seen := map[string]bool{}
		for _, f := range reflect.VisibleFields(o.Request) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" || len(f.Index) > 2 {
				continue
			}
			if seen[name] {
				t.Errorf("%s has %q twice", o.Name, name)
			}
			seen[name] = true
		}
	}
}
