package edgetest

import (
	"strings"

	"parley"
	"parley/gateway/api"
)

// alone has the operations that need another node, an S3 store, a real archive or a long past to succeed. Their scenes are refusals.
var alone = map[string]bool{"invite": true, "uninvite": true, "limit_peer": true, "drop_peer": true, "accept": true, "adopt": true, "move_segments": true, "fetch_segments": true}

const (
	port = `[{"name":"port","type":"number","label":"Port"}]`
	form = `{"recipient":"bob","title":"Web","description":"Which port?","fields":` + port + `}`
)

// scenes returns all scenes, in their order. Fae and bob are agents of the edge alone; fae made bob, and is bob's host.
func scenes() []scene {
	all := names()
	all = append(all, forms()...)
	all = append(all, approvals()...)
	all = append(all, mail()...)
	all = append(all, agents()...)
	all = append(all, ofNode()...)
	return append(all, refusals()...)
}

func names() []scene {
	return []scene{
		{operation: "make_agent", request: `{"name":"eve","title":"Eve","labels":{"team":"a"}}`, keep: map[string]string{"eve": "agent"}},
		{operation: "list_names", request: `{}`},
		{name: "a page of names", operation: "list_names", request: `{"limit":2}`},
		{operation: "store_name", request: `{"name":"limits","value":{"cpu":2,"tags":["a",1.5,null,true]}}`},
		{operation: "lookup", request: `{"name":"limits"}`},
		{operation: "locate", request: `{"name":"eve"}`},
		{operation: "rename_name", request: `{"old":"limits","new":"bounds"}`},
		{operation: "copy_name", request: `{"old":"eve","new":"eve-read","facet":"read"}`},
		{operation: "make_resource", by: "host", request: `{"kind":"secret","name":"key of $fae","secret":"correct horse battery","facet":{"only":"api.example","methods":"GET","below":"v1"}}`, shape: true},
		{name: "a resource of an agent that is no host", operation: "make_resource", request: `{"kind":"folder","name":"home","folder":"/"}`, code: parley.NotPermitted},
		{operation: "invoke", by: "host", request: `{"name":"key of $fae"}`, shape: true},
		{name: "a use that is not permitted", operation: "invoke", by: "host", request: `{"name":"key of $fae","verb":"request","input":{"url":"https://other.example/v1/items"},"key":"k"}`, code: parley.NotPermitted},
		{name: "a use of an agent", operation: "invoke", request: `{"name":"eve","verb":"read"}`, code: parley.UnknownName},
		{name: "a narrowed name", operation: "copy_name", by: "host", request: `{"old":"key of $fae","new":"less of $fae","narrow":{"mode":"read","uses":3,"rate":{"uses":1,"seconds":60},"below":"v1/items","ask":true}}`},
		{operation: "end_resource", by: "host", request: `{"name":"key of $fae"}`},
		{name: "an ended resource", operation: "invoke", by: "host", request: `{"name":"less of $fae"}`, code: parley.NotPermitted},
		{operation: "remove_name", request: `{"name":"bounds"}`},
		{operation: "list_grants", request: `{}`},
		{operation: "invite", request: `{"name":"guest"}`, code: parley.NodeUnreachable},
		{operation: "list_invitations", request: `{}`},
		{operation: "uninvite", request: `{"name":"guest"}`, code: parley.UnknownName},
		{operation: "accept", by: "host", request: `{"name":"far","locator":"parley://nowhere"}`, code: parley.InvalidArgument},
		{operation: "create_token", request: `{"scopes":["read"],"note":"a test"}`, keep: map[string]string{"token": "id"}, shape: true},
		{operation: "list_tokens", request: `{"limit":1}`, shape: true},
		{operation: "revoke_token", request: `{"token":"$token"}`},
		{operation: "open_link", request: `{}`},
	}
}

func forms() []scene {
	return []scene{
		{operation: "form", request: form, keep: map[string]string{"form": "form"}},
		{name: "a form with a key", operation: "form", request: `{"recipient":"bob","description":"Again?","fields":` + port + `,"key":"k"}`, keep: map[string]string{"keyed": "form"}},
		{name: "the same key again", operation: "form", request: `{"recipient":"bob","description":"Again?","fields":` + port + `,"key":"k"}`},
		{name: "another form of that key", operation: "form", request: `{"recipient":"bob","description":"Other?","fields":` + port + `,"key":"k"}`, code: parley.InvalidArgument},
		{name: "a wait for nobody", operation: "await", request: `{"id":"$form","waitMs":1}`},
		{operation: "amend_form", request: `{"id":"$form","title":"Web server","note":"clearer"}`},
		{operation: "save_draft", by: "bob", request: `{"id":"$form","texts":[{"name":"port","text":"4"}]}`},
		{operation: "fetch_draft", by: "bob", request: `{"id":"$form"}`},
		{operation: "move_messages", by: "bob", request: `{"messages":[{"id":"$form"},{"number":99},{"id":"$form"}],"do":"snooze","until":"2100-01-01T00:00:00Z"}`},
		{name: "and back", operation: "move_messages", by: "bob", request: `{"messages":[{"id":"$form"}],"do":"snooze"}`},
		{name: "nothing to do with messages", operation: "move_messages", by: "bob", request: `{"messages":[{"id":"$form"}],"do":"burn"}`, code: parley.InvalidArgument},
		{name: "the draft of a reply", operation: "save_draft", by: "bob", request: `{"id":"$form","text":"half a rep"}`},
		{name: "and what is kept of it", operation: "fetch_draft", by: "bob", request: `{"id":"$form","reply":true}`},
		{name: "a draft for two places", operation: "save_draft", by: "bob", request: `{"id":"$form","to":"HOST","text":"half"}`, code: parley.InvalidArgument},
		{operation: "complete", by: "bob", request: `{"of":"open"}`},
		{name: "an answer to what the form was", operation: "respond_form", by: "bob", request: `{"id":"$form","revision":1,"values":{"port":443}}`, code: parley.Amended},
		{name: "a decline of what the form was", operation: "decline_form", by: "bob", request: `{"id":"$form","revision":1}`, code: parley.Amended},
		{name: "an answer with a field that there is not", operation: "respond_form", by: "bob", request: `{"id":"$form","revision":2,"values":{"port":443,"host":"a"}}`, code: parley.InvalidAnswer},
		{name: "an answer of another type", operation: "respond_form", by: "bob", request: `{"id":"$form","revision":2,"values":{"port":"many"}}`, code: parley.InvalidAnswer},
		{name: "an answer by its asker", operation: "respond_form", request: `{"id":"$form","revision":2,"values":{"port":443}}`, code: parley.NotPermitted},
		{operation: "respond_form", by: "bob", request: `{"id":"$form","revision":2,"values":{"port":443}}`},
		{name: "a second answer", operation: "respond_form", by: "bob", request: `{"id":"$form","revision":2,"values":{"port":80}}`, code: parley.AlreadyAnswered},
		{operation: "await", request: `{"id":"$form"}`},
		{operation: "cancel_form", request: `{"id":"$keyed","reason":"no need"}`},
		{name: "a second end", operation: "cancel_form", request: `{"id":"$keyed"}`, code: parley.AlreadyCancelled},
		{name: "a proof of an end", operation: "proof", by: "bob", request: `{"id":"$keyed","digestOnly":true}`, shape: true},
		{name: "an answer after the end", operation: "respond_form", by: "bob", request: `{"id":"$keyed","values":{"port":80}}`, code: parley.AlreadyCancelled},
		{name: "a form to decline", operation: "form", request: form, keep: map[string]string{"form": "form"}},
		{operation: "decline_form", by: "bob", request: `{"id":"$form","reason":"not mine"}`},
		{name: "a form to forward", operation: "form", request: form, keep: map[string]string{"form": "form"}},
		{name: "a proof of what is open", operation: "proof", by: "bob", request: `{"id":"$form"}`, code: parley.InvalidArgument},
		{operation: "forward_form", by: "bob", request: `{"id":"$form","recipient":"@host"}`},
		{name: "a form for two", operation: "form", request: `{"recipient":"bob","description":"Deploy?","fields":` + port + `,"need":2,"veto":false,"noSelf":false}`, keep: map[string]string{"form": "form"}},
		{name: "a form for more than may answer", operation: "form", request: `{"recipient":"bob","description":"Deploy?","fields":` + port + `,"need":40}`, code: parley.TooLarge},
		{name: "a vote that is not there", operation: "withdraw_vote", by: "bob", request: `{"id":"$form"}`, code: parley.InvalidArgument},
		{name: "a vote", operation: "respond_form", by: "bob", request: `{"id":"$form","values":{"port":443}}`},
		{name: "a form with a vote", operation: "get_message", request: `{"id":"$form"}`},
		{operation: "withdraw_vote", by: "bob", request: `{"id":"$form"}`},
		{name: "a vote after the end", operation: "cancel_form", request: `{"id":"$form"}`},
		{name: "a withdrawal after the end", operation: "withdraw_vote", by: "bob", request: `{"id":"$form"}`, code: parley.AlreadyCancelled},
		{name: "a form to answer by a right", operation: "form", request: form, keep: map[string]string{"form": "form"}},
		{operation: "grant_answer", by: "bob", request: `{"id":"$form","outcomes":["answer"],"uses":1,"name":"phone"}`, keep: map[string]string{"right": "secret"}, shape: true},
		{name: "a narrower right for another", operation: "grant_answer", request: `{"secret":"$right","uses":1}`, shape: true},
		{name: "a right of two forms", operation: "grant_answer", request: `{"secret":"$right","id":"$form"}`, code: parley.InvalidArgument},
		{name: "a guessed secret", operation: "grant_answer", request: `{"secret":"pla_guessed"}`, code: parley.Unauthenticated},
		{name: "an outcome that the right has not", operation: "answer_with", request: `{"secret":"$right","outcome":"decline"}`, code: parley.NotPermitted},
		{operation: "answer_with", request: `{"secret":"$right","outcome":"answer","values":{"port":443}}`},
		{name: "a late use", operation: "answer_with", request: `{"secret":"$right","outcome":"answer","values":{"port":80}}`, code: parley.AlreadyAnswered},
		{operation: "request", request: `{"recipient":"bob","text":"Your name?"}`, keep: map[string]string{"form": "form"}},
		{operation: "resolve", by: "bob", request: `{"id":"$form","name":"@self"}`},
		{name: "a request to reject", operation: "request", request: `{"recipient":"bob","text":"More?"}`, keep: map[string]string{"form": "form"}},
		{operation: "reject", by: "bob", request: `{"id":"$form","reason":"no"}`},
		{name: "a resolved form", operation: "resolve", by: "bob", request: `{"id":"$form","name":"@self"}`, code: parley.AlreadyDeclined},
	}
}

func approvals() []scene {
	const call = `{"tool":"Bash","input":{"command":"make"}}`
	return []scene{
		{operation: "approve", by: "bob", request: call, keep: map[string]string{"form": "form"}},
		{name: "the approval as a message", by: "host", shape: true, operation: "get_message", request: `{"id":"$form"}`, keep: map[string]string{"digest": "digest"}},
		{operation: "try_rules", by: "host", request: `{"id":"$form","deny":true}`},
		{operation: "decide_many", by: "host", request: `{"decisions":[{"form":"$form","digest":"$digest","decision":"always"}]}`},
		{operation: "proof", by: "host", request: `{"id":"$form"}`, shape: true},
		{name: "the same call", operation: "approve", by: "bob", request: call},
		{operation: "list_rules", by: "bob", request: `{}`, keep: map[string]string{"rule": "rules.0.rule"}},
		{name: "standing rules on the past", operation: "try_rules", by: "host", request: `{"agent":"$bob","rules":["$rule"]}`},
		{operation: "propose_rules", by: "host", request: `{"agent":"$bob"}`},
		{name: "a rule that is not proposed", operation: "make_rule", by: "host", request: `{"agent":"$bob","proposal":"always-call-0"}`, code: parley.InvalidArgument},
		{name: "a rule that there is not", operation: "try_rules", by: "bob", request: `{"rules":["$form"]}`, code: parley.NotPermitted},
		{name: "an escalation of a call that the host alone allows", operation: "approve", by: "bob", request: `{"tool":"Bash","input":{},"escalate":[{"after":"1h","to":"@self"}]}`, code: parley.InvalidArgument},
		{name: "a call that two allow", operation: "approve", by: "bob", request: `{"tool":"Bash","input":{"command":"make"},"need":2,"remind":["1h"]}`, keep: map[string]string{"form": "form"}},
		{name: "that call as a message", by: "host", shape: true, operation: "get_message", request: `{"id":"$form"}`, keep: map[string]string{"digest": "digest"}},
		{name: "a rule where two allow", operation: "decide_many", by: "host", request: `{"decisions":[{"form":"$form","digest":"$digest","decision":"always"}]}`},
		{name: "the vote of one", operation: "decide_many", by: "host", request: `{"decisions":[{"form":"$form","digest":"$digest","decision":"once"}]}`, shape: true},
		{name: "the denial of one", operation: "decide_many", by: "host", request: `{"decisions":[{"form":"$form","digest":"$digest","decision":"deny"}]}`, shape: true},
		{operation: "limit_rule", by: "host", request: `{"agent":"$bob","rule":"$rule","until":"2100-01-01T00:00:00Z"}`},
		{operation: "pause_rule", by: "host", request: `{"agent":"$bob","rule":"$rule"}`},
		{name: "a call of a rule that is paused", operation: "approve", by: "bob", request: call, shape: true},
		{name: "the rule again", operation: "pause_rule", by: "host", request: `{"agent":"$bob","rule":"$rule","resume":true}`},
		{operation: "remove_rule", by: "host", request: `{"agent":"$bob","rule":"$rule"}`},
		{name: "a call that is decided once", operation: "approve", by: "bob", request: `{"tool":"Bash","input":{"command":"make test"}}`, keep: map[string]string{"form": "form"}},
		{name: "a rule of a call that is open", operation: "make_rule", by: "host", request: `{"agent":"$bob","form":"$form"}`, code: parley.InvalidArgument},
		{name: "that call, decided once", by: "host", shape: true, operation: "get_message", request: `{"id":"$form"}`, keep: map[string]string{"digest": "digest"}},
		{name: "its decision", operation: "decide_many", by: "host", request: `{"decisions":[{"form":"$form","digest":"$digest","decision":"once"}]}`, shape: true},
		{operation: "make_rule", by: "host", request: `{"agent":"$bob","form":"$form","until":"2100-01-01T00:00:00Z"}`},
		{name: "the call of the rule", operation: "approve", by: "bob", request: `{"tool":"Bash","input":{"command":"make test"}}`},
	}
}

func mail() []scene {
	return []scene{
		{operation: "send", request: `{"recipient":"bob","text":"This is @eve"}`, keep: map[string]string{"message": "message"}},
		{operation: "reply", by: "bob", request: `{"id":"$message","text":"Thanks"}`},
		{name: "a message that is handled", operation: "await", request: `{"id":"$message","until":"shown"}`},
		{name: "a state that there is not", operation: "await", request: `{"id":"$message","until":"eaten"}`, code: parley.InvalidArgument},
		{name: "a message to acknowledge", operation: "send", request: `{"recipient":"bob","text":"Mind it","ackBy":"2100-01-01T00:00:00Z"}`, keep: map[string]string{"mind": "message"}},
		{name: "an acknowledgement by a time that has passed", operation: "send", request: `{"recipient":"bob","text":"Mind it","ackBy":"2000-01-01T00:00:00Z"}`, code: parley.InvalidArgument},
		{operation: "read_mail", by: "bob", request: `{"message":"$mind"}`, shape: true},
		{name: "mail that is not there", operation: "read_mail", by: "bob", request: `{"message":"99"}`, code: parley.NoSuchMessage},
		{operation: "acknowledge", by: "bob", request: `{"id":"$mind"}`},
		{name: "what the sender sees", operation: "get_message", request: `{"id":"$mind"}`, shape: true},
		{name: "an acknowledgement of what one sent", operation: "acknowledge", request: `{"id":"$mind"}`, code: parley.InvalidArgument},
		{name: "nothing is overdue", operation: "list_messages", request: `{"overdue":true}`},
		{name: "a message with a key", operation: "send", request: `{"recipient":"bob","text":"Once","key":"s","priority":"urgent"}`},
		{name: "the same message again", operation: "send", request: `{"recipient":"bob","text":"Once","key":"s","priority":"urgent"}`},
		{name: "another message of that key", operation: "send", request: `{"recipient":"bob","text":"Once","key":"s","subject":"News"}`, code: parley.InvalidArgument},
		{name: "a message with a subject", operation: "send", request: `{"recipient":"bob","text":"All is well","subject":"News"}`, keep: map[string]string{"news": "message"}},
		{name: "the subject of a message", operation: "get_message", by: "bob", request: `{"id":"$news"}`},
		{name: "a subject of two lines", operation: "send", request: `{"recipient":"bob","text":"All is well","subject":"Good\nnews"}`, code: parley.InvalidArgument},
		{name: "a reply with a key", operation: "reply", by: "bob", request: `{"id":"$message","text":"Yes","key":"r"}`},
		{name: "the same reply again", operation: "reply", by: "bob", request: `{"id":"$message","text":"Yes","key":"r"}`},
		{name: "a plain message", operation: "send", request: `{"recipient":"bob","text":"@eve","plain":true}`},
		{name: "a message to several", operation: "send", request: `{"recipients":["bob","eve","bob"],"text":"To both","key":"both","ackBy":"2100-01-01T00:00:00Z","escalate":"@host"}`, keep: map[string]string{"both": "message"}, shape: true},
		{name: "the same message to several again", operation: "send", request: `{"recipient":"eve","recipients":["bob"],"text":"To both","key":"both"}`, shape: true},
		{name: "a message to somebody and to nobody", operation: "send", request: `{"recipients":["bob","nobody"],"text":"To both"}`, code: parley.UnknownRecipient},
		{name: "what one of several sees", operation: "get_message", by: "bob", request: `{"id":"$both"}`, shape: true},
		{name: "a reply to all", operation: "reply", by: "bob", request: `{"id":"$both","text":"Yes","all":true}`, shape: true},
		{name: "what the sender of a message to several sees", operation: "get_message", request: `{"id":"$both"}`, shape: true},
		{operation: "schedule", request: `{"recipient":"bob","text":"Good morning","every":"0 9 * * 1-5","zone":"Europe/Berlin","key":"morning"}`, shape: true},
		{name: "the same schedule again", operation: "schedule", request: `{"recipient":"bob","text":"Good morning","every":"0 9 * * 1-5","zone":"Europe/Berlin","key":"morning"}`, shape: true},
		{name: "a time that has passed", operation: "schedule", request: `{"recipient":"bob","text":"Good morning","at":"2020-01-01T00:00:00Z"}`, code: parley.InvalidArgument},
		{operation: "list_schedules", request: `{}`, shape: true},
		{operation: "end_schedule", request: `{"schedule":1}`},
		{name: "a schedule that is not there", operation: "end_schedule", request: `{"schedule":1}`, code: parley.NoSuchMessage},
		{operation: "store_file", request: `{"size":9,"data":"dGhlIGJ1aQ=="}`, keep: map[string]string{"upload": "upload"}, shape: true},
		{name: "the last part of a file", operation: "store_file", request: `{"upload":"$upload","offset":7,"data":"bGQ="}`, keep: map[string]string{"file": "digest"}, shape: true},
		{name: "a file that is too large", operation: "store_file", request: `{"size":33554433}`, code: parley.TooLarge},
		{name: "an upload that is not there", operation: "store_file", request: `{"upload":"none","data":"bGQ="}`, code: parley.NoSuchFile},
		{name: "a message with a file", operation: "send", request: `{"recipient":"bob","text":"The log","files":[{"digest":"$file","name":"build.log","size":9,"type":"text/plain"}]}`, keep: map[string]string{"filed": "message"}},
		{name: "a message with a file of another", operation: "send", by: "bob", request: `{"recipient":"HOST","text":"Mine","files":[{"digest":"$file","name":"build.log","size":9}]}`, code: parley.NoSuchFile},
		{operation: "fetch_file", request: `{"id":"$filed","file":"$file"}`},
		{name: "the end of a file", operation: "fetch_file", request: `{"id":"$filed","file":"$file","offset":9}`},
		{name: "a file that a message does not carry", operation: "fetch_file", request: `{"id":"$message","file":"$file"}`, code: parley.NoSuchFile},
		{operation: "lease", request: `{"patterns":["branch:$fae"],"for":"tests","ttlMs":60000}`, keep: map[string]string{"lease": "lease"}, shape: true},
		{name: "the lease of another", operation: "lease", by: "bob", request: `{"patterns":["branch:$fae"]}`, code: parley.Leased},
		{name: "a lease that waits", operation: "lease", by: "bob", request: `{"patterns":["branch:$fae"],"waitMs":60000,"shared":true}`, shape: true},
		{name: "a lease on everything", operation: "lease", request: `{"patterns":["**"],"folder":"/srv/shop"}`, code: parley.InvalidArgument},
		{operation: "await_lease", request: `{"lease":$lease}`, shape: true},
		{operation: "renew_lease", request: `{"lease":$lease,"ttlMs":90000}`, shape: true},
		{operation: "list_leases", by: "bob", request: `{}`, shape: true},
		{operation: "release_lease", request: `{"lease":$lease}`},
		{name: "a lease that has ended", operation: "release_lease", request: `{"lease":$lease}`, code: parley.UnknownName},
		{operation: "set_team", by: "host", request: `{"team":"shop","add":["$bob"]}`, shape: true},
		{name: "nobody to add", operation: "set_team", by: "host", request: `{"team":"shop","add":["nobody"]}`, code: parley.AgentNotFound},
		{operation: "list_teams", by: "bob", request: `{}`, shape: true},
		{operation: "make_topic", by: "host", request: `{"topic":"news-$fae"}`, shape: true},
		{name: "a topic of an agent's own", operation: "make_topic", request: `{"topic":"own"}`, code: parley.NotPermitted},
		{operation: "subscribe", by: "bob", request: `{"topic":"news-$fae","everyMs":60000}`, shape: true},
		{name: "a digest each second", operation: "subscribe", by: "bob", request: `{"topic":"news-$fae","everyMs":1000}`, code: parley.InvalidArgument},
		{operation: "post", request: `{"topic":"news-$fae","text":"The build is red","subject":"Build","key":"p"}`, shape: true},
		{operation: "list_posts", by: "bob", request: `{"topic":"news-$fae","limit":1}`, shape: true},
		{name: "a post that is not there", operation: "list_posts", by: "bob", request: `{"topic":"news-$fae","post":99}`, code: parley.NoSuchMessage},
		{operation: "list_topics", by: "bob", request: `{}`, shape: true},
		{name: "the end of a subscription", operation: "subscribe", by: "bob", request: `{"topic":"news-$fae","end":true}`, shape: true},
		{operation: "end_topic", by: "host", request: `{"topic":"news-$fae"}`},
		{name: "a topic that is not there", operation: "post", request: `{"topic":"news-$fae","text":"x"}`, code: parley.UnknownName},
		{operation: "end_team", by: "host", request: `{"team":"shop"}`},
		{name: "a team that is not there", operation: "end_team", by: "host", request: `{"team":"shop"}`, code: parley.UnknownName},
		{operation: "adopt", by: "bob", request: `{"id":"$message","edge":"nothing","name":"eve"}`, code: parley.UnknownName},
		{operation: "set_away", by: "bob", request: `{"until":"2100-01-01T00:00:00Z"}`, shape: true},
		{name: "the end of an absence", operation: "set_away", by: "bob", request: `{}`},
		{operation: "set_member", request: `{"agent":"bob"}`},
		{name: "the end of a membership", operation: "set_member", request: `{"agent":"bob","remove":true}`},
		{operation: "list_stand_ins", request: `{}`},
		{operation: "set_attention", by: "bob", request: `{"allSessions":true,"quiet":"always","interruptions":"normal"}`, shape: true},
		{name: "a time of quiet that is none", operation: "set_attention", by: "bob", request: `{"quiet":"at night"}`, code: parley.InvalidArgument},
		{operation: "get_attention", by: "bob", request: `{}`, shape: true},
		{operation: "snooze", by: "bob", request: `{"id":"$message","until":"2100-01-01T00:00:00Z"}`},
		{operation: "mark_read", by: "bob", request: `{}`},
		{operation: "count_messages", by: "bob", request: `{}`},
		{operation: "dismiss", by: "bob", request: `{"id":"$message"}`},
		{operation: "restore_message", by: "bob", request: `{"id":"$message"}`},
		{operation: "get_message", by: "bob", request: `{"number":0}`},
		{operation: "list_messages", by: "bob", request: `{"all":true,"limit":2}`},
		{operation: "search", by: "bob", request: `{"text":"good news"}`},
		{name: "a search of a thread", operation: "search", by: "bob", request: `{"thread":{"id":"$message"},"order":"oldest","limit":1}`},
		{name: "a search of an unknown kind", operation: "search", by: "bob", request: `{"types":["letter"]}`, code: parley.InvalidArgument},
		{operation: "follow_messages", by: "bob", request: `{"cursor":0,"pending":true}`},
		{name: "a wait for mail", operation: "follow_messages", by: "bob", request: `{"cursor":1000000,"waitMs":1}`},
		{operation: "read_log", by: "bob", request: `{"limit":1}`},
		{name: "the grants of what was sent", operation: "list_grants", request: `{}`, keep: map[string]string{"grant": "grants.0.grant"}},
		{operation: "revoke", request: `{"grant":"$grant"}`},
		{name: "a grant of another spelling", operation: "revoke", request: `{"grant":"x"}`, code: parley.InvalidArgument},
	}
}

func agents() []scene {
	return []scene{
		{operation: "fetch_agents", request: `{}`},
		{operation: "fetch_agent", request: `{"agentId":"eve"}`},
		{operation: "describe_agent", by: "bob", request: `{"title":"Bob"}`},
		{operation: "set_status", by: "bob", request: `{"status":"idle"}`},
		{operation: "run_agent", by: "host", local: true, request: `{"runtime":"exec","command":["true"],"name":"job","wait":true}`},
		{name: "a program of an agent's own", operation: "run_agent", request: `{"runtime":"exec","command":["true"],"name":"job","wait":true}`, code: parley.NotPermitted},
		{operation: "set_policy", by: "host", request: `{"agentId":"$bob","policy":"never"}`},
		{operation: "read_output", request: `{"agentId":"eve","tail":0}`},
		{operation: "wait_for_finish", request: `{"agentId":"bob","timeoutMs":1}`},
		{operation: "send_agent_message", request: `{"agentId":"eve","text":"go on","messageId":"m1"}`},
		{operation: "stop_agent", request: `{"agentId":"eve"}`},
		{name: "an agent without a program", operation: "hold_agent", request: `{"agentId":"eve","hold":true}`, code: parley.InvalidArgument},
		{operation: "hold_agent", by: "host", local: true, request: `{"agentId":"job","hold":true}`},
		{operation: "get_quota", request: `{"agentId":"bob"}`, shape: true},
		{operation: "set_quota", by: "host", request: `{"agentId":"$bob","quotas":{"agents":5}}`, shape: true},
		{operation: "archive_agent", request: `{"agentId":"eve"}`},
	}
}

func ofNode() []scene {
	return []scene{
		{operation: "status", by: "host", request: `{}`, shape: true},
		{operation: "list_nodes", by: "host", request: `{}`},
		{operation: "limit_peer", by: "host", request: `{"node":"nobody","quotas":{"agents":5}}`, code: parley.NodeUnknown},
		{operation: "drop_peer", by: "host", request: `{"node":"nobody"}`, code: parley.NodeUnknown},
		{operation: "start_programs", by: "host", request: `{}`},
		{operation: "verify", by: "host", request: `{}`, shape: true},
		{operation: "archive_journal", by: "host", request: `{"before":"2000-01-01T00:00:00Z"}`, shape: true},
		{operation: "list_archive", by: "host", request: `{}`, shape: true},
		{operation: "move_segments", by: "host", request: `{"segments":[1],"place":"relative"}`, code: parley.InvalidArgument},
		{operation: "fetch_segments", by: "host", request: `{"segments":[1],"place":"relative"}`, code: parley.InvalidArgument},
		{operation: "stop", by: "host", request: `{}`, shape: true},
	}
}

// deep is a value that is nested n lists deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func refusals() []scene {
	send := func(text string) string { return `{"recipient":"bob","text":"` + text + `"}` }
	fields := func(list string) string { return `{"recipient":"bob","description":"x","fields":` + list + `}` }
	return []scene{
		{name: "no token", by: "nobody", operation: "list_messages", request: `{}`, code: parley.Unauthenticated},
		{name: "a token of nobody", by: "stranger", operation: "list_messages", request: `{}`, code: parley.Unauthenticated},
		{name: "a token with another secret", by: "forger", operation: "list_messages", request: `{}`, code: parley.Unauthenticated},
		{name: "a token that was revoked", by: "ended", operation: "list_messages", request: `{}`, code: parley.Unauthenticated},
		{name: "no scope to ask", by: "reader", operation: "send", request: send("x"), code: parley.NotPermitted},
		{name: "no scope to answer", by: "asker", operation: "respond_form", request: `{"number":0,"values":{}}`, code: parley.NotPermitted},
		{name: "no scope to read", by: "answerer", operation: "list_messages", request: `{}`, code: parley.NotPermitted},
		{name: "no scope to manage", by: "reader", operation: "make_agent", request: `{"name":"x"}`, code: parley.NotPermitted},
		{name: "an operation of the node", operation: "status", request: `{}`, code: parley.NotPermitted},
		{name: "as another agent", operation: "list_names", request: `{"as":"bob"}`, code: parley.NotPermitted},
		{name: "as somebody unknown", by: "host", operation: "list_names", request: `{"as":"nobody"}`, code: parley.UnknownName},
		{name: "a host as another", by: "host", operation: "list_names", request: `{"as":"$bob"}`},
		{name: "an empty request", operation: "count_messages", request: ``},
		{name: "a member that nobody knows", operation: "count_messages", request: `{"color":"red"}`},
		{name: "an operation that there is not", operation: "shout", request: `{}`, code: parley.InvalidArgument},
		{name: "not JSON", operation: "send", request: `{"recipient"`, code: parley.InvalidArgument},
		{name: "two requests", operation: "send", request: `{} {}`, code: parley.InvalidArgument},
		{name: "not an object", operation: "send", request: `[]`, code: parley.InvalidArgument},
		{name: "another type", operation: "send", request: `{"recipient":5}`, code: parley.InvalidArgument},
		{name: "not UTF-8", operation: "send", request: send("\xff"), code: parley.InvalidArgument},
		{name: "too deep", operation: "respond_form", request: `{"number":0,"values":{"a":` + deep(64) + `}}`, code: parley.TooLarge},
		{name: "too deep for a value", operation: "respond_form", request: `{"number":0,"values":{"a":` + deep(36) + `}}`, code: parley.TooLarge},
		{name: "too large", operation: "send", request: send(strings.Repeat("x", api.MaxBody)), code: parley.TooLarge},
		{name: "too large for a value", operation: "respond_form", request: `{"number":0,"values":{"a":"` + strings.Repeat("x", 300<<10) + `"}}`, code: parley.TooLarge},
		{name: "no fields", operation: "form", request: fields("null"), code: parley.InvalidForm},
		{name: "an unknown member of a field", operation: "form", request: fields(`[{"name":"a","requierd":true}]`), code: parley.InvalidForm},
		{name: "10,000 fields", operation: "form", request: fields("[" + strings.Repeat(`{"name":"a"},`, 9999) + `{"name":"a"}]`), code: parley.TooLarge},
		{name: "a field twice", operation: "form", request: fields(`[{"name":"a"},{"name":"a"}]`), code: parley.InvalidForm},
		{name: "an unknown recipient", operation: "form", request: strings.Replace(form, `"bob"`, `"nobody"`, 1), code: parley.UnknownRecipient},
		{name: "a message to nobody", operation: "send", request: `{"recipient":"nobody","text":"x"}`, code: parley.UnknownRecipient},
		{name: "a message that there is not", operation: "get_message", request: `{"number":1000}`, code: parley.NoSuchMessage},
		{name: "a form that there is not", operation: "respond_form", request: `{"number":1000,"values":{}}`, code: parley.NoSuchMessage},
		{name: "no message", operation: "get_message", request: `{}`, code: parley.InvalidArgument},
		{name: "a number and an ID", operation: "get_message", request: `{"number":1,"id":"x"}`, code: parley.InvalidArgument},
		{name: "a list as a number", operation: "get_message", request: `{"number":[1]}`, code: parley.InvalidArgument},
		{name: "a wait of less than nothing", operation: "await", request: `{"number":0,"waitMs":-1}`, code: parley.InvalidArgument},
		{name: "an agent that nobody holds", operation: "fetch_agent", request: `{"agentId":"nobody"}`},
		{name: "a name with a line break", operation: "lookup", request: `{"name":"a\r\nNats-Service-Error-Code: 200\r\n"}`, code: parley.UnknownName},
		{name: "a value that is missing", operation: "store_name", request: `{"name":"x"}`, code: parley.InvalidArgument},
		{name: "an unknown facet", operation: "copy_name", request: `{"old":"eve","new":"b","facet":"fly"}`, code: parley.InvalidArgument},
		{name: "an unknown list of words", operation: "complete", request: `{"of":"everything"}`, code: parley.InvalidArgument},
	}
}
