import { useState } from "preact/hooks";

import { Api, type Problem } from "../api/client";
import { Field, Notice, ProblemNotice } from "../ui/parts";
import { Mark } from "../ui/icons";
import { useAction } from "../ui/use-action";
import { LocalSignIn } from "./local";
import { claimsOf, scopeQuery, type Scope, type Session } from "./session";

function refusal(problem: Problem): string | null {
  if (problem.status === 401) return "This token is not valid here, or it has expired.";
  if (problem.status === 403) return "This token is valid, but may not read memory: it lacks the scope memory:read.";
  return null;
}

/** The cheapest call that the holder of a token may make. Throws the refusal. */
async function tried(token: string, scope: Scope): Promise<void> {
  const api = new Api(token, scopeQuery(scope));
  if (claimsOf(token).role === "platform") await api.get("/admin/site-settings", { category: "memory" });
  else await api.get("/memories/entities", { page_size: 1 });
}

export function SignIn({ ended, onSession }: { ended: boolean; onSession: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const [subject, setSubject] = useState("");
  const [base, setBase] = useState("");
  const { busy, problem, run } = useAction();
  const forKey = token.trim() !== "" && claimsOf(token.trim()).kind === "api_key";

  async function open(chosen: string, scope: Scope) {
    await tried(chosen, scope);
    onSession({ token: chosen, scope });
  }

  function submit(event: Event) {
    event.preventDefault();
    const scope = forKey ? { ...(subject && { subject }), ...(base.trim() && { base: base.trim() }) } : {};
    void run(() => open(token.trim(), scope));
  }

  return (
    <main class="sign-in">
      <header class="sign-in-head">
        <Mark />
        <h1>Tidemark console</h1>
        <p class="muted">See what is remembered, correct it, and take it back.</p>
      </header>
      {ended && <Notice kind="warn">You have been signed out: the token is no longer accepted.</Notice>}
      <form class="card stack" onSubmit={submit} aria-labelledby="token-title">
        <div>
          <h2 id="token-title">Sign in with a token</h2>
          <p class="muted">An API key, or the token of a dashboard user. It stays in this tab and goes to this service only.</p>
        </div>
        <Field label="Token">
          {(id) => (
            <input
              id={id}
              type="password"
              required
              autocomplete="off"
              spellcheck={false}
              value={token}
              onInput={(e) => setToken(e.currentTarget.value)}
            />
          )}
        </Field>
        {forKey && (
          <>
            <Field label="Subject (external_subject_id)" hint="The person whose memory you want to see.">
              {(id) => (
                <input id={id} maxLength={256} required={!base} value={subject} onInput={(e) => setSubject(e.currentTarget.value)} />
              )}
            </Field>
            <Field label="Knowledge base" hint="Or the id of a knowledge base with a memory of its own: kb_…">
              {(id) => <input id={id} value={base} onInput={(e) => setBase(e.currentTarget.value)} />}
            </Field>
          </>
        )}
        {problem && (refusal(problem) ? <Notice kind="error">{refusal(problem)}</Notice> : <ProblemNotice problem={problem} />)}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
      <LocalSignIn onToken={(minted) => open(minted, {})} />
    </main>
  );
}
