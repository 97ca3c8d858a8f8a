// Parley's plugin for OpenCode: permissions and questions are asked in Parley, and mail reaches the session.
// "parley setup opencode" has written this file. It replaces it, and removes it with --remove.
import { spawn } from "node:child_process";
import { watch } from "node:fs";

const hook = HOOK;
const server = SERVER;

const longest = 24 * 60 * 60 * 1000; // milliseconds that a hook takes at most

// run starts the hook with a request, and returns what it decides or carries: null for nothing, and for whatever fails.
const run = (request, children, key) =>
  new Promise((done) => {
    const child = spawn(hook[0], hook.slice(1), { stdio: ["pipe", "pipe", "ignore"], timeout: longest });
    let text = "";
    if (key) children.set(key, child);
    const end = () => {
      if (key && children.get(key) === child) children.delete(key);
      try {
        done(JSON.parse(text));
      } catch {
        done(null);
      }
    };
    child.on("error", end);
    child.on("close", end);
    child.stdin.on("error", () => {}); // it has ended: close says so
    child.stdout.on("data", (more) => (text += more));
    child.stdin.end(JSON.stringify(request));
  });

const carried = (response) => response?.hookSpecificOutput?.additionalContext;

export const Parley = async ({ client, directory }) => {
  const parents = new Map(); // of the sessions of subagents
  const fresh = new Set(); // sessions that were made in this process
  const living = new Map(); // sessions of which the hook knows: how to go on with each
  const calls = new Map(); // arguments of the calls under way
  const waiting = new Map(); // hooks that wait for a person
  const watches = new Map(); // of the files that change when there is mail
  const proven = new Set(); // sessions with something to prove
  const api = client._client;

  const base = (session, event) => {
    let root = session;
    while (parents.get(root)) root = parents.get(root);
    const request = { hook_event_name: event, session_id: root, cwd: directory };
    if (root !== session) request.agent_id = session;
    return request;
  };

  // conversation returns what a session holds of Parley's mail, as lines that the hook reads: its notices, the results of the tools
  // that read mail, and that the model has answered since.
  const conversation = async (session) => {
    const lines = [];
    const got = await client.session.messages({ path: { id: session } });
    if (got.error || !Array.isArray(got.data)) return undefined; // which is not known, and proves nothing
    for (const { info, parts } of got.data) {
      if (info.role === "assistant" && !info.error && parts.some((p) => p.type === "step-start")) {
        const uses = parts.filter((p) => p.type === "tool" && /^parley_(read|wait_for)_mail$/.test(p.tool));
        const content = uses.map((p) => ({ type: "tool_use", id: p.callID, name: "mcp__parley__" + p.tool.slice("parley_".length) }));
        lines.push({ type: "assistant", message: { content } });
        for (const p of uses)
          if (p.state?.status === "completed")
            lines.push({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: p.callID, content: p.state.output }] } });
      }
      for (const p of parts) {
        const text = p.type === "text" && info.role === "user" ? p.text : p.type === "tool" ? p.state?.output : "";
        if (typeof text === "string" && text.includes("Parley ")) lines.push({ type: "attachment", text });
      }
    }
    return lines.map((line) => JSON.stringify(line)).join("\n") + "\n";
  };

  const withProof = async (request, session) => {
    if (proven.has(session)) {
      request.transcript = await conversation(session).catch(() => undefined);
      proven.delete(session);
    }
    return request;
  };

  // prompt begins a turn of a session with a notice.
  const prompt = async (session, text) => {
    proven.add(session);
    const { agent, model } = living.get(session) ?? {};
    await client.session.promptAsync({ path: { id: session }, body: { agent, model, parts: [{ type: "text", text, synthetic: true }] } });
  };

  const wake = async (session) => {
    const text = carried(await run(await withProof(base(session, "FileChanged"), session)));
    if (text) await prompt(session, text);
  };

  // enter has the hook know a session. It returns a notice.
  const enter = async (session) => {
    const source = fresh.has(session) ? "startup" : "resume";
    if (source === "resume") proven.add(session);
    const got = await run(await withProof({ ...base(session, "SessionStart"), source }, session));
    for (const path of got?.hookSpecificOutput?.watchPaths ?? []) {
      let soon;
      watches.get(session)?.close();
      const again = () => {
        clearTimeout(soon);
        soon = setTimeout(() => wake(session).catch(() => {}), 50);
      };
      watches.set(session, watch(path, again).on("error", () => {}));
    }
    return carried(got);
  };

  const permission = async (asked) => {
    const call = asked.tool && calls.get(asked.tool.callID);
    const other = !call || ["external_directory", "doom_loop"].includes(asked.permission);
    const request = {
      ...base(asked.sessionID, "PermissionRequest"),
      tool_name: other ? asked.permission : call.tool,
      tool_input: other ? { patterns: asked.patterns, metadata: asked.metadata, tool: call?.tool, arguments: call?.args } : call.args,
    };
    const got = await run(request, waiting, asked.id);
    const decision = got?.hookSpecificOutput?.decision;
    if (!decision) return; // its own prompt asks
    const body = decision.behavior === "allow" ? { reply: "once" } : { reply: "reject", message: decision.message };
    await api.post({ url: "/permission/{requestID}/reply", path: { requestID: asked.id }, body, headers: { "Content-Type": "application/json" } });
  };

  const question = async (asked) => {
    const questions = asked.questions.map((q) => ({ question: q.question, header: q.header, options: q.options, multiSelect: q.multiple === true }));
    const got = await run(
      { ...base(asked.sessionID, "PreToolUse"), tool_name: "AskUserQuestion", tool_use_id: asked.id, tool_input: { questions } },
      waiting,
      asked.id,
    );
    const said = got?.hookSpecificOutput;
    if (!said?.permissionDecision) return; // its own prompt asks
    const headers = { "Content-Type": "application/json" };
    const answers = said.updatedInput?.answers;
    if (said.permissionDecision !== "allow" || !answers) {
      await api.post({ url: "/question/{requestID}/reject", path: { requestID: asked.id }, headers });
      return;
    }
    const body = { answers: questions.map((q) => (q.multiSelect ? answers[q.question].split(", ") : [answers[q.question]])) };
    await api.post({ url: "/question/{requestID}/reply", path: { requestID: asked.id }, body, headers });
  };

  const stop = async (session) => {
    if (!living.has(session)) return;
    const got = await run(await withProof(base(session, "Stop"), session));
    const text = carried(got);
    if (text) await prompt(session, text);
  };

  return {
    config: async (config) => {
      config.mcp = { ...config.mcp, parley: { type: "local", command: server, enabled: true } };
    },
    event: async ({ event }) => {
      const p = event.properties ?? {};
      switch (event.type) {
        case "session.created":
          fresh.add(p.info.id);
          if (p.info.parentID) parents.set(p.info.id, p.info.parentID);
          return;
        case "session.deleted":
          watches.get(p.info.id)?.close();
          watches.delete(p.info.id);
          if (living.delete(p.info.id)) await run(base(p.info.id, "SessionEnd"));
          return;
        case "session.idle":
          return stop(p.sessionID).catch(() => {});
        case "permission.asked":
          return permission(p).catch(() => {});
        case "question.asked":
          return question(p).catch(() => {});
        case "permission.replied":
        case "question.replied":
        case "question.rejected":
          waiting.get(p.requestID)?.kill("SIGTERM"); // it was decided elsewhere
      }
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID;
      if (parents.has(session)) return;
      const said = output.parts.find((part) => part.type === "text");
      if (said?.synthetic && said.text.startsWith("Parley ")) return; // what this plugin has sent
      const known = living.has(session);
      living.set(session, { agent: output.message.agent, model: output.message.model });
      const first = known ? undefined : await enter(session);
      const text = first ?? carried(await run(await withProof({ ...base(session, "UserPromptSubmit"), prompt: "" }, session)));
      if (!text || !said) return;
      proven.add(session);
      output.parts.push({ id: said.id + "p", sessionID: session, messageID: said.messageID, type: "text", text, synthetic: true });
    },
    "tool.execute.before": async (input, output) => {
      calls.set(input.callID, { tool: input.tool, args: output.args });
    },
    "tool.execute.after": async (input, output) => {
      const call = calls.get(input.callID) ?? { tool: input.tool, args: input.args };
      calls.delete(input.callID);
      if (/^parley_/.test(call.tool)) {
        proven.add(input.sessionID);
        return;
      }
      const text = carried(
        await run({ ...base(input.sessionID, "PostToolUse"), tool_name: call.tool, tool_input: call.args ?? {}, tool_use_id: input.callID }),
      );
      if (!text) return;
      proven.add(input.sessionID);
      if (Array.isArray(output.content)) output.content.push({ type: "text", text });
      else output.output += "\n" + text;
    },
  };
};
