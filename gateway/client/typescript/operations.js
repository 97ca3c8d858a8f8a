// Written from the node's table of operations by a test, TestTypeScriptMatchesOperations: not by hand.

/** The operations that change nothing, and so can be called again. */
export const looks = new Set([
  "await",
  "complete",
  "count_messages",
  "fetch_agent",
  "fetch_agents",
  "follow_messages",
  "get_message",
  "get_quota",
  "list_archive",
  "list_grants",
  "list_invitations",
  "list_messages",
  "list_names",
  "list_nodes",
  "list_rules",
  "list_schedules",
  "list_stand_ins",
  "list_tokens",
  "locate",
  "lookup",
  "read_log",
  "read_mail",
  "read_output",
  "search",
  "status",
  "verify",
  "wait_for_finish"
]);
